"""Runs scripts with pgbench and reads the time of every transaction."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from local_supabase.postgres import find_binaries

THREADS = 2


@dataclasses.dataclass(frozen=True)
class Times:
    """The times of one run, in milliseconds."""

    p50: float
    p99: float
    #: Transactions a second, and how many there were.
    rate: float
    count: int


def run(
    port: int, database: str, scripts: Sequence[tuple[str, int]], clients: int, seconds: float
) -> Times:
    """Run weighted scripts with so many clients, each on a connection of its own."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        folder = Path(name)
        command = [str(find_binaries() / "pgbench"), "--no-vacuum", "--protocol=prepared", "--log"]
        command += ["--log-prefix", str(folder / "log"), "--random-seed=1"]
        command += [f"--client={clients}", f"--jobs={min(clients, THREADS)}"]
        # pgbench counts whole seconds.
        command += [f"--time={max(1, round(seconds))}"]
        command += ["--host=127.0.0.1", f"--port={port}", "--username=authenticator"]
        for place, (script, weight) in enumerate(scripts):
            path = folder / f"{place}.sql"
            path.write_text(script, "utf-8")
            command += [f"--file={path}@{weight}"]
        done = subprocess.run(
            [*command, database], capture_output=True, text=True, check=False, cwd=folder
        )
        if done.returncode != 0 or "aborted" in done.stderr:
            raise RuntimeError(done.stderr)
        lines = [line.split() for log in folder.glob("log.*") for line in log.open()]
    # Columns: client, transaction, microseconds, script, and when it ended.
    times = sorted(int(line[2]) / 1000 for line in lines)
    ends = [int(line[4]) + int(line[5]) / 1e6 for line in lines]
    span = max(ends) - min(ends) + times[0] / 1000
    return Times(at(times, 0.50), at(times, 0.99), len(times) / max(span, 1e-3), len(times))


def at(times: Sequence[float], share: float) -> float:
    """The value that this share of the sorted times does not exceed."""
    return times[min(len(times) - 1, int(len(times) * share))]
