"""A pytest plugin: preloads the sanitizer's runtime only into processes that load the library.

A sanitizer's runtime must be the first library in a process. Python is not linked with it: run.sh
starts Python with the runtime in LD_PRELOAD. This plugin removes it from the environment, so that
PostgreSQL, compilers and shells do not inherit it, and adds it again for children that load the
library. HOLDFAST_SANITIZER_RUNTIME names the runtime.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

RUNTIME = os.environ.get("HOLDFAST_SANITIZER_RUNTIME", "")
os.environ.pop("LD_PRELOAD", None)

#: Programs that load the library.
HOSTS = ("host", "python", "python3")

#: A Python module that does not load it.
BACKEND = "local_supabase"


class Popen(subprocess.Popen[Any]):
    """Gives the runtime to a child that is Python or a host in C, also behind another command."""

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
