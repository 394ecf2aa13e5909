"""Paths in the source tree."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
HEADER = ROOT / "include" / "holdfast.h"
SCHEMA = ROOT / "include" / "holdfast.schema.json"

#: HOLDFAST_SANITIZER selects instrumented builds ("asan", "tsan"; see Tests/sanitizers).
BUILD = ROOT / "build" / os.environ.get("HOLDFAST_SANITIZER", "")

#: HOLDFAST_EMULATOR starts programs that tests compile, where this interpreter is emulated, too.
EMULATOR = shlex.split(os.environ.get("HOLDFAST_EMULATOR", ""))

#: The two builds that every run tests.
FLAVOURS = {
    "embedded": BUILD / "lib" / "libholdfast.so",
    "runtime": BUILD / "lib-runtime" / "libholdfast.so",
}

#: HOLDFAST_FLAVOUR limits a run to one of these; wheels and app bundles carry "bundled".
#: "arm64" is tested by an emulated interpreter (mk/arm64.mk), "…-char" by Tests/packages;
#: "debug" is quick to build (`make lib-debug`).
BUILDS = FLAVOURS | {
    name: ROOT / "build" / f"lib-{name}" / "libholdfast.so"
    for name in ("bundled", "arm64", "arm64-bundled", "signed-char", "unsigned-char", "debug")
}


def chosen_flavours() -> list[str]:
    """The flavours to test in this run."""
    chosen = os.environ.get("HOLDFAST_FLAVOUR")
    if chosen is None:
        return list(FLAVOURS)
    if chosen not in BUILDS:
        raise ValueError(f"HOLDFAST_FLAVOUR must be one of {', '.join(BUILDS)}")
    return [chosen]
