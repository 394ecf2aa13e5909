"""Forks a child for every workload: fork_server.py DESCRIPTOR   (LD_PRELOAD names the killer)

It has imported everything and opened nothing, so a fork takes a few milliseconds. DESCRIPTOR is a
socket: a line of JSON starts a child, "kill" kills the running one; the child writes its reports,
and the fork server ["ended", status].
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import IO

from holdfast import Library

from support import secrecy
from support.phone import Phone
from workloads import WORKLOADS, AppProcess


def run(line: socket.socket, order: dict[str, object]) -> None:
    """In the child: run the workload."""
    secrecy.current = secrecy.SecretsOfAChild(Path(str(order["secrets"])))
    phone = Phone.from_spec(str(order["phone"]))
    process = AppProcess(phone, line, int(str(order["seed"])), int(str(order["changes"])))
    WORKLOADS[str(order["workload"])](process)
    phone.close()


def watch(child: int, orders: IO[str]) -> int:
    """Wait for the child, and kill it on request; returns its wait status."""
    descriptor = os.pidfd_open(child)
    try:
        while True:
            ready, _, _ = select.select([descriptor, orders.fileno()], [], [])
            if descriptor in ready:
                return os.waitpid(child, 0)[1]
            if not orders.readline():
                sys.exit()  # the parent has ended; the child ends by itself
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    # Line buffering, so that no line waits in a buffer that select() does not see.
    orders = line.makefile("r", encoding="ascii", buffering=1)
    for text in orders:
        if text == "kill\n":
            continue  # too late: the child had already ended
        order = json.loads(text)
        Library(json.loads(order["phone"])["library"])  # loaded once for all children
        child = os.fork()
        if child == 0:
            try:
                run(line, order)
            except BaseException:
                line.sendall(json.dumps(["failed", traceback.format_exc()]).encode() + b"\n")
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(watch(child, orders))
        line.sendall(json.dumps(["ended", status]).encode() + b"\n")


main()
