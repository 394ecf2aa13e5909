"""Other processes on a user's folder; and the calls that a handle may make first after a lock."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.transport import Answer
from holdfast.types import HttpRequest

from . import children
from .held import return_to_foreground
from .phone import App
from .users import SignedIn

ENDS: dict[str, Callable[[App], object]] = {
    "session_lock": lambda app: app.session_lock(),
    "session_logout": lambda app: app.session_logout(),
}
#: The first call that the handle makes afterwards.
FIRST: dict[str, Callable[[App], object]] = {
    "session_resume": lambda app: app.session_resume(),
    "session_foreground": lambda app: app.session_foreground(),
    "poll": lambda app: app.poll(),
    "session_status": lambda app: app.session_status(),
}


def started(
    command: list[str], environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """A process that the test writes lines to and reads lines from."""
    return subprocess.Popen(
        command,
        env=children.environment(environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def program(text: str, user: SignedIn, *arguments: str) -> list[str]:
    """The command for a program on the user's folder."""
    return [*children.command("-")[:1], "-c", text, user.phone.spec(), *arguments]


@contextmanager
def ended_by_another_process(user: SignedIn, operation: str) -> Iterator[None]:
    """Another process lets the user in and calls the operation; it lives on."""
    arguments = user.phone.spec(), operation, str(user.phone.keychain.path)
    with started(children.command("end_session.py", *arguments)) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline().strip() == "ended"
        yield
        process.stdin.close()
        assert process.wait(60 * children.PATIENCE) == 0


@contextmanager
def child(script: str, user: SignedIn, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process on the user's folder, which goes on at each line."""
    with started(children.command(script, user.phone.spec(), *arguments)) as process:
        try:
            yield process
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(60 * children.PATIENCE)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


#: Holds the write lock of a file until its input ends, as a process does that is suspended.
HOLDER = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    """A process that holds the write lock of this file until `communicate`."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLDER, str(path)]
    made = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
    assert said(made) == "locked"
    return made


def lock_cache_during_the_guard(user: SignedIn) -> None:
    """The app returns, and its cache cannot be written when the list of memberships comes."""
    holders: list[subprocess.Popen[str]] = []

    def hold(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] == "guard":
            holders.append(holder(user.phone.folder / "cache.db"))
        elif holders:
            holders[0].communicate()
        return answer

    user.phone.network.alter.append(hold)
    return_to_foreground(user)
    [held] = holders
    held.communicate()
    user.phone.network.alter.clear()
