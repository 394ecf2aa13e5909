"""Writes the summary of sizes and times in docs/benchmarks.md from the recorded runs.

`--write` first copies the sizes of the libraries in build/ to figures.json. Without it, the script
only checks that the summary matches what is recorded. Sources:

- figures.json: sizes in bytes, by library;
- benchmarks.json, written by `make bench`:
  {"machine": "...", "figures": [{"name": "cold start", "value": "1.9 ms", "floor": "1.2 ms", "ratio": "1.6"}]}.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/benchmarks.md"
SIZES = ROOT / "docs/figures.json"
BENCHMARKS = ROOT / "docs/benchmarks.json"
OPEN, CLOSE = "<!-- figures -->", "<!-- /figures -->"

LIBRARIES = {
    "lib/libholdfast.so": "Embedded Swift; needs SQLite, libsodium, jansson and libc",
    "lib-bundled/libholdfast.so": "the same with those three inside; needs libc only",
    "lib-runtime/libholdfast.so": "ordinary Swift, with its runtime inside",
    "lib/libholdfast_http.so": "the driver; needs libcurl",
}


def measure() -> dict[str, int]:
    """The sizes of the built libraries; a library that is not built keeps its recorded size."""
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
    rows = ["", f"| on {measured['machine']} | Holdfast | C floor | ratio |", "|---|---|---|---|"]
    for figure in measured["figures"]:
        floor, ratio = figure.get("floor", ""), figure.get("ratio", "")
        rows.append(f"| {figure['name']} | {figure['value']} | {floor} | {ratio} |")
    return rows


def figures(sizes: dict[str, int]) -> str:
    rows = ["| library, stripped | size |", "|---|---|", *size_rows(sizes), *bench_rows()]
    return "\n".join([OPEN, *rows, CLOSE])


def page(sizes: dict[str, int]) -> str:
    text = PAGE.read_text("utf-8")
    before, rest = text.split(OPEN, 1)
    return before + figures(sizes) + rest.split(CLOSE, 1)[1]


def main() -> int:
    if "--write" in sys.argv[1:]:
        sizes = measure()
        SIZES.write_text(json.dumps(sizes, indent=2) + "\n", "utf-8")
        PAGE.write_text(page(sizes), "utf-8")
        return 0
    if page(json.loads(SIZES.read_text("utf-8"))) == PAGE.read_text("utf-8"):
        return 0
    print("the summary in docs/benchmarks.md is out of date: run make docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
