"""Writes the figures of the README from what the runs have left behind.

`--write` takes the libraries' sizes from build/ into figures.json and writes the README; without it,
it says whether the README has what is recorded. Sources:

- figures.json: sizes in bytes, by library;
- benchmarks.json, if there is one, written by `make bench`:
  {"machine": "...", "figures": [{"name": "cold start", "value": "1.9 ms", "floor": "1.2 ms", "ratio": "1.6"}]};
- reliability.md: the first two columns and the third of its first table.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
SIZES = ROOT / "docs/figures.json"
BENCHMARKS = ROOT / "docs/benchmarks.json"
RELIABILITY = ROOT / "docs/reliability.md"
OPEN, CLOSE = "<!-- figures -->", "<!-- /figures -->"

LIBRARIES = {
    "lib/libholdfast.so": "the library: Embedded Swift, beside SQLite, libsodium, jansson and libc",
    "lib-bundled/libholdfast.so": "the same with those three inside, beside libc alone",
    "lib-runtime/libholdfast.so": "the same in ordinary Swift, with its runtime inside",
    "lib/libholdfast_http.so": "the driver, beside libcurl",
}


def measure() -> dict[str, int]:
    """The sizes of what is built; what is not keeps its last one."""
    known: dict[str, int] = json.loads(SIZES.read_text("utf-8")) if SIZES.exists() else {}
    for library in LIBRARIES:
        built = ROOT / "build" / library
        if built.exists():
            known[library] = built.stat().st_size
    return {library: known[library] for library in LIBRARIES if library in known}


def size_rows(sizes: dict[str, int]) -> list[str]:
    return [f"| {LIBRARIES[library]} | {size:,} bytes |" for library, size in sizes.items()]


def bench_rows() -> list[str]:
    if not BENCHMARKS.exists():
        return []
    measured = json.loads(BENCHMARKS.read_text("utf-8"))
    rows = ["", f"| on {measured['machine']} | here | C floor | ratio |", "|---|---|---|---|"]
    for figure in measured["figures"]:
        floor, ratio = figure.get("floor", ""), figure.get("ratio", "")
        rows.append(f"| {figure['name']} | {figure['value']} | {floor} | {ratio} |")
    if (ROOT / "docs/benchmarks.md").exists():
        rows += ["", "How they are taken: [benchmarks.md](docs/benchmarks.md)."]
    return rows


def reliability_rows() -> list[str]:
    table = re.findall(r"^\| (.+?) \| ([\d,]+) \| (\w+) \|", RELIABILITY.read_text("utf-8"), flags=re.MULTILINE)
    rows = ["", "| what tries to break it | tries | survived |", "|---|---|---|"]
    for what, count, survived in table:
        plain = re.sub(r" \([^()]*`[^()]*\)", "", what)
        rows.append(f"| {plain} | {count} | {survived} |")
    return rows


def figures(sizes: dict[str, int]) -> str:
    rows = ["| size, stripped | |", "|---|---|", *size_rows(sizes), *bench_rows(), *reliability_rows()]
    return "\n".join([OPEN, *rows, CLOSE])


def readme(sizes: dict[str, int]) -> str:
    text = README.read_text("utf-8")
    before, rest = text.split(OPEN, 1)
    return before + figures(sizes) + rest.split(CLOSE, 1)[1]


def main() -> int:
    if "--write" in sys.argv[1:]:
        sizes = measure()
        SIZES.write_text(json.dumps(sizes, indent=2) + "\n", "utf-8")
        README.write_text(readme(sizes), "utf-8")
        return 0
    if readme(json.loads(SIZES.read_text("utf-8"))) == README.read_text("utf-8"):
        return 0
    print("the README's figures are not current: make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
