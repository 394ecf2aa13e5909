"""The faults that can be put into the sources, and the fixed draw of those that are."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .paths import HERE, SOURCES, WORK

#: The modules that are mutated; Holdfast, the C functions' module, has no rules.
MODULES = ("Base", "Engine", "Policy", "Store", "Supabase", "Vault")

#: Texts, names and the log: no test should repeat them.
LEFT_OUT = ("Messages", "MessageCode", "ErrorCode", "Log.swift", "Version.swift", "Banners.swift")

#: The share of all places of a kind that is drawn. A smaller one where there are many places, or
#: where most faults are of little interest.
SHARES = {
    "always": 0.07,
    "arithmetic": 0.12,
    "assign": 0.12,
    "coalesce": 0.15,
    "compare": 0.22,
    "constant": 0.06,
    "drop": 0.12,
    "equal": 0.12,
    "exit": 0.12,
    "guard": 0.12,
    "logic": 0.18,
    "name": 0.18,
    "never": 0.07,
    "nil": 0.06,
    "not": 0.12,
    "range": 0.15,
    "result": 0.12,
    "swap": 0.15,
    "ternary": 0.15,
}


@dataclass(frozen=True)
class Fault:
    """One change of one place; `start` and `end` are bytes in the file."""

    #: Below Sources.
    file: str
    #: The declarations around the place, such as "Uploader.send".
    scope: str
    kind: str
    #: How it is written: "choice", "drop" or "either" (see `rewrite`).
    form: str
    start: int
    end: int
    line: int
    before: str
    after: str
    #: The place among those of its kind in its scope, from 1.
    ordinal: int

    @property
    def key(self) -> str:
        """A name that edits of other functions leave as it is."""
        return f"{self.file} {self.scope or '-'} {self.kind} {self.ordinal}"

    @property
    def module(self) -> str:
        """The module of the file."""
        return self.file.split("/")[0]

    @property
    def change(self) -> str:
        """Before and after, on one line."""
        after = one_line(self.after) or "(nothing)"
        return f"{one_line(self.before)} → {after}"


def one_line(text: str) -> str:
    """The text without line breaks and runs of spaces."""
    return " ".join(text.split())


def number_places(found: Iterable[dict[str, object]]) -> list[Fault]:
    """Faults with ordinals, from the scanner's objects in the order of a file."""
    counts: Counter[tuple[object, ...]] = Counter()
    faults = []
    for place in found:
        group = (place["file"], place["scope"], place["kind"])
        counts[group] += 1
        faults.append(Fault(**place, ordinal=counts[group]))  # type: ignore[arg-type]
    return faults


def scanner() -> Path:
    """The program that reads syntax trees, built with the toolchain's own SwiftSyntax."""
    source, program = HERE / "scan/points.swift", WORK / "points"
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return program
    info = json.loads(_output("swiftc", "-print-target-info"))
    host = Path(info["paths"]["runtimeResourcePath"]) / "host"
    libraries = [f"-lSwift{name}" for name in ("Syntax", "Parser", "Operators")]
    program.parent.mkdir(parents=True, exist_ok=True)
    # Under a name of its own first: another process may build or run the program at the same time.
    made = program.with_name(f"points-{os.getpid()}")
    _output(
        *("swiftc", "-Onone", "-I", str(host), "-L", str(host), *libraries),
        *("-Xlinker", "-rpath", "-Xlinker", str(host), str(source), "-o", str(made)),
    )
    return made.replace(program)


def scan(folder: Path, files: Iterable[str]) -> list[Fault]:
    """Every fault of these files below the folder."""
    paths = {str(folder / file): file for file in files}
    found = [json.loads(line) for line in _output(str(scanner()), *paths).splitlines()]
    return number_places({**place, "file": paths[place["file"]]} for place in found)


def all_faults() -> list[Fault]:
    """Every fault of the modules."""
    files = [
        str(path.relative_to(SOURCES))
        for module in MODULES
        for path in sorted((SOURCES / module).rglob("*.swift"))
        if not path.name.startswith(LEFT_OUT)
    ]
    return scan(SOURCES, files)


def is_drawn(fault: Fault) -> bool:
    """Whether the fault is of the fixed draw. It depends on nothing but the key."""
    digest = hashlib.sha256(f"holdfast {fault.key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64 < SHARES[fault.kind]


def drawn(faults: Iterable[Fault]) -> list[Fault]:
    """The fixed draw, at most two faults in one place."""
    places: Counter[tuple[str, int]] = Counter()
    chosen = []
    for fault in faults:
        place = (fault.file, fault.line)
        if is_drawn(fault) and places[place] < 2:
            places[place] += 1
            chosen.append(fault)
    return chosen


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
