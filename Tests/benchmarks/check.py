"""Compares counts and sizes with recorded.json: a rise of more than 5 % fails.

check.py            measure and compare
check.py record     measure and record

callgrind counts the instructions inside libholdfast.so during a call. Those of SQLite, libsodium
and the C library do not count, because they differ with the system and the processor (a library
selects among versions of a function). So the figures are the same on every machine of an
architecture under any load; random ids and hash seeds change them by a few per mille.

device.py counts system calls, wake-ups and syncs.
"""

from __future__ import annotations

import json
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import device
import programs
import work

RECORDED = programs.HERE / "recorded.json"
#: A larger rise fails.
MOST = 1.05
#: Absolute limits, whatever the rise.
LIMITS = {"embedded": 1_034_000, "runtime": 8_000_000, "bundled": 2_700_000}

#: Name -> folder, the host's mode and arguments, the counted calls, their number, and runs.
COUNTED = {
    "cold start": ("rest", ["cold"], ["open"], 1, 3),
    "queue_add": ("rest", ["add", "100", "1"], ["queue_add"], 100 + work.WARM_UP, 1),
    "contact_search": ("contacts", ["search", "59"], ["contact_search"], 60, 1),
    "item_list": ("own", ["ask", "50", "item_list"], ["item_list"], 50 + work.WARM_UP, 1),
}
CONTACTS = 1000
#: The user's stored items.
OWN = 1000
#: Items of which 1 % are bad, and the most requests that may send them to a server that names none.
BAD_DRAIN = (5_000, 540)

#: Kind -> flavour or another group -> what was counted -> the figure.
Figures = dict[str, dict[str, dict[str, float]]]


def prepared(folder: Path) -> None:
    """Make an idle folder, one with contacts, and one with own items, by the Embedded flavour."""
    programs.run("host", "embedded", "prepare", str(folder / "rest"), work.session())
    shutil.copytree(folder / "rest", folder / "contacts")
    programs.run("host", "embedded", "ingest", str(folder / "contacts"), str(CONTACTS))
    shutil.copytree(folder / "rest", folder / "own")
    programs.run("host", "embedded", "own", str(folder / "own"), str(OWN))


def callgrind(program: list[str], calls: list[str], environment: dict[str, str]) -> int:
    """Count the instructions of one run, inside the library and during these calls."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
        command += ["--collect-atstart=no"]
        command += [f"--toggle-collect=holdfast_{call}*" for call in calls]
        done = subprocess.run(
            [*command, *program], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            sys.exit(f"{' '.join([*command, *program])}\n{done.stderr}")
        return inside(output.read_text())


def instructions(flavour: str, template: Path, arguments: list[str], calls: list[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(template, f"{folder}/copy")
        program = [str(programs.path("host")), arguments[0], f"{folder}/copy", *arguments[1:]]
        return callgrind(program, calls, programs.environment(flavour))


def inside(profile: str) -> int:
    """Return the instructions that a callgrind file charges to the library's own code.

    A file's lines are: "ob=(id) name" for all that follows until the next one; "calls=" before a
    line that counts what a callee took, which stands under the callee too; other lines that begin
    with a position count what the function itself took.
    """
    names: dict[str, str] = {}
    is_ours = skips = False
    total = 0
    for line in profile.splitlines():
        if (found := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?", line)) is not None:
            of_callee, number, name = found.groups()
            if name is not None:
                names[number] = name
            if not of_callee:
                is_ours = Path(names[number]).name.startswith("libholdfast.so")
        elif line.startswith("calls="):
            skips = True
        elif line[:1] in "0123456789+-*" and line:
            if is_ours and not skips:
                total += int(line.split()[1])
            skips = False
    return total


def counts(flavour: str, folder: Path) -> dict[str, int]:
    result = {}
    for name, (template, arguments, calls, times, runs) in COUNTED.items():
        found = [
            instructions(flavour, folder / template, arguments, calls) // times for _ in range(runs)
        ]
        result[name] = round(statistics.median(found))
    return result


def requests_of_bad_drain() -> int:
    """Return how many requests send items of which 1 % are bad."""
    with tempfile.TemporaryDirectory() as folder:
        place = f"{folder}/queue"
        programs.run("host", "embedded", "prepare", place, work.session())
        programs.run("floor", "embedded", "fill", place, str(BAD_DRAIN[0]), "1")
        found: int = programs.run("host", "embedded", "drain", place, str(BAD_DRAIN[0]))["requests"]
        return found


def sizes() -> dict[str, int]:
    return {flavour: programs.library(flavour).stat().st_size for flavour in LIMITS}


def measure() -> Figures:
    programs.build()
    flavours = programs.FLAVOURS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepared(folder)
        return {
            "instructions": {flavour: {**counts(flavour, folder)} for flavour in flavours},
            "system calls": {
                flavour: device.system_calls(flavour, folder / "contacts") for flavour in flavours
            },
            "in an hour": {
                flavour: {**device.hour(flavour, folder / "rest")} for flavour in flavours
            },
            "bytes": {"stripped": {**sizes()}},
        }


def compare(found: Figures) -> bool:
    """Print every figure beside the recorded one; return whether none has risen too far."""
    recorded = json.loads(RECORDED.read_text())[platform.machine()]
    is_good = True
    for kind, groups in found.items():
        for group, figures in groups.items():
            for name, figure in figures.items():
                before = recorded.get(kind, {}).get(group, {}).get(name)
                verdict = ""
                if before is None:
                    before, verdict = figure, "  not recorded yet"
                if figure > before * MOST:
                    verdict = "  more than 5 % above what is recorded"
                if kind == "bytes" and figure > LIMITS[name]:
                    verdict += f"  above {LIMITS[name]:,}"
                is_good = is_good and not verdict
                what = f"{name}, {group}, {kind}"
                rise = figure / before - 1 if before > 0 else 0
                print(f"{what:64} {figure:>12,} {before:>12,} {rise:>+7.1%}{verdict}")
    return is_good


def main() -> None:
    found = measure()
    if sys.argv[1:] == ["record"]:
        known = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
        known[platform.machine()] = found
        RECORDED.write_text(json.dumps(known, indent=2) + "\n")
    requests = requests_of_bad_drain()
    what = f"requests for {BAD_DRAIN[0]:,} items, 1 % bad"
    print(f"{what:48} {requests:>12,} {BAD_DRAIN[1]:>12,}")
    if requests > BAD_DRAIN[1]:
        sys.exit("Items that the server refuses cost more requests than they should.")
    if not compare(found):
        sys.exit(
            "What the library costs has risen. If that is what is wanted: make bench-record,"
            " and say why in the commit."
        )


if __name__ == "__main__":
    main()
