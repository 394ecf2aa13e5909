"""The workloads of an app process that will be killed.

Before every call the child reports what it will do, and after the call that it is done. What it
reported as done is acknowledged. It reports over a socket, since the killer counts only changes of
files.
"""

from __future__ import annotations

import ctypes
import json
import random
import socket
import uuid
from collections.abc import Callable
from typing import Any

from holdfast import HoldfastError

from support.phone import TOKEN_S, App, Phone

#: At most this many calls in one workload.
ENOUGH = 150
#: The most that the server's rule allows.
MOST_MINUTES = 1440


class AppProcess:
    """An app on the phone, and the socket to the parent."""

    def __init__(self, phone: Phone, line: socket.socket, seed: int, changes: int) -> None:
        self.phone = phone
        self.chance = random.Random(seed)
        self._line = line
        #: Die at this file change; 0: the parent kills the process.
        self._changes = changes

    def report(self, what: str, value: object = None) -> None:
        """Report to the parent."""
        self._line.sendall(json.dumps([what, value]).encode("ascii") + b"\n")

    def begin(self) -> None:
        """Start the part in which the process may be killed."""
        self.report("begin")
        if self._changes:
            ctypes.CDLL(None).killer_arm(ctypes.c_long(self._changes))

    def start(self, *, online: bool) -> App:
        """Start the app and bring it home."""
        app = self.phone.start(online=online)
        if app.screen["message"] and app.screen["message"]["code"] == "token_expired":
            app.touch()
        assert app.screen["screen"] == "home", app.screen
        return app

    def pass_time(self, seconds: int) -> None:
        """Advance both clocks, here and for the next processes."""
        ms = seconds * 1000
        self.report("time", [self.phone.now_ms + ms, self.phone.monotonic_ms + ms])
        self.phone.pass_time(seconds)

    # User actions -----------------------------------------------------------------------------

    def add(self, app: App) -> str:
        """Register an activity, with an id from the host or from the library."""
        note = f"et notat {self.chance.getrandbits(96):024x}"
        minutes = self.chance.randint(1, MOST_MINUTES)
        request: Any = {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": minutes, "note": note},
            "occurred_at_ms": self.phone.now_ms,
        }
        if self.chance.random() < 0.5:
            request["id"] = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        self.report("add", [note, minutes])
        added = app.queue_add(request)
        self.report("added", [note, added["id"]])
        return added["id"]

    def edit(self, app: App, item: str) -> None:
        """Edit an activity, unless it is in flight or was sent."""
        try:
            found = app.queue_get({"id": item})
            if "item" not in found:
                return
            payload = found["item"]["payload"]
            note, minutes = payload["note"], self.chance.randint(1, MOST_MINUTES)
            self.report("edit", [note, minutes])
            app.queue_edit({"id": item, "payload": {**payload, "minutes": minutes}})
        except HoldfastError as error:
            if error.code not in {"queue.in_flight", "queue.not_found"}:
                raise
        else:
            self.report("edited", [note, minutes])

    def cancel(self, app: App) -> None:
        """Register an activity and cancel it."""
        item = self.add(app)
        note = app.queue_get({"id": item})["item"]["payload"]["note"]
        self.report("cancel", note)
        app.queue_cancel({"id": item, "force": True})
        self.report("cancelled", note)

    # Corrections ------------------------------------------------------------------------------

    def change(self, app: App, item: str) -> None:
        """Change an activity, wherever it is. A deletion that is being sent refuses that."""
        minutes = self.chance.randint(1, MOST_MINUTES)
        self.report("change", [item, minutes])
        try:
            found = app.queue_get({"id": item}).get("item")
            payload = {"minutes": minutes}
            if found is not None and found["operation"] == "insert":
                payload = {**found["payload"], "minutes": minutes}
            app.queue_edit({"id": item, "payload": payload})
        except HoldfastError as error:
            # Of a row that was deleted nothing is kept.
            if error.code not in {"queue.in_flight", "queue.not_found"}:
                raise
            self.report("unchanged", [item, minutes])
        else:
            self.report("changed", [item, minutes])

    def take_back(self, app: App, item: str) -> None:
        """Take an activity back, wherever it is."""
        self.report("take_back", item)
        try:
            app.queue_cancel({"id": item})
        except HoldfastError as error:
            if error.code != "queue.not_found":
                raise
        else:
            self.report("taken_back", item)


def add(process: AppProcess) -> None:
    """Register items."""
    app = process.start(online=False)
    process.begin()
    for _ in range(ENOUGH):
        process.add(app)


def edit(process: AppProcess) -> None:
    """Edit and cancel queued items, and register more."""
    app = process.start(online=False)
    items = [process.add(app) for _ in range(3)]
    items += [item["id"] for item in app.queue_list({"limit": 20})["items"]]
    process.begin()
    for _ in range(ENOUGH):
        if process.chance.random() < 0.2:
            process.cancel(app)
        else:
            process.edit(app, process.chance.choice(items))


def drain(process: AppProcess) -> None:
    """Register, edit and send."""
    app = process.start(online=True)
    process.begin()
    for _ in range(ENOUGH):
        item = process.add(app)
        if process.chance.random() < 0.3:
            step = app.step()
            if process.chance.random() < 0.5 and not step.idle:
                process.edit(app, item)


#: Steps of `correct`: more than its kills reach.
STEPS = 40


def correct(process: AppProcess) -> None:
    """Change and take back what waits, is in flight, and is stored; send it."""
    app = process.start(online=True)
    items = [process.add(app) for _ in range(3)]
    app.settle()
    process.begin()

    def send(request: Any) -> Any:  # noqa: ANN401 - a request and its answer
        answer = process.phone.network(request)
        if request["purpose"] == "upload" and process.chance.random() < 0.5:
            process.change(app, process.chance.choice(items))
        return answer

    for _ in range(STEPS):
        draw = process.chance.random()
        if draw < 0.1:
            items.append(process.add(app))
        elif draw < 0.5:
            process.change(app, process.chance.choice(items))
        elif draw < 0.6:
            process.take_back(app, process.chance.choice(items))
        else:
            app.round(send)
    app.settle()


def refresh(process: AppProcess) -> None:
    """Let the token expire and refresh it, repeatedly."""
    app = process.start(online=True)
    process.begin()
    for _ in range(20):
        process.pass_time(TOKEN_S)
        for _ in range(10):
            app.step()
            if "refresh" not in app.session_status()["owed"]:
                break


def logout(process: AppProcess) -> None:
    """Log out and revoke the session on the server."""
    app = process.start(online=True)
    process.add(app)
    process.begin()
    process.report("logout")
    app.session_logout({"scope": process.chance.choice(["local", "global"]), "unsent": "keep"})
    process.report("logged_out")
    app.settle()


def org_switch(process: AppProcess) -> None:
    """Switch between two organisations and register items in each."""
    app = process.start(online=process.chance.random() < 0.7)
    orgs = [org["org_id"] for org in app.org_list()["orgs"]]
    process.begin()
    for _ in range(40):
        org = process.chance.choice(orgs)
        process.report("select", org)
        app.org_select({"org_id": org})
        process.report("selected", org)
        app.settle()
        process.add(app)


def first_start(process: AppProcess) -> None:
    """The first start, which creates the files and the device key."""
    process.begin()
    app = process.phone.start(online=False)
    assert app.screen["screen"] == "sign_in", app.screen
    app.sign_in_begin({"method": "bankid"})


def salvage(process: AppProcess) -> None:
    """Start with a damaged file, which is set aside and salvaged."""
    process.begin()
    app = process.start(online=False)
    process.report("carried")
    app.settle()
    for _ in range(3):
        process.add(app)


_ALL = (add, edit, drain, correct, refresh, logout, org_switch, first_start, salvage)
#: The workloads by name.
WORKLOADS: dict[str, Callable[[AppProcess], None]] = {
    workload.__name__: workload for workload in _ALL
}
