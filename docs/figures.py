"""Writes sizes and counts of docs/benchmarks.md, from what is recorded.

`--write` first copies the sizes of the libraries and packages in build/ to figures.json. Without it, the script
only checks that the page matches what is recorded. Sources:

- figures.json: sizes in bytes, by library and package;
- Tests/benchmarks/recorded.json, written by `make bench-record`: instructions and system calls per call;
  wake-ups, requests and syncs in an hour.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/benchmarks.md"
SIZES = ROOT / "docs/figures.json"
RECORDED = ROOT / "Tests/benchmarks/recorded.json"
OPEN, CLOSE = "<!-- figures -->", "<!-- /figures -->"

LIBRARIES = {
    "lib/libholdfast.so": "Embedded Swift; needs SQLite, libsodium and libc",
    "lib-bundled/libholdfast.so": "the same with SQLite and libsodium inside; needs libc only",
    "lib-musl/libholdfast.so": "the same for musl",
    "lib-arm64/libholdfast.so": "Embedded Swift for arm64 Linux",
    "lib-arm64-bundled/libholdfast.so": "the same with both inside, SQLite optimised for size",
    "lib-runtime/libholdfast.so": "ordinary Swift, with its runtime inside",
    "lib/libholdfast_http.so": "the driver; needs libcurl",
}

#: What a package manager fetches, by where the build puts it.
PACKAGES = {
    "wheel/holdfast-*-manylinux*_x86_64.whl": "Python: the wheel for x86-64 Linux, with the bundled library",
    "jvm/holdfast.jar": "Java: `holdfast.jar`, with the bundled library",
    "jvm/holdfast-kotlin.jar": "Kotlin: `holdfast-kotlin.jar`, beside it",
    "jvm/holdfast-okhttp.jar": "OkHttp: `holdfast-okhttp.jar`, beside it",
    "node/holdfast-*.tgz": "Node and Electron: the package, with the bundled library",
}

#: Flavour -> its row.
FLAVOURS = {"embedded": "x86-64, Embedded Swift", "runtime": "x86-64, ordinary Swift"}
COUNTED = {
    "cold start": "cold start",
    "queue_add": "`queue_add`",
    "contact_search": "`contact_search`",
    "item_list": "`item_list`",
}


def measure() -> dict[str, int]:
    """The sizes of the built libraries; a library that is not built keeps its recorded size."""
    known: dict[str, int] = json.loads(SIZES.read_text("utf-8")) if SIZES.exists() else {}
    names = [*LIBRARIES, *PACKAGES]
    for name in names:
        built = sorted((ROOT / "build").glob(name))
        if built:
            known[name] = built[-1].stat().st_size
    return {name: known[name] for name in names if name in known}


def size_rows(names: dict[str, str], sizes: dict[str, int]) -> list[str]:
    return [f"| {names[name]} | {size:,} bytes |" for name, size in sizes.items() if name in names]


def count_rows() -> list[str]:
    """Instructions per call, by flavour."""
    known = json.loads(RECORDED.read_text("utf-8"))["x86_64"]["instructions"]
    rows = ["", f"| instructions | {' | '.join(COUNTED.values())} |"]
    rows += ["|---" * (len(COUNTED) + 1) + "|"]
    for flavour, name in FLAVOURS.items():
        counts = [f"{known[flavour][call]:,}" for call in COUNTED]
        rows.append(f"| {name} | {' | '.join(counts)} |")
    return rows


def device_rows() -> list[str]:
    """What costs a device: system calls per call; wake-ups, requests and syncs in an hour."""
    recorded = json.loads(RECORDED.read_text("utf-8"))["x86_64"]
    calls, hours = (recorded[kind]["embedded"] for kind in ("system calls", "in an hour"))
    rows = ["", f"| system calls | {' | '.join(f'`{call}`' for call in calls)} |"]
    rows += ["|---" * (len(calls) + 1) + "|"]
    rows += [f"| on Linux | {' | '.join(f'{count:g}' for count in calls.values())} |"]
    rows += ["", "| in an hour | wake-ups | requests | syncs |", "|---|---|---|---|"]
    for hour in dict.fromkeys(name.split(": ")[0] for name in hours):
        syncs = hours[f"{hour}: syncs of the queue"] + hours[f"{hour}: syncs of the cache"]
        rows.append(
            f"| {hour} | {hours[f'{hour}: wake-ups']} | {hours[f'{hour}: requests']} | {syncs} |"
        )
    return rows


def size_table(sizes: dict[str, int]) -> list[str]:
    return ["| library, stripped | size |", "|---|---|", *size_rows(LIBRARIES, sizes)]


def package_table(sizes: dict[str, int]) -> list[str]:
    return ["", "| package | size |", "|---|---|", *size_rows(PACKAGES, sizes)]


def with_rows(page: Path, rows: list[str]) -> str:
    before, rest = page.read_text("utf-8").split(OPEN, 1)
    return before + "\n".join([OPEN, *rows, CLOSE]) + rest.split(CLOSE, 1)[1]


def pages(sizes: dict[str, int]) -> dict[Path, str]:
    """The text that each page should have."""
    table = size_table(sizes)
    return {
        PAGE: with_rows(PAGE, [*table, *package_table(sizes), *count_rows(), *device_rows()]),
    }


def main() -> int:
    if "--write" in sys.argv[1:]:
        sizes = measure()
        SIZES.write_text(json.dumps(sizes, indent=2) + "\n", "utf-8")
        for page, text in pages(sizes).items():
            page.write_text(text, "utf-8")
        return 0
    current = pages(json.loads(SIZES.read_text("utf-8")))
    stale = [page.name for page, text in current.items() if page.read_text("utf-8") != text]
    if stale:
        print(
            f"the figures in {' and '.join(stale)} are out of date: run make docs", file=sys.stderr
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
