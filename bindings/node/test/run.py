"""Runs the tests of the package for Node against a local backend.

Usage: run.py NODE [FILE...]. Node's test runner prints the counts.
"""

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
from refused import refused_port  # noqa: E402


def main() -> int:
    """Return the exit status of Node's test runner."""
    node, *names = sys.argv[1:]
    files = [Path(name).resolve() for name in names] or sorted(HERE.glob("*.test.mjs"))
    with (
        LocalSupabase(demo=True) as backend,
        tempfile.TemporaryDirectory() as folder,
        refused_port() as port,
    ):
        environment = {
            **os.environ,
            "HOLDFAST_BACKEND": backend.url,
            "HOLDFAST_KEY": backend.anon_key,
            "HOLDFAST_FOLDER": folder,
            "HOLDFAST_REFUSED_PORT": str(port),
        }
        options = ["--expose-gc", "--test", "--test-force-exit", "--test-reporter=tap"]
        return subprocess.run([node, *options, *files], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
