"""Tries changes of a data folder: planted.py LIBRARY STOCK SCRATCH CASES RUNNING FIRST END.

STOCK is the folder to copy. CASES names a file with cases, each a name and SQL. Prints the number
of each case before it runs, and what is wrong after it. RUNNING "1": the app is open while the
folder is changed. FIRST: the first case; -1: make the stock only. END: what the user does before
the network comes.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast import Library

from support.children import PATIENCE
from support.planted import DATABASE, Stock, World, make_stock

#: A case takes less than a tenth of a second.
HANGS_S = 60 * PATIENCE
#: Another process: closing a file that this one has open would drop SQLite's locks.
PLANT = """
import contextlib, json, sqlite3, sys
for line in sys.stdin:
    path, statements = json.loads(line)
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as database:
        try:
            with database:
                for statement in statements:
                    database.execute(statement)
            print(json.dumps(None), flush=True)
        except sqlite3.Error as error:
            print(json.dumps(str(error)), flush=True)
"""


class Planter:
    """Somebody who writes into the file."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PLANT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def plant(self, folder: Path, statements: list[str]) -> str | None:
        """Run the statements; returns why SQLite refuses them."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(folder / DATABASE), statements]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())  # type: ignore[no-any-return]


def attempt(
    stock: Stock, world: World, statements: list[str], running: bool, end: str, by: Planter
) -> Any:  # noqa: ANN401
    """One case; returns the faults, or null when SQLite itself refuses the change."""
    with contextlib.suppress(StopIteration):
        if running:
            world.open()
            world.online(False)
        if by.plant(world.folder, statements) is not None:
            return None
        if not running:
            world.open()
            world.online(False)
        world.read_all()
        added = world.add()
        world.end(end)
        world.settle(stock.items | ({added} if added else set()), stock.parked)
    return world.faults


def main() -> None:
    library = Library(Path(sys.argv[1]))
    folder, scratch, cases = Path(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    running, first = sys.argv[5] == "1", int(sys.argv[6])
    end = sys.argv[7]
    kept = folder.with_suffix(".stock")
    if first < 0:
        kept.write_bytes(pickle.dumps(make_stock(library, folder)))
        return
    stock = pickle.loads(kept.read_bytes())
    by = Planter()
    for number, (name, statements) in enumerate(json.loads(cases.read_text())[first:], first):
        print(json.dumps([number, name]), flush=True)
        world = stock.world(library, scratch)
        # A call that hangs ends the process, and names the case
        faulthandler.dump_traceback_later(HANGS_S, exit=True)
        try:
            faults = attempt(stock, world, statements, running, end, by)
        finally:
            world.close()
        faulthandler.cancel_dump_traceback_later()
        print(json.dumps([number, name, faults, world.errors]), flush=True)


main()
