"""`python -m simulation`: run seeds, or replay one.

python -m simulation --seeds 1000              # seeds 0 to 999
python -m simulation --seed 17 --keep 3,8,21   # only these actions of seed 17, and the trace
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from . import machine

ROOT = Path(__file__).resolve().parents[3]
FLAVOURS = {
    "embedded": "lib", "runtime": "lib-runtime", "arm64": "lib-arm64", "debug": "lib-debug",
}  # fmt: skip


def main() -> int:
    """Run the seeds that the arguments select; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--step", type=int, default=1, help="run every n-th seed")
    parser.add_argument("--only", help="run these seeds, with a comma between them")
    parser.add_argument("--seed", type=int, help="run this seed alone and print its trace")
    parser.add_argument("--keep", help="with --seed: run only the actions with these numbers")
    parser.add_argument("--flavour", choices=FLAVOURS, default="embedded")
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each seed")
    parser.add_argument("--go-on", action="store_true", help="continue after a failure")
    parser.add_argument("--world", type=int, help="the version of the world; the newest if absent")
    arguments = parser.parse_args()
    if not machine.is_preloaded():
        _restart()
    from .report import Runner
    from .world import VERSION

    path = ROOT / "build" / FLAVOURS[arguments.flavour] / "libholdfast.so"
    runner = Runner(
        path, arguments.flavour, as_json=arguments.json, version=arguments.world or VERSION
    )
    if arguments.seed is not None:
        keep = None
        if arguments.keep is not None:
            keep = [int(n) for n in arguments.keep.split(",") if n]
        return runner.replay(arguments.seed, keep)
    last = arguments.first + arguments.seeds * arguments.step
    seeds: Sequence[int] = range(arguments.first, last, arguments.step)
    if arguments.only is not None:
        seeds = [int(n) for n in arguments.only.split(",")]
    return runner.run(seeds, go_on=arguments.go_on)


def _restart() -> NoReturn:
    """Start this program again with machine.c preloaded."""
    folder = ROOT / "build" / "simulation"
    folder.mkdir(parents=True, exist_ok=True)
    environment = machine.environment(machine.build(folder))
    command = [sys.executable, "-m", "simulation", *sys.argv[1:]]
    os.execve(sys.executable, command, environment)


if __name__ == "__main__":
    sys.exit(main())
