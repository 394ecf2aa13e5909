"""Flips bits of a data folder's main file and its log, and checks what a start makes of it."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from holdfast import Holdfast, HoldfastError
from holdfast.keystore import KEY_NOT_ENROLLED, KeyStoreAnswer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast import Library

FILES = ("holdfast.db", "holdfast.db-wal")
#: SQLite's index of the log; a killed process leaves it.
INDEX = "holdfast.db-shm"
PAGE = 4096
LOG_HEADER, FRAME_HEADER = 32, 24
#: A call and its one repetition.
CALLS = 2


class Keys:
    """A key store in memory that never asks for a finger."""

    def __init__(self, keys: dict[str, bytes]) -> None:
        self.keys = keys

    def load(self, name: str) -> bytes | None:
        return self.keys.get(name)

    def save(self, name: str, key: bytes, protection: int) -> None:
        if protection:
            raise KeyStoreAnswer(KEY_NOT_ENROLLED)
        self.keys[name] = key

    def erase(self, name: str) -> None:
        self.keys.pop(name, None)


@dataclass
class Original:
    """A queue on the disk, as a killed process or a closed handle left it."""

    name: str
    config: dict[str, Any]
    keys: dict[str, bytes]
    session: dict[str, Any]
    files: dict[str, bytes]
    payloads: dict[str, Any]
    #: The items of each page image that counts: (file, offset of the image) to ids.
    held: dict[tuple[str, int], set[str]] = field(default_factory=dict)

    def image_of(self, file: str, at: int) -> tuple[str, int]:
        """The page image in which a byte is."""
        if file == FILES[0]:
            return file, at // PAGE * PAGE
        if at < LOG_HEADER:
            return file, 0
        frame = (at - LOG_HEADER) // (PAGE + FRAME_HEADER)
        return file, LOG_HEADER + frame * (PAGE + FRAME_HEADER)


def take(
    name: str,
    folder: Path,
    config: dict[str, Any],
    keys: dict[str, bytes],
    session: dict[str, Any],
    payloads: dict[str, Any],
) -> Original:
    """The folder's files as they are now."""
    files = {
        name: (folder / name).read_bytes() for name in [*FILES, INDEX] if (folder / name).exists()
    }
    return Original(name, config, dict(keys), session, files, payloads)


@dataclass
class Outcome:
    """What became of one damaged folder."""

    flips: list[tuple[str, int, int]]
    faults: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    missing: int = 0
    unreadable: int = 0
    lost: int = 0
    recovered: bool = False
    session_lost: bool = False


class Case:
    """One damaged copy of a folder."""

    def __init__(
        self,
        original: Original,
        folder: Path,
        library: Library,
        flips: list[tuple[str, int, int]],
    ) -> None:
        self.original = original
        self.folder = folder
        self.library = library
        self.outcome = Outcome(flips=flips)

    def _twice(self, what: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        """The result of a call that may fail once."""
        for _ in range(CALLS):
            try:
                return call()
            except HoldfastError as error:
                self.outcome.errors.append(f"{what}: {error.code}")
        self.outcome.faults.append(f"{what} fails twice: {self.outcome.errors[-2:]}")
        raise StopIteration

    def run(self) -> Outcome:
        """Damage the copy, start, and judge."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700)
        files = {name: bytearray(data) for name, data in self.original.files.items()}
        for name, at, bit in self.outcome.flips:
            files[name][at] ^= 1 << bit
        for name, data in files.items():
            (self.folder / name).write_bytes(data)
        config = {**self.original.config, "data_dir": str(self.folder)}
        keys = Keys(dict(self.original.keys))
        with contextlib.suppress(StopIteration):
            core = self._twice("open", lambda: Holdfast(config, keys, library=self.library))
            try:
                self._judge(core)
            finally:
                core.close()
        return self.outcome

    def _judge(self, core: Holdfast) -> None:
        outcome = self.outcome
        core.network_set({"online": False})
        shown = self._twice("resume", core.session_resume)
        if shown["screen"] not in {"home", "wait", "select_org"}:
            outcome.session_lost = True
            self._twice(
                "sign in",
                lambda: core.session_start({"session": cast("Any", self.original.session)}),
            )
        listed = self._list(core)
        events = self._twice("poll", core.poll)["events"]
        found = [event for event in events if event["type"] == "storage_recovered"]
        outcome.recovered = bool(found)
        outcome.lost = sum(event["lost"] for event in found)
        readable = {item["id"]: item["payload"] for item in listed if item["kind"]}
        outcome.unreadable = len(listed) - len(readable)
        missing = set(self.original.payloads) - set(readable)
        outcome.missing = len(missing)
        for identity, payload in readable.items():
            if self.original.payloads.get(identity) != payload:
                outcome.faults.append(f"another item or content: {identity}")
        if len(missing) > outcome.lost + outcome.unreadable:
            outcome.faults.append(
                f"{len(missing)} of {len(self.original.payloads)} gone, "
                f"{outcome.lost} counted, {outcome.unreadable} shown as unreadable"
            )
        hit = {self.original.image_of(name, at) for name, at, _ in outcome.flips}
        excused = set().union(*(self.original.held.get(image, set()) for image in hit))
        if missing - excused:
            outcome.faults.append(f"{len(missing - excused)} on undamaged pages are gone")
        sign: Any = {"session": self.original.session}
        if outcome.session_lost:
            self._twice("sign in again", lambda: core.session_start(sign))
        self._twice("list again", lambda: core.queue_list({"limit": 1}))

    def _list(self, core: Holdfast) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        after = 0
        while True:
            request: Any = {"limit": 500, "after": after}
            page = self._twice("list", lambda: core.queue_list(request))  # noqa: B023
            items += page["items"]
            if page["next"] is None:
                return items
            after = page["next"]


def draw(original: Original, seed: int) -> list[tuple[str, int, int]]:
    """One to eight flips, drawn over all bytes of the main file and its log."""
    choice = random.Random(seed)
    sizes = [(name, len(original.files.get(name, b""))) for name in FILES]
    flips = []
    for _ in range(choice.randint(1, 8)):
        at = choice.randrange(sum(size for _, size in sizes))
        name, start = (FILES[0], 0) if at < sizes[0][1] else (FILES[1], sizes[0][1])
        flips.append((name, at - start, choice.randrange(8)))
    return flips


def find_images(original: Original) -> None:
    """Find the page images that hold each item's body: the newest in the log, else in the file."""
    folder = original.config["scratch"]
    bodies: dict[str, bytes] = {}
    for name, data in original.files.items():
        (folder / name).write_bytes(data)
    with contextlib.closing(sqlite3.connect(folder / FILES[0])) as database:
        rows = database.execute("SELECT body FROM queue ORDER BY seq").fetchall()
    for identity, (body,) in zip(original.payloads, rows, strict=True):
        bodies[identity] = body
    for identity, body in bodies.items():
        # Pieces, since a long body goes on in overflow pages.
        for start in range(0, len(body), 64):
            piece = body[start : start + 64]
            for name in FILES:
                data = original.files.get(name, b"")
                at = data.find(piece)
                while at >= 0:
                    original.held.setdefault(original.image_of(name, at), set()).add(identity)
                    at = data.find(piece, at + 1)


def report(outcomes: list[Outcome]) -> str:
    """The figures of a run as JSON."""
    return json.dumps(
        {
            "cases": len(outcomes),
            "flips": sum(len(outcome.flips) for outcome in outcomes),
            "recovered": sum(outcome.recovered for outcome in outcomes),
            "session_lost": sum(outcome.session_lost for outcome in outcomes),
            "items_missing": sum(outcome.missing for outcome in outcomes),
            "items_unreadable": sum(outcome.unreadable for outcome in outcomes),
            "items_counted_as_lost": sum(outcome.lost for outcome in outcomes),
            "calls_that_failed_once": sum(len(outcome.errors) for outcome in outcomes),
            "faults": sum(bool(outcome.faults) for outcome in outcomes),
        }
    )
