"""Whether an operation costs the same with a long queue as with a short one, in instructions.

flat.py                all operations, with 100 and 20,000 items; above 1.5 times fails
flat.py OPERATION...   these

callgrind counts all instructions during the calls, SQLite's included: that is where a scan shows.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import programs
import work
from bench import QUEUE_CALLS, list_all

SIZES = (100, 20_000)
#: A larger ratio fails.
MOST = 1.5
CALLS = 5


def filled(folder: Path, items: int) -> Path:
    """Make a folder with this many items, whose sums are kept already."""
    place = folder / str(items)
    programs.run("host", "embedded", "prepare", str(place), work.session())
    programs.run("floor", "embedded", "fill", str(place), str(items), "0")
    programs.run("host", "embedded", "ask", str(place), "1", "summary_get")
    list_all(place)
    # Otherwise the log of one folder is copied into the file during the calls
    with contextlib.closing(sqlite3.connect(place / "data/holdfast.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return place


def instructions(template: Path, call: str) -> int:
    """Count the instructions of all calls of an operation, on a copy."""
    name = call.split()[0]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "copy")
        shutil.copytree(template, place)
        output = Path(folder, "callgrind.out")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}"]
        command += ["--collect-atstart=no", f"--toggle-collect=holdfast_{name}*"]
        command.append(str(programs.path("host")))
        is_add = call == "queue_add"
        command += [*(["pile"] if is_add else ["ask"]), str(place), str(CALLS)]
        command += [] if is_add else [call]
        environment = programs.environment(os.environ.get("FLAVOUR", "embedded"))
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        found = re.search(r"^(?:summary|totals): (\d+)", output.read_text(), re.MULTILINE)
        if found is None:
            sys.exit(f"{call}: no instructions were counted")
        return int(found[1])


def main() -> None:
    programs.build()
    is_flat = True
    with tempfile.TemporaryDirectory() as folder:
        places = [filled(Path(folder), items) for items in SIZES]
        for call in sys.argv[1:] or ["queue_add", *QUEUE_CALLS]:
            short, long = (instructions(place, call) for place in places)
            is_flat = is_flat and long <= MOST * short
            print(f"{call:20} {short:>12,} {long:>12,} {long / short:>6.2f}", flush=True)
    if not is_flat:
        sys.exit(f"An operation costs more than {MOST} times as much with {SIZES[1]:,} items.")


if __name__ == "__main__":
    main()
