"""An app on a data folder that somebody else has changed, with a server of canned answers.

Each world is a copy of one folder (`Stock`), so many changes can be tried without a backend.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import sqlite3
import urllib.parse
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast import HoldfastError

from .flips import Keys
from .loop import Host, Round

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast import Library
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest

USER = "0a000000-0000-4000-8000-000000000002"
ORG = "0f000000-0000-4000-8000-000000000003"
START_MS = 1_795_353_498_000
HOURS_MS = 2 * 3_600_000
#: More polls than two hours need.
STEPS = 300
#: A call, and the calls after a failure of the storage.
CALLS = 2
DATABASE = "holdfast.db"


def encoded(value: object) -> str:
    """A part of a token."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@dataclass
class Answers:
    """The server: it stores what it is sent, and refuses the items that `refused` names."""

    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: How often each item was stored.
    inserts: dict[str, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    #: The next uploads are stored, and their answers are lost.
    lose: int = 0
    uploads: int = 0

    def session(self) -> dict[str, Any]:
        """A token reply."""
        issued = START_MS // 1000
        lasts = 400 * 86400
        token = f"{encoded({'alg': 'HS256'})}.{encoded({'sub': USER, 'exp': issued + lasts})}.c2ln"
        return {
            "access_token": token,
            "token_type": "bearer",
            "expires_in": lasts,
            "expires_at": issued + lasts,
            "refresh_token": "refresh-token-of-the-test",
            "user": {"id": USER, "aud": "authenticated", "email": "a@example.org"},
        }

    def __call__(self, request: HttpRequest) -> Answer:
        url = urllib.parse.urlsplit(request["url"])
        asked = dict(urllib.parse.parse_qsl(url.query))
        status, body = self._serve(request, url.path, asked)
        if request["purpose"] == "upload" and request["method"] == "POST":
            self.uploads += 1
            if self.lose > 0:
                self.lose -= 1
                return {"error": "timeout"}
        headers = {"content-type": "application/json"}
        return {"status": status, "headers": headers, "body": json.dumps(body)}

    def _serve(self, request: HttpRequest, path: str, asked: dict[str, str]) -> tuple[int, Any]:
        if path == "/auth/v1/token":
            return 200, self.session()
        if path == "/auth/v1/user":
            return 200, {"id": USER, "aud": "authenticated"}
        if path == "/auth/v1/logout":
            return 204, None
        if path == "/rest/v1/memberships":
            org = {"id": ORG, "name": "Mentorforeningen", "status": "active"}
            row = {"org_id": ORG, "role": "peer_mentor", "status": "active", "organizations": org}
            return 200, [row]
        if path == "/rest/v1/rpc/activity_summary":
            return 200, {"activities": len(self.rows), "minutes": 0}
        if path != "/rest/v1/activities":
            return 200, []
        if request["method"] == "POST":
            return self._store(json.loads(request["body"] or "[]"))
        ids = asked.get("id", "").removeprefix("in.(").removesuffix(")").removeprefix("eq.")
        names = asked.get("select", "id").split(",")
        found = [self.rows[item] for item in ids.replace('"', "").split(",") if item in self.rows]
        return 200, [{name: row.get(name) for name in names} for row in found]

    def _store(self, rows: list[dict[str, Any]]) -> tuple[int, Any]:
        if any(row["id"] in self.refused for row in rows):
            return 400, {"code": "23514", "message": "violates a check constraint"}
        new = [row for row in rows if row["id"] not in self.rows]
        for row in new:
            self.rows[row["id"]] = row
            self.inserts[row["id"]] = self.inserts.get(row["id"], 0) + 1
        return 201, [{"id": row["id"]} for row in new]


class World:
    """An app, its folder, its clocks and its server."""

    def __init__(self, library: Library, folder: Path, keys: Keys, answers: Answers) -> None:
        self.library = library
        self.folder = folder
        self.keys = keys
        self.answers = answers
        self.now_ms = START_MS
        self.monotonic_ms = 7_200_000
        self.events: list[dict[str, Any]] = []
        #: What the library did that it must not do.
        self.faults: list[str] = []
        self.errors: list[str] = []
        self.core: Any = None

    def open(self) -> None:
        """Open the app and resume."""
        config: Any = {
            "data_dir": str(self.folder),
            "backend": {"url": "http://127.0.0.1:1", "api_key": "anon"},
            "template": "volunteers",
            "auth_methods": [{"id": "email", "provider": "email", "flow": "password"}],
            "redirect_url": "app.example://signed-in",
            "routes": {"peer_mentor": {"home": "/mentor", "screens": ["*"]}},
            "policy": {"biometric": "preferred", "session_window_s": 2_592_000},
            "clock": "manual",
            "role": "worker",
        }
        keys: Any = self.keys
        self.core = self.twice("open", lambda: Host(config, keys, library=self.library))
        self.pass_time(0)
        self.enter(self.twice("session_resume", self.core.session_resume))

    def close(self) -> None:
        """Close the app."""
        if self.core is not None:
            self.core.close()
            self.core = None

    def enter(self, shown: Any) -> None:  # noqa: ANN401
        """Sign in if the app asks for it."""
        if shown["screen"] in {"sign_in", "unlock"}:
            session: Any = {"session": self.answers.session()}
            self.twice("session_adopt", lambda: self.core.session_adopt(session))

    def twice(self, what: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        """The result of a call whose storage may be damaged once."""
        for _ in range(CALLS):
            try:
                return call()
            except HoldfastError as error:
                self.errors.append(f"{what}: {error.code}")
                if not error.code.startswith("storage."):
                    return None
        self.faults.append(f"{what} fails twice: {self.errors[-2:]}")
        raise StopIteration

    def pass_time(self, milliseconds: int) -> None:
        """Advance both clocks."""
        self.now_ms += milliseconds
        self.monotonic_ms += milliseconds
        self.core.clock_set(
            {"now_ms": self.now_ms, "monotonic_ms": self.monotonic_ms, "boot_id": "boot"}
        )

    def online(self, is_online: bool) -> None:
        """Report the network."""
        self.twice("network_report", lambda: self.core.network_report({"online": is_online}))

    def add(self, depends_on: str | None = None) -> str | None:
        """Add an item; returns its id, or null when it was refused."""
        item = str(uuid.uuid4())
        request: Any = {
            "id": item,
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 5},
            "occurred_at_ms": self.now_ms,
        }
        if depends_on is not None:
            request["depends_on"] = [depends_on]
        added = self.twice("queue_add", lambda: self.core.queue_add(request))
        return item if added else None

    def added(self, depends_on: str | None = None) -> str:
        """The id of a new item, which must be accepted."""
        item = self.add(depends_on)
        assert item is not None, self.errors
        return item

    def listed(self) -> list[dict[str, Any]]:
        """The queue's items."""
        request: Any = {"limit": 500}
        return list(self.twice("queue_list", lambda: self.core.queue_list(request))["items"])

    def run(self, for_ms: int) -> None:
        """Follow `wake_in_ms`, for this time by the phone's clock."""
        end = self.now_ms + for_ms
        for _ in range(STEPS):
            if self.now_ms >= end:
                return
            step = self.twice("step", self.step)
            if step.idle:
                wake = end - self.now_ms if step.wake_in_ms is None else step.wake_in_ms
                self.pass_time(min(max(wake, 1), end - self.now_ms))
        self.faults.append(f"{STEPS} polls in {for_ms - end + self.now_ms} ms")

    def step(self) -> Round:
        """Take all, and answer the requests."""
        step: Round = self.core.round(self.answers)
        self.events += step.events
        return step

    def read_all(self) -> None:
        """The calls that a host makes before the network comes."""
        for name in (
            "queue_list",
            "queue_explain",
            "queue_export",
            "sync_status",
            "session_status",
            "summary_get",
            "org_list",
        ):
            self.twice(name, getattr(self.core, name))

    def end(self, how: str) -> None:
        """The user logs out, locks, or starts the app anew; then nothing of theirs is shown."""
        if how == "drain":
            return
        if how == "restart":
            self.close()
            self.open()
            self.online(False)
            return
        call = self.core.session_logout if how == "logout" else self.core.session_lock
        reply = self.twice(f"session_{how}", call)
        shown = reply["screen"]["screen"] if how == "logout" else reply["screen"]
        if shown not in ({"sign_in"} if how == "logout" else {"sign_in", "unlock"}):
            self.faults.append(f"after {how}: {shown}")
        if "session" in self.keys.keys:
            self.faults.append(f"after {how} the session key stays")
        if self.twice("queue_list", self.core.queue_list) is not None:
            self.faults.append(f"after {how} the queue is shown")
        self.enter(self.twice("session_resume", self.core.session_resume))

    def settle(self, items: set[str], parked: set[str]) -> None:
        """The network comes: each item is stored; `parked` may stay."""
        self.online(True)
        self.run(HOURS_MS)
        if self.twice("session_status", self.core.session_status)["state"] != "active":
            self.enter(self.twice("session_resume", self.core.session_resume))
        self.twice("queue_retry", self.core.queue_retry)
        self.run(HOURS_MS)
        left = {item["id"]: item for item in self.listed()}
        if gone := items - set(left) - set(self.answers.rows):
            self.faults.append(f"{len(gone)} of {len(items)} items are gone")
        if stuck := [
            (left[item]["state"], (left[item]["reason"] or {}).get("code"))
            for item in set(left) - parked
        ]:
            self.faults.append(f"not sent: {stuck}")
        if again := [count for count in self.answers.inserts.values() if count > 1]:
            self.faults.append(f"stored again: {again}")


@dataclass
class Stock:
    """A folder with rows in every table."""

    folder: Path
    keys: dict[str, bytes]
    answers: Answers
    items: set[str]
    parked: set[str]

    def world(self, library: Library, folder: Path) -> World:
        """An app on a copy of the folder; it is not open yet."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        answers = Answers(dict(self.answers.rows), dict(self.answers.inserts), set(self.parked))
        return World(library, folder, Keys(dict(self.keys)), answers)


def make_stock(library: Library, folder: Path) -> Stock:
    """A user with items in every state. Rows of the other processes' work are written by hand."""
    answers = Answers()
    world = World(library, folder, Keys({}), answers)
    world.open()
    world.run(1000)
    world.add()
    world.run(1000)
    # An item that the server refuses, and one whose answer is lost
    parked = {world.added()}
    answers.refused = set(parked)
    world.run(1000)
    answers.lose = 1
    items = {world.added()}
    world.step()
    world.online(False)
    first = world.added()
    items |= {first, world.added(depends_on=first), world.added(), world.added()}
    world.close()
    assert not world.faults, world.faults
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.executescript(
            f"""
            UPDATE queue SET state = 2, wait_reason = 2, not_before_ms = {START_MS + 60_000}
              WHERE seq = (SELECT max(seq) FROM queue);
            UPDATE queue SET state = 1, lease = randomblob(16), lease_ms = {START_MS + 60_000}
              WHERE seq = (SELECT max(seq) - 1 FROM queue);
            INSERT OR IGNORE INTO pause(service, attempts, not_before_ms)
              VALUES ('pull', 2, {START_MS + 60_000});
            INSERT OR IGNORE INTO lease(name, holder, expires_ms)
              VALUES ('refresh', randomblob(16), {START_MS - 1});
            INSERT OR IGNORE INTO sync_run(owner, started_ms, sent, parked)
              SELECT owner, {START_MS}, 1, 0 FROM session;
            INSERT INTO sign_in(state, sealed, created_ms)
              VALUES (randomblob(16), randomblob(90), {START_MS});
            INSERT INTO notice(number, sealed) VALUES (1, randomblob(90));
            INSERT INTO revocation(sealed, not_before_ms) VALUES (randomblob(90), {START_MS});
            """
        )
    return Stock(folder, world.keys.keys, answers, items, parked)
