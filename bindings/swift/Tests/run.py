"""Runs the tests of HoldfastKit against a local backend: run.py SWIFT FOLDER [ARGUMENT...]."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(ROOT / "Tests" / "server"))

from local_supabase import LocalSupabase  # noqa: E402


def main() -> int:
    """Return the exit status of Swift's test runner."""
    swift, scratch, *arguments = sys.argv[1:]
    package = ["-q", "--package-path", str(HERE.parent), "--scratch-path", scratch]
    with LocalSupabase(demo=True) as backend, tempfile.TemporaryDirectory() as folder:
        build = [swift, "build", *package]
        if (built := subprocess.run([*build, "--product", "story"], check=False).returncode) != 0:
            return built
        programs = subprocess.check_output([*build, "--show-bin-path"], text=True).strip()
        environment = {
            **os.environ,
            "HOLDFAST_BACKEND": backend.url,
            "HOLDFAST_KEY": backend.anon_key,
            "HOLDFAST_FOLDER": folder,
            "HOLDFAST_STORY": f"{programs}/story",
        }
        command = [swift, "test", "--disable-xctest", *package, *arguments]
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
