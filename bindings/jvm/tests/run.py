"""Runs a command beside a local backend, whose address it finds in the environment.

Usage: run.py COMMAND. Fails if the command fails, or if the JVM complains of a native, as it does
with -Xcheck:jni.
"""

from __future__ import annotations

import os
import subprocess
import sys

from local_supabase import LocalSupabase

#: What -Xcheck:jni says before it names the native's mistake.
COMPLAINTS = ("WARNING in native method", "FATAL ERROR in native method", "WARNING: JNI local refs")


def main() -> int:
    """Run the command; return its exit status, or 1 for a complaint."""
    with LocalSupabase(demo=True) as backend:
        environment = os.environ | {
            "HOLDFAST_BACKEND": backend.url,
            "HOLDFAST_API_KEY": backend.anon_key,
        }
        running = subprocess.Popen(
            sys.argv[1:],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        complaints = 0
        assert running.stdout is not None
        for line in running.stdout:
            print(line, end="", flush=True)
            complaints += any(one in line for one in COMPLAINTS)
        status = running.wait()
    if complaints:
        print(f"-Xcheck:jni complained {complaints} times", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
