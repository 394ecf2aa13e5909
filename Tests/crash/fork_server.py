"""Forks one child for every process: fork_server.py DESCRIPTOR   (LD_PRELOAD names the killer.)

A Python that has imported everything and opened nothing is forked in a few milliseconds.
DESCRIPTOR is a socket: a line of JSON asks for a life, "kill" ends the one that there is; the child
says what it does, and the fork server ["ended", status].
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
    """In the child: one life, to its end or to its death."""
    secrecy.current = secrecy.SecretsOfAChild(Path(str(order["secrets"])))
    phone = Phone.from_spec(str(order["phone"]))
    process = AppProcess(phone, line, int(str(order["seed"])), int(str(order["changes"])))
    WORKLOADS[str(order["workload"])](process)
    phone.close()


def watch(child: int, orders: IO[str]) -> int:
    """Wait for the child, and kill it when told; its wait status."""
    descriptor = os.pidfd_open(child)
    try:
        while True:
            ready, _, _ = select.select([descriptor, orders.fileno()], [], [])
            if descriptor in ready:
                return os.waitpid(child, 0)[1]
            if not orders.readline():
                sys.exit()  # whoever asked is gone; the child ends by itself
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)


def main() -> None:
    line = socket.socket(fileno=int(sys.argv[1]))
    # One line at a time, so that nothing waits in a buffer that select() does not see.
    orders = line.makefile("r", encoding="ascii", buffering=1)
    for text in orders:
        if text == "kill\n":
            continue  # came too late: that child had ended by itself
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
