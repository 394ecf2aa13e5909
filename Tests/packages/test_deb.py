"""The Debian package of `make dist`, unpacked into a folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from consumers import ROOT, run


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of the present build."""
    version = re.findall('"(.*)"', (ROOT / "Sources/Base/Version.swift").read_text("utf-8"))
    done = subprocess.run(
        [ROOT / "bindings/c/deb.sh", tmp_path_factory.mktemp("deb")],
        env=os.environ | {"VERSION": version[0], "ABI": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(done.stdout.strip())


def test_the_debian_package_needs_what_its_libraries_load(package: Path) -> None:
    needs = run("dpkg-deb", "-f", package, "Depends")
    for library in ("libc6", "libcurl4", "libsodium23", "libsqlite3-0"):
        assert re.search(rf"\b{library}\w* \(>= [\d.]+\)", needs), needs
    assert "jansson" not in needs, "it is inside, and hidden"


def test_a_program_builds_and_runs_with_the_unpacked_debian_package(
    package: Path, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    run("dpkg-deb", "-x", package, root)
    [library] = root.glob("usr/lib/*/libholdfast.so.1")
    source = tmp_path / "main.c"
    source.write_text(
        "#include <holdfast_http.h>\n#include <stdio.h>\n"
        "int main(void) {\n  holdfast_http *driver = NULL;\n  puts(holdfast_version());\n"
        "  return holdfast_http_start(NULL, NULL, &driver) != HOLDFAST_CLOSED;\n}\n"
    )
    found = {
        "PKG_CONFIG_SYSROOT_DIR": str(root),
        "PKG_CONFIG_PATH": str(library.parent / "pkgconfig"),
    }
    flags = run("pkg-config", "--cflags", "--libs", "holdfast_http", environment=found).split()
    run("cc", "-Wall", "-Wextra", "-Werror", source, "-o", tmp_path / "program", *flags)
    said = run(tmp_path / "program", environment={"LD_LIBRARY_PATH": str(library.parent)})
    assert said.strip() == run("dpkg-deb", "-f", package, "Version").strip()
