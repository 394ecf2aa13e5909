"""Worker processes that add and send on the folder of a phone (children/queue_worker.py)."""

from __future__ import annotations

import subprocess
import threading

from . import children
from .phone import Phone


def start_worker(phone: Phone, count: int, minutes: int) -> subprocess.Popen[str]:
    """Start a worker process on the phone's folder."""
    return subprocess.Popen(
        children.command("queue_worker.py", phone.spec(), str(count), str(minutes)),
        stdout=subprocess.PIPE,
        text=True,
        env=children.environment(),
    )


def finish_worker(worker: subprocess.Popen[str]) -> list[str]:
    """Wait for the worker; returns the ids that it acknowledged."""
    # Read through the buffer: readline() may have read ahead, which communicate() ignores.
    assert worker.stdout is not None
    hangs = threading.Timer(300 * children.PATIENCE, worker.kill)
    hangs.start()
    with worker.stdout as stream:
        output = stream.read()
    worker.wait()
    hangs.cancel()
    return [line for line in output.split("\n")[:-1] if line not in {"ready", "done"}]
