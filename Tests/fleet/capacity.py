"""Runs the simulation with the measured costs of requests: python3 capacity.py FLEET FOLDER.

`make bench-server` records how many requests of each kind the database carries with 16 connections
on all cores of its machine. So a request takes cores / rate of a core's second. An upload costs a
part for itself and a part for each item: the line through the uploads of 5 and of 500 items. The
auth service was not measured: a refresh counts as an upload of five, the dearest write of a device.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).resolve().parents[1] / "scale" / "recorded.json"
CONNECTIONS = "16"
DEVICES = 100_000
#: The cores that PostgreSQL has for itself, and those of a smaller size, to compare with. Each
#: counts as one of the measured cores.
CORES, FEWER = 6, 4
SMALL, LARGE = "upload of 5, by table", "upload of 500, by table"

Recording = dict[str, Any]


class MissingError(Exception):
    """The recording lacks a number that the simulation needs."""


def value(recorded: Recording, *keys: str) -> object:
    """Return a member of the recording; raise `MissingError` with its path."""
    found: object = recorded
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            raise MissingError(
                f"Tests/scale/recorded.json has no {' / '.join(keys)}: make bench-server records it"
            )
        found = found[key]
    return found


def measured_cores(recorded: Recording) -> int:
    """Return the number of cores of the machine that was measured."""
    found = re.search(r"\b([1-9]\d*) cores\b", str(value(recorded, "machine")))
    if not found:
        raise MissingError("Tests/scale/recorded.json: machine does not tell its cores")
    return int(found[1])


def core_us(recorded: Recording, request: str) -> float:
    """Return the microseconds of a core that a request takes."""
    rate = value(recorded, "clients", request, CONNECTIONS, "per_second")
    if not isinstance(rate, int | float) or rate <= 0:
        raise MissingError(f"Tests/scale/recorded.json: {request} has no rate above 0")
    return 1_000_000 * measured_cores(recorded) / rate


def costs(recorded: Recording) -> list[int]:
    """Return the costs in microseconds of a core, in the order of the simulation's arguments."""
    small, large = core_us(recorded, SMALL), core_us(recorded, LARGE)
    item = (large - small) / 495
    found = [
        small,
        core_us(recorded, "membership check"),
        small - 5 * item,
        item,
        core_us(recorded, "delta read of contacts"),
        core_us(recorded, "summary"),
    ]
    if min(found) < 1:
        raise MissingError("Tests/scale/recorded.json: an upload of 500 costs less than one of 5")
    return [round(cost) for cost in found]


def simulate(fleet: Path, folder: Path, recorded: Recording, devices: int) -> None:
    """Run all scenarios; they write into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    numbers = map(str, [devices, CORES, FEWER, *costs(recorded)])
    (folder / "costs.json").write_text(json.dumps(costs(recorded)))
    subprocess.run([str(fleet), str(folder), *numbers], check=True)


if __name__ == "__main__":
    try:
        simulate(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(RECORDED.read_text()), DEVICES)
    except MissingError as error:
        sys.exit(str(error))
