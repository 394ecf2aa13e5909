"""An attacker who has every byte that was ever in the data folder, and the keys that are left."""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from holdfast import HoldfastError

from . import attacker
from .counts import COPIES as COPIES_PUT_BACK
from .counts import counts
from .loop import Host
from .phone import App, Phone
from .screens import why

#: The files of the folder without SQLite's index of the log, which it makes anew.
FILES = ("holdfast.db", "holdfast.db-wal", "cache.db", "cache.db-wal")
Files = dict[str, bytes]
#: Calls that show or change a user's data.
DATA_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("org_list", {}),
    ("org_select", {"org_id": "aaaa0000-0000-4000-8000-000000000001"}),
    ("queue_add", {"kind": "activity", "payload": {"type": "visit", "minutes": 5}}),
    ("queue_list", {}),
    ("queue_get", {"id": "aaaa0000-0000-4000-8000-000000000001"}),
    ("queue_retry", {}),
    ("queue_cancel", {"id": "aaaa0000-0000-4000-8000-000000000001"}),
    ("queue_export", {}),
    ("contact_search", {"query": ""}),
    ("contact_get", {"id": "aaaa0000-0000-4000-8000-000000000001"}),
    ("summary_get", {}),
    ("sync_status", {}),
]


def read(folder: Path) -> Files:
    """The folder's files as they are now, with the app alive."""
    return {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}


def put(folder: Path, files: Files) -> None:
    """Write these files in place of the folder's own."""
    folder.mkdir(mode=0o700, exist_ok=True)
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content)
        path.chmod(0o600)


def put_under(app: App, files: Files) -> None:
    """Overwrite the files of a living app in place, each as one write."""
    folder = app.phone.folder
    for name in FILES:
        if name in files:
            with (folder / name).open("r+b" if (folder / name).exists() else "wb") as file:
                file.write(files[name])
                file.truncate()


class History:
    """A copy of the folder after every call of an app."""

    def __init__(self, app: App) -> None:
        self.copies: list[Files] = []
        self._folder = app.phone.folder
        self._is_over = False
        self.watch(app)

    def watch(self, app: App) -> None:
        """Copy the files after each call of this app, too."""
        call = app._call

        def copying(name: str, request: Any) -> object:  # noqa: ANN401
            try:
                return call(name, request)
            finally:
                self.copy()

        app._call = copying  # type: ignore[method-assign]

    def copy(self) -> None:
        """Copy the files as they are now."""
        if not self._is_over and (files := read(self._folder)) not in self.copies[-1:]:
            self.copies.append(files)

    def end(self) -> None:
        """Make no more copies: those that are there are put back now."""
        self._is_over = True

    def mixtures(self) -> Iterator[Files]:
        """Every main file with every log."""
        mains = {copy["holdfast.db"]: copy for copy in self.copies}
        logs = {copy.get("holdfast.db-wal", b""): copy for copy in self.copies}
        for main, log in itertools.product(mains, logs):
            yield {**mains[main], "holdfast.db": main, "holdfast.db-wal": log}

    def prefixes(self) -> Iterator[Files]:
        """Every copy with its log cut after each commit; each file once."""
        seen = set()
        for copy in self.copies:
            for log in commits(copy.get("holdfast.db-wal", b"")):
                if (copy["holdfast.db"], log) not in seen:
                    seen.add((copy["holdfast.db"], log))
                    yield {**copy, "holdfast.db-wal": log}


def commits(log: bytes) -> Iterator[bytes]:
    """The beginnings of a write-ahead log that end with a commit."""
    if len(log) < 32:
        return
    frame = 24 + struct.unpack(">I", log[8:12])[0]
    for end in range(32 + frame, len(log) + 1, frame):
        start = end - frame
        if log[start + 8 : start + 16] == log[16:24] and log[start + 4 : start + 8] != bytes(4):
            yield log[:end]


def session_rows(files: Files) -> list[dict[str, Any]]:
    """The session row that SQLite reads from these files; none if it reads nothing."""
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES[:2]:
            if name in files:
                (Path(folder) / name).write_bytes(files[name])
        with contextlib.closing(sqlite3.connect(Path(folder) / FILES[0])) as database:
            database.row_factory = sqlite3.Row
            try:
                return [dict(row) for row in database.execute("SELECT * FROM session")]
            except sqlite3.DatabaseError:
                return []


def opened(files: Files, keys: list[bytes]) -> list[str]:
    """The columns of the session row that these keys, or keys derived from them, open."""
    tried = [*keys, *(more for key in keys for more in attacker.derived(key))]
    found = []
    for row in session_rows(files):
        values = {name: value for name, value in row.items() if isinstance(value, bytes)}
        owner = values.pop("owner", b"")
        for name, value in values.items():
            context = attacker.context("session", b"", owner, name)
            found += [name for key in tried if attacker.unseal(key, value, context) is not None]
    return found


def keys_left(phone: Phone) -> list[bytes]:
    """The keys in the key store that do not need the user's presence."""
    if "keystore" in phone.config:
        folder = phone.folder / "keys"
        names = [name for name in ("device", "session") if (folder / f"{name}.key").exists()]
        return [(folder / f"{name}.key").read_bytes() for name in names]
    entries = json.loads(phone.keychain.path.read_text())
    return [bytes.fromhex(entries[n]["key"]) for n in ("device", "session") if n in entries]


@contextlib.contextmanager
def start(phone: Phone, folder: Path) -> Iterator[Host]:
    """Another app on this folder, with the keys of the phone."""
    config = {**phone.config, "data_dir": str(folder), "role": "worker"}
    with Host(config, phone.key_store, library=phone.library) as app:
        clock: Any = {"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms}
        app.clock_set(clock)
        yield app


def refused(app: Host) -> list[str]:
    """Make every data call; the codes of the errors. A call that answers fails the test."""
    codes = []
    for name, request in DATA_CALLS:
        call: Callable[[Any], object] = getattr(app, name)
        try:
            reply = call(request)
        except HoldfastError as error:
            codes.append(error.code)
        else:
            raise AssertionError(f"{name} answers {reply}")
    return codes


def bearers(app: Host, anon_key: str) -> list[str]:
    """The purposes of requests that carry a user's token."""
    return [
        request["purpose"]
        for _ in range(3)
        for request in app.take().requests
        if anon_key not in request["headers"].get("Authorization", anon_key)
        or request["purpose"] == "refresh"
    ]


def assert_closed(app: Host, phone: Phone) -> None:
    """Nobody gets in: no home, no data, no token but in an order to revoke."""
    counts[COPIES_PUT_BACK] += 1
    decision = app.session_resume()
    codes = {"session.locked", "session.none"}
    if decision["screen"] == "wait":
        # A session's key that is not there may come back, where no finger opens the session
        assert why(decision) == "keystore_failed"
        codes = {"keystore.failed"}
    else:
        assert decision["screen"] in {"unlock", "sign_in"}, decision
    assert decision["org"] is None
    assert set(refused(app)) <= codes
    assert set(bearers(app, phone.backend.anon_key)) <= {"revoke"}
    assert app.session_status()["state"] != "active"
