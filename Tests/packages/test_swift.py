"""Another Swift package can depend on this one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from consumers import ROOT

EXAMPLE = ROOT / "examples" / "swift"
#: Kept between runs: only the first build is slow.
SCRATCH = ROOT / ".build-consumer"


def swift(*arguments: str | Path) -> str:
    """Run `swift`; return its output. It must succeed."""
    command = [os.environ.get("SWIFT", "swift"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_the_manifest_has_no_unsafe_flags() -> None:
    manifest = swift("package", "dump-package", "--package-path", ROOT)
    products = {product["name"] for product in json.loads(manifest)["products"]}
    assert {"Holdfast", "CHoldfast"} <= products
    assert "unsafeFlags" not in manifest


def test_the_example_package_builds_and_runs(tmp_path: Path) -> None:
    swift("build", "--package-path", EXAMPLE, "--scratch-path", SCRATCH)
    done = subprocess.run(
        [SCRATCH / "debug" / "Visit", tmp_path / "data"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    decision, sign_in = (json.loads(line) for line in done.stdout.splitlines())
    assert (decision["screen"], decision["reason"]) == ("sign_in", "session_missing")
    assert sign_in["url"].startswith(
        "https://PROJECT.supabase.co/auth/v1/authorize?provider=bankid"
    )
