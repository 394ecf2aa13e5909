"""`make soak`: run the given number of seeds on every core, each part in its own process."""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from simulation import machine

ROOT = Path(__file__).resolve().parents[2]
#: Seeds per process, at most: fewer when there are too few to keep every core busy to the end.
PART = 500
PARTS_PER_JOB = 4


def main() -> int:
    """Run the seeds; return 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--flavour", choices=("embedded", "runtime"), default="embedded")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    folder = ROOT / "build" / "simulation"
    folder.mkdir(parents=True, exist_ok=True)
    environment = machine.environment(machine.build(folder))
    size = max(1, min(PART, -(-arguments.seeds // (PARTS_PER_JOB * arguments.jobs))))

    def part(first: int) -> int:
        count: int = min(size, arguments.first + arguments.seeds - first)
        command = [
            sys.executable, "-m", "simulation", "--first", str(first), "--seeds", str(count),
            "--flavour", arguments.flavour, "--go-on",
        ]  # fmt: skip
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        print(f"from {first}: {done.stdout.strip()}\n{done.stderr}".rstrip(), flush=True)
        # A process that ended early has no closing line, and none of its seeds counts as tried.
        closing = re.search(r"^(\d+) seeds, (\d+) failed", done.stdout, re.MULTILINE)
        if closing is None or int(closing[1]) != count:
            return count
        return int(closing[2])

    started = time.monotonic()
    firsts = range(arguments.first, arguments.first + arguments.seeds, size)
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        failed = sum(pool.map(part, firsts))
    took = time.monotonic() - started
    survived = arguments.seeds - failed
    print(f"reliability: simulated worlds: {arguments.seeds} tried, {survived} survived")
    print(f"{took:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
