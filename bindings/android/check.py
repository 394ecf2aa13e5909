"""Checks that a library runs on Android 7 (API 24) and later. Usage: check.py LIBRARY.

The linker checks that Android 7 has every function that the library needs: build.sh links with
`-z defs` against the NDK's C library of API 24. Prints every rule that the library breaks; the exit
status is then 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = 16384
NEEDED = {"libc.so", "libm.so", "libdl.so"}
MACHINES = {"AArch64", "Advanced Micro Devices X86-64"}


def read(option: str, library: Path) -> str:
    """The output of readelf."""
    command = ["readelf", "-W", option, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def broken_rules(library: Path) -> list[str]:
    """What keeps the library from running there."""
    broken: list[str] = []
    machine = re.findall(r"Machine: +(.*)", read("-h", library))[0]
    if machine not in MACHINES:
        return [f"it is for {machine}, not for arm64 or x86-64"]
    dynamic, segments = read("-d", library), read("-l", library)
    foreign = sorted(set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)) - NEEDED)
    if foreign:
        broken.append(f"it needs {', '.join(foreign)}; only {', '.join(sorted(NEEDED))} are there")
    names = re.findall(r"\(SONAME\).*\[(.*)\]", dynamic)
    if names != [library.name]:
        broken.append(f"its name is {names}; Android packs files named lib*.so without a version")
    if re.search(r"TEXTREL", dynamic):
        broken.append("it has text relocations; Android refuses them")
    if re.search(r"\(RELR\)", dynamic):
        broken.append("it has DT_RELR relocations; Android reads them since API 30")
    if re.search(r"^ +TLS ", segments, re.MULTILINE):
        broken.append("it has thread-local storage of ELF; Android has that since API 29")
    aligned = re.findall(r"^ +LOAD .* (0x[0-9a-f]+)$", segments, re.MULTILINE)
    small = [align for align in aligned if int(align, 16) % PAGE != 0]
    if small:
        broken.append(f"its segments are aligned to {small[0]}; pages of 16 kB need {PAGE:#x}")
    return broken


if __name__ == "__main__":
    problems = broken_rules(Path(sys.argv[1]))
    for problem in problems:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)
