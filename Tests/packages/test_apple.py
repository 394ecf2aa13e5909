"""What bindings/apple/build.sh puts on a Mac: the two packages resolve with its frameworks alone.

Nothing here is Apple's: SwiftPM reads the manifests and the frameworks' descriptions on any system.
"""

from __future__ import annotations

import json
import os
import plistlib
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from patience import patience

from consumers import ROOT

APPLE = ROOT / "bindings" / "apple"

#: SwiftPM compiles every manifest that it reads.
reads_manifests = pytest.mark.slow


def swift_package(folder: Path, *arguments: str) -> dict[str, Any]:
    """What `swift package` says of a folder, where no library can be found by pkg-config."""
    command = [os.environ.get("SWIFT", "swift"), "package", "--package-path", folder, *arguments]
    done = subprocess.run(
        [*map(str, command)],
        env={**os.environ, "PKG_CONFIG_LIBDIR": "/nowhere"},
        capture_output=True,
        text=True,
        timeout=patience(280),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def framework(path: Path, parts: dict[str, str]) -> None:
    """The description that Xcode writes; the libraries and headers themselves are empty."""
    for name in parts.values():
        (path / "macos-arm64" / name).mkdir(parents=True)
    library: dict[str, object] = {
        "LibraryIdentifier": "macos-arm64",
        "SupportedArchitectures": ["arm64"],
        "SupportedPlatform": "macos",
        **parts,
    }
    described = {"AvailableLibraries": [library], "XCFrameworkFormatVersion": "1.0"}
    description = {**described, "CFBundlePackageType": "XFWK"}
    (path / "Info.plist").write_bytes(plistlib.dumps(description))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The project, with nothing built."""
    shutil.copy(ROOT / "Package.swift", tmp_path)
    for name in ("Sources", "include", "Tests", "bindings"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def with_framework(source: Path) -> Path:
    parts = {"LibraryPath": "libHoldfastLibraries.a", "HeadersPath": "Headers"}
    framework(source / "build" / "apple" / "HoldfastLibraries.xcframework", parts)
    return source


def targets(package: dict[str, Any]) -> dict[str, Any]:
    return {target["name"]: target for target in package["targets"]}


@reads_manifests
def test_the_package_from_source_needs_the_framework_and_the_system_alone(source: Path) -> None:
    found = targets(swift_package(with_framework(source), "dump-package"))
    # Then no target asks pkg-config or names a package of another system
    assert [name for name, each in found.items() if each.get("pkgConfig")] == []
    assert [name for name, each in found.items() if each.get("providers")] == []
    # And the modules of the framework come from it, SQLite's from the system
    kinds = {name: each["type"] for name, each in found.items()}
    assert kinds["HoldfastLibraries"] == "binary"
    assert kinds["CSQLite"] == "system"
    assert not {"CSodium", "CJansson"} & set(kinds)
    users = {
        name
        for name, each in found.items()
        if any(used["byName"][0] == "HoldfastLibraries" for used in each["dependencies"])
    }
    assert {"Base", "Vault"} <= users
    assert "sqlite3" in json.dumps(found["CPlatform"]["settings"])


@reads_manifests
def test_the_package_from_source_resolves_with_the_framework(source: Path) -> None:
    described = swift_package(with_framework(source), "describe", "--type", "json")
    assert {"HoldfastLibraries", "Holdfast"} <= set(targets(described))


@reads_manifests
def test_elsewhere_the_libraries_are_the_systems(source: Path) -> None:
    found = targets(swift_package(source, "dump-package"))
    asked = {each["pkgConfig"] for each in found.values() if each.get("pkgConfig")}
    assert asked == {"sqlite3", "libsodium", "jansson"}


def test_the_framework_has_the_modules_that_the_core_imports(tmp_path: Path) -> None:
    # Given the headers of a framework, as the script lays them out
    for header in ("jansson.h", "jansson_config.h", "sodium.h", "sodium"):
        [found] = [
            path for path in Path("/usr/include").rglob(header) if "sodium/" not in str(path)
        ]
        (tmp_path / header).symlink_to(found)
    shutil.copy(APPLE / "libraries.modulemap", tmp_path / "module.modulemap")
    # When a program imports both modules
    program = tmp_path / "program.m"
    program.write_text(
        "@import CSodium;\n@import CJansson;\n"
        "int main(void) { return sodium_init() + (int)json_typeof(json_null()); }\n"
    )
    command = ["clang", "-fmodules", f"-fmodules-cache-path={tmp_path / 'cache'}", "-fsyntax-only"]
    done = subprocess.run(
        [*command, f"-I{tmp_path}", program], capture_output=True, text=True, check=False
    )
    # Then it finds what it calls
    assert done.returncode == 0, done.stderr


def test_the_script_puts_into_the_framework_what_the_manifest_takes_from_it() -> None:
    script = (APPLE / "build.sh").read_text()
    merged = re.search(r"libtool -static .*bundle/lib/\{(.*)\}\.a", script)
    assert merged is not None
    assert set(merged[1].split(",")) == {"libsodium", "libjansson"}
    modules = re.findall(r"^module (\w+)", (APPLE / "libraries.modulemap").read_text(), re.M)
    named = re.search(r"hasFramework && \[(.*?)\]", (ROOT / "Package.swift").read_text())
    assert named is not None
    assert set(re.findall(r'"(\w+)"', named[1])) == set(modules)


@reads_manifests
def test_the_package_of_the_built_library_has_nothing_else(tmp_path: Path) -> None:
    shutil.copy(APPLE / "Package.swift", tmp_path)
    framework(tmp_path / "Holdfast.xcframework", {"LibraryPath": "Holdfast.framework"})
    described = swift_package(tmp_path, "describe", "--type", "json")
    assert [(each["name"], each["type"]) for each in described["targets"]] == [
        ("Holdfast", "binary")
    ]
    assert [product["targets"] for product in described["products"]] == [["Holdfast"]]
    # The same systems as the project's own manifest
    systems = [swift_package(folder, "dump-package")["platforms"] for folder in (tmp_path, ROOT)]
    assert systems[0] == systems[1]
