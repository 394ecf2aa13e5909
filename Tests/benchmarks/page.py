"""The table of results: its rows, their format, and the pages that show it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import programs
from measure import Series

PAGE = programs.ROOT / "docs" / "benchmarks.md"

#: The reason for a missed target, by the first words of the row. A miss needs a reason.
EXPLAINED: dict[str, str] = {
    "load": "on the edge: SQLite's own library is 0.7 MB of it",
    "cold start, in process": (
        "the floor reads no configuration, trusts the schema and the files' owners, and looks at "
        "no other process"
    ),
    "cold start, whole process": "the loader's work for four libraries is in both figures",
    "smallest call": (
        "half of it is the reply, made by jansson, as in the floor; then locks, clocks and a look "
        "at the file"
    ),
    "the same from Node, 100 at once": "the target is of a machine three times as fast",
    "the same from Node, each awaited": "two changes of thread, since calls write to disk",
    "queue_add, durable": (
        "a sync takes half of the time; the session and other processes are looked at before and "
        "after the commit"
    ),
    "contacts: next searches": "the floor takes as long",
}


def explanation(what: str) -> str | None:
    return next((why for words, why in EXPLAINED.items() if what.startswith(words)), None)


def seconds(value: float) -> str:
    for scale, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if value * scale >= 1 or unit == "µs":
            digits = 0 if value * scale >= 100 else 1 if value * scale >= 10 else 2
            return f"{value * scale:.{digits}f} {unit}"
    return ""


def both(series: Series) -> str:
    """Format p50 and p99."""
    return f"{seconds(series.p50)} ({seconds(series.p99)})"


def rate(series: Series, items: int) -> str:
    return f"{items / series.p50:,.0f}/s"


@dataclass
class Row:
    what: str
    embedded: str
    runtime: str
    floor: str = "—"
    ratios: str = "—"
    target: str = "—"
    met: bool | None = None

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "recorded"
        if self.met:
            return "met"
        return f"missed: {explanation(self.what) or 'not explained'}"

    def cells(self) -> list[str]:
        return [
            self.what,
            self.embedded,
            self.runtime,
            self.floor,
            self.ratios,
            self.target,
            self.verdict,
        ]


HEADER = ["what", "Embedded", "runtime", "floor", "ratio", "target", ""]


def times_text(ratios: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in ratios) + " ×"


def rates_text(ratios: list[float]) -> str:
    return " / ".join(f"{value:.2f}" for value in ratios)


def growth(sizes: list[int], ratios: list[dict[str, float]]) -> Row:
    """How calls grow with the queue. `ratios`: by flavour and call, of many items to few."""

    def cell(found: dict[str, float]) -> str:
        worst = max(found, key=lambda call: found[call])
        return f"at most {found[worst]:.2f} × ({worst})"

    few, many = sizes
    embedded, runtime = ratios
    return Row(
        f"{len(embedded)} other calls, {many:,} items queued to {few:,}",
        cell(embedded),
        cell(runtime),
        target="≤ 1.5 ×",
        met=all(value <= 1.5 for found in ratios for value in found.values()),
    )


def first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().splitlines()[0] if done.returncode == 0 else "?"


def machine(folder: Path) -> list[str]:
    processor = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = re.search(r'PRETTY_NAME="(.*)"', Path("/etc/os-release").read_text())
    kernel = ".".join(platform.release().split(".")[:2])
    file_system = first_line("findmnt", "-n", "-o", "FSTYPE", "-T", str(folder))
    versions = [f"Swift {version_of('swift', '--version')}", f"Python {platform.python_version()}"]
    versions += [
        f"{name} {first_line('pkg-config', '--modversion', package)}"
        for name, package in (
            ("SQLite", "sqlite3"),
            ("libsodium", "libsodium"),
            ("jansson", "jansson"),
        )
    ]
    system_name = system.group(1) if system else "?"
    hardware = f"{processor}, {os.cpu_count()} cores, {memory:.0f} GB, {platform.machine()}"
    return [
        f"{hardware}; Linux {kernel}, {system_name}; {file_system}",
        ", ".join(versions),
    ]


def version_of(*command: str) -> str:
    found = re.search(r"(\d+\.\d+(\.\d+)?)", first_line(*command))
    return found.group(1) if found else "?"


def table(rows: list[Row]) -> str:
    lines = ["| " + " | ".join(HEADER) + " |", "|" + "---|" * len(HEADER)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def write_page(rows: list[Row], about: list[str]) -> None:
    """Write the table between the marks of the page; the text around them is written by hand."""
    text = PAGE.read_text()
    begin, end = "<!-- written by make bench -->", "<!-- to here -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    if not after:
        sys.exit(f"{PAGE.name} has no marks for the table")
    lines = "\n".join(f"- {line}" for line in about)
    PAGE.write_text(f"{before}{begin}\n{lines}\n\n{table(rows)}\n{end}{after}")
