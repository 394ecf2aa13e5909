"""Another Swift package can depend on this one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from local_supabase import LocalSupabase
from patience import patience

from consumers import ROOT
from pages import blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(patience(900))]

EXAMPLE = ROOT / "examples" / "swift"
#: Kept between runs: only the first build is slow.
SCRATCH = ROOT / ".build-consumer"


def swift(*arguments: str | Path) -> str:
    """Run `swift`; return its output. It must succeed."""
    command = [os.environ.get("SWIFT", "swift"), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=patience(600), check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_the_manifest_has_no_unsafe_flags() -> None:
    manifest = swift("package", "dump-package", "--package-path", ROOT)
    products = {product["name"] for product in json.loads(manifest)["products"]}
    assert {"HoldfastKit", "Holdfast", "CHoldfast"} <= products
    assert "unsafeFlags" not in manifest


def test_the_example_package_builds_and_takes_its_seven_steps(
    backend: LocalSupabase, tmp_path: Path
) -> None:
    swift("build", "--package-path", EXAMPLE, "--scratch-path", SCRATCH)
    done = subprocess.run(
        [SCRATCH / "debug" / "Visits", backend.url, backend.anon_key, "mentor@example.org"],
        cwd=tmp_path,
        env={**os.environ, "HOLDFAST_PASSWORD": "holdfast-demo"},
        capture_output=True,
        text=True,
        timeout=patience(240),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "screen: select_org\n" in done.stdout
    assert "corrected: stored\n" in done.stdout
    assert done.stdout.splitlines()[-1] == "unsent after the logout: 0"


def test_an_app_depends_on_one_package_as_the_readme_says(tmp_path: Path) -> None:
    manifests = blocks("bindings/swift/README.md", "swift")
    [manifest] = [each for each in manifests if "swift-tools-version" in each]
    published = '.package(url: "https://example.org/holdfast.git", from: "0.2.0")'
    assert published in manifest
    here = f'.package(name: "holdfast", path: "{ROOT}")'
    (tmp_path / "Package.swift").write_text(manifest.replace(published, here))
    (tmp_path / "Sources" / "Visits").mkdir(parents=True)
    (tmp_path / "Sources" / "Visits" / "main.swift").write_text("import HoldfastKit\n")
    described = swift("package", "--package-path", tmp_path, "describe", "--type", "json")
    [target] = json.loads(described)["targets"]
    assert target["product_dependencies"] == ["HoldfastKit"]
