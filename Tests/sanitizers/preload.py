"""A pytest plugin: the sanitizer's runtime in every process that loads the library, no other.

A sanitizer's runtime must be in a process before anything else. Python is not built with it, so
it is preloaded; but what Python starts (PostgreSQL, compilers, shells) would inherit it, and need
not. HOLDFAST_SANITIZER_RUNTIME names it; Python itself was started with it in LD_PRELOAD.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

RUNTIME = os.environ.get("HOLDFAST_SANITIZER_RUNTIME", "")
os.environ.pop("LD_PRELOAD", None)

#: Programs of the tests that load the library, beside Python.
HOSTS = ("host", "python", "python3")

#: Python that does not load it.
BACKEND = "local_supabase"


class Popen(subprocess.Popen[Any]):
    """A child gets the runtime if it is Python, or a host in C; also behind another command."""

    def __init__(self, args: Any, *more: Any, **options: Any) -> None:  # noqa: ANN401
        words = [args] if isinstance(args, (str, bytes)) else [os.fspath(word) for word in args]
        place = -1
        if os.path.basename(os.fsdecode(words[0])) in HOSTS:
            place = 0
        elif sys.executable in words:
            place = words.index(sys.executable)
        if RUNTIME and place >= 0 and BACKEND not in words:
            env = os.environ if options.get("env") is None else options["env"]
            before = [env["LD_PRELOAD"]] if env.get("LD_PRELOAD") else []
            preload = " ".join([RUNTIME, *before])
            if place == 0:
                options["env"] = {**env, "LD_PRELOAD": preload}
            else:
                args = [*words[:place], "env", f"LD_PRELOAD={preload}", *words[place:]]
        super().__init__(args, *more, **options)


subprocess.Popen = Popen  # type: ignore[misc]
