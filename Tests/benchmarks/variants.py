"""Counts the instructions per call of the variants that check.py does not compare; records them.

callgrind counts for musl and for the library with SQLite, libsodium and jansson inside; count.c, a
plugin of qemu, for arm64. What is counted is the same: instructions inside libholdfast.so during a
call. Where the three libraries are inside, theirs count too.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import check
import programs

ROOT = programs.ROOT
#: Variant -> the folder of its library below build/, and the folder of the host.
NATIVE = {"bundled": ("lib-bundled", "bench"), "musl": ("lib-musl", "bench-musl")}
EMULATED = {
    "arm64": ("lib-arm64", "bench-arm64"),
    "arm64-bundled": ("lib-arm64-bundled", "bench-arm64"),
}


def offset(library: Path, call: str) -> str:
    """Where a function begins in the library."""
    command = ["nm", "-D", "--defined-only", str(library)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(rf"^([0-9a-f]+) T holdfast_{call}(@|$)", table, re.MULTILINE)
    if found is None:
        sys.exit(f"{library} has no holdfast_{call}")
    return f"0x{found[1]}"


def emulated(variant: str, folder: Path, arguments: list[str], calls: list[str]) -> int:
    """Count one run under the emulator."""
    lib, bench = EMULATED[variant]
    library = ROOT / "build" / lib / "libholdfast.so"
    result = folder / "result"
    options = {
        "library": f"{lib}/libholdfast.so",
        "program": f"{bench}/host",
        "calls": "+".join(offset(library, call) for call in calls),
        "result": result,
    }
    given = ",".join(f"{name}={value}" for name, value in options.items())
    command = ["qemu-aarch64", "-L", str(ROOT / ".build/arm64-root")]
    command += ["-E", f"LD_LIBRARY_PATH={library.parent}"]
    command += ["-plugin", f"{programs.BUILD / 'count.so'},{given}"]
    command += [str(ROOT / "build" / bench / "host"), arguments[0], f"{folder}/copy"]
    done = subprocess.run(
        [*command, *arguments[1:]], capture_output=True, text=True, check=False, env=os.environ
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    total, began = map(int, result.read_text().split())
    if began == 0:
        sys.exit(f"{variant}: no call of {calls} was seen")
    return total


def native(variant: str, folder: Path, arguments: list[str], calls: list[str]) -> int:
    """Count one run under callgrind."""
    lib, bench = NATIVE[variant]
    host = ROOT / "build" / bench / "host"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(ROOT / "build" / lib)}
    return check.callgrind(
        [str(host), arguments[0], f"{folder}/copy", *arguments[1:]], calls, environment
    )


def counts(variant: str, prepared: Path) -> dict[str, int]:
    count = emulated if variant in EMULATED else native
    found = {}
    for name, (template, arguments, calls, times, runs) in check.COUNTED.items():
        each = []
        for _ in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                shutil.copytree(prepared / template, f"{folder}/copy")
                each.append(count(variant, Path(folder), arguments, calls) // times)
        found[name] = round(statistics.median(each))
    return found


def main() -> None:
    programs.build()
    with tempfile.TemporaryDirectory() as folder:
        check.prepared(Path(folder))
        found = {variant: counts(variant, Path(folder)) for variant in (*NATIVE, *EMULATED)}
    known = json.loads(check.RECORDED.read_text())
    known["variants"] = found
    check.RECORDED.write_text(json.dumps(known, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
