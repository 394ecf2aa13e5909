"""Starts the local backend with demo data, runs the tour against it, and stops the backend."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from local_supabase.launcher import LocalSupabase

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main() -> int:
    """Return the tour's exit status."""
    tour, *arguments = sys.argv[1:] or [str(ROOT / "build" / "bin" / "holdfast-tour")]
    with LocalSupabase(demo=True) as backend:
        return subprocess.run(
            [
                tour,
                "--backend",
                backend.url,
                "--key",
                backend.anon_key,
                "--dsn",
                backend.dsn,
                *arguments,
            ],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
