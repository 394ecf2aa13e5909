"""Checks that a library runs on Android 7 (API 24) and later. Usage: check.py LIBRARY.

symbols.tsv lists the public symbols of Android's C libraries with the first API level that has
them. Prints every rule that the library breaks; the exit status is then 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

API = 24
PAGE = 16384
NEEDED = {"libc.so", "libm.so", "libdl.so"}
#: The columns of symbols.tsv by the machine of an ELF file.
COLUMNS = {"AArch64": "arm64_since_api", "Advanced Micro Devices X86-64": "x86_64_since_api"}


def read(option: str, library: Path) -> str:
    """The output of readelf."""
    command = ["readelf", "-W", option, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def levels(column: str) -> dict[str, int]:
    """Since which API level Android has each symbol, for a processor."""
    head, *rows = (Path(__file__).parent / "symbols.tsv").read_text().splitlines()
    at = head.split("\t").index(column)
    listed = {fields[0]: fields[at] for row in rows if (fields := row.split("\t"))}
    return {name: int(level) for name, level in listed.items() if level.isdigit()}


def broken_rules(library: Path) -> list[str]:
    """What keeps the library from running there."""
    broken: list[str] = []
    machine = re.findall(r"Machine: +(.*)", read("-h", library))[0]
    if machine not in COLUMNS:
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
    small = [
        align
        for align in re.findall(r"^ +LOAD .* (0x[0-9a-f]+)$", segments, re.MULTILINE)
        if int(align, 16) % PAGE != 0
    ]
    if small:
        broken.append(f"its segments are aligned to {small[0]}; pages of 16 kB need {PAGE:#x}")
    known = levels(COLUMNS[machine])
    for name in re.findall(
        r"^ +\d+: +0+ +0 +\w+ +GLOBAL +\w+ +UND (\S+?)(?:@.*)?$",
        read("--dyn-syms", library),
        re.MULTILINE,
    ):
        if name not in known:
            broken.append(f"it needs {name}, which Android does not have")
        elif known[name] > API:
            broken.append(f"it needs {name}, which Android has since API {known[name]}")
    return broken


if __name__ == "__main__":
    problems = broken_rules(Path(sys.argv[1]))
    for problem in problems:
        print(f"{sys.argv[1]}: {problem}", file=sys.stderr)
    sys.exit(1 if problems else 0)
