"""Stops PostgreSQL when the process that started it has ended, even by SIGKILL.

Run as `python guard.py POSTGRES_PID FOLDER_TO_REMOVE` with a pipe as standard input that only the
parent holds open: the pipe ends with the parent. An empty folder name keeps the data.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time


def alive(pid: int) -> bool:
    """Whether a process with this id runs. A zombie does not count."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rpartition(") ")[2][:1] != "Z"
    except ProcessLookupError:
        return False
    except OSError:  # no /proc here
        return True


def stop_postgres(pid: int) -> None:
    """Fast shutdown (SIGINT), then immediate (SIGQUIT), then SIGKILL, each given a minute."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if not alive(pid):
                return
            time.sleep(0.05)


def main() -> None:
    """Wait for the end of standard input, then stop the server and remove its folder."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    pid, folder = int(sys.argv[1]), sys.argv[2]
    while os.read(0, 4096):
        pass
    stop_postgres(pid)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
