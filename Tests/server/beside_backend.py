"""Runs the tests of a binding beside a local backend: beside_backend.py COMMAND.

It fails if the command does, or if the JVM complains of a native, as it does with -Xcheck:jni.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from local_supabase import LocalSupabase
from refused import refused_port

#: What -Xcheck:jni says before it names the native's mistake.
COMPLAINTS = ("WARNING in native method", "FATAL ERROR in native method", "WARNING: JNI local refs")


@contextlib.contextmanager
def environment() -> Iterator[dict[str, str]]:
    """The environment in which tests find a backend, a folder, and a port where nobody listens."""
    with (
        LocalSupabase(demo=True) as backend,
        tempfile.TemporaryDirectory() as folder,
        refused_port() as port,
    ):
        yield os.environ | {
            "HOLDFAST_BACKEND": backend.url,
            "HOLDFAST_KEY": backend.anon_key,
            "HOLDFAST_FOLDER": folder,
            "HOLDFAST_REFUSED_PORT": str(port),
        }


def main() -> int:
    """Run the command; return its exit status, or 1 for a complaint."""
    complaints = 0
    with (
        environment() as found,
        subprocess.Popen(
            sys.argv[1:], env=found, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as running,
    ):
        for line in running.stdout or ():
            print(line, end="", flush=True)
            complaints += any(one in line for one in COMPLAINTS)
        status = running.wait()
    return status or int(complaints > 0)


if __name__ == "__main__":
    sys.exit(main())
