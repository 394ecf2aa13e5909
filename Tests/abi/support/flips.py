"""Flips bits of a data folder's main file and its log, and checks what a start makes of it."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from holdfast import HoldfastError
from holdfast.keystore import KEY_NOT_ENROLLED, KeyStoreAnswer

from .loop import Host
from .screens import why

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast import Library

FILES = ("holdfast.db", "holdfast.db-wal")
#: SQLite's index of the log; a killed process leaves it.
INDEX = "holdfast.db-shm"
PAGE = 4096
LOG_HEADER, FRAME_HEADER = 32, 24
#: In the place of a bit: the file ends here.
CUT = 8
#: A call and its one repetition.
CALLS = 2
#: How often a start is repeated, 2 ms apart, until a key that does not fit counts as lost.
LOOKS = 50


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
    #: How many of the items are in the log alone.
    in_log: int = 0
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
    *,
    in_log: int,
) -> Original:
    """The folder's files as they are now."""
    files = {
        name: (folder / name).read_bytes() for name in [*FILES, INDEX] if (folder / name).exists()
    }
    return Original(name, config, dict(keys), session, files, payloads, in_log)


@dataclass
class Outcome:
    """What became of one damaged folder."""

    flips: list[tuple[str, int, int]]
    faults: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    missing: int = 0
    #: Items that are shown and cannot be read.
    closed: int = 0
    #: A notice says that something could not be read.
    said: bool = False
    recovered: bool = False
    session_lost: bool = False


class Case:
    """One damaged copy of a folder."""

    def __init__(
        self, original: Original, folder: Path, library: Library, flips: list[tuple[str, int, int]]
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
            if bit == CUT:
                del files[name][at:]
            elif at < len(files[name]):
                files[name][at] ^= 1 << bit
        for name, data in files.items():
            (self.folder / name).write_bytes(data)
        config = {
            **self.original.config,
            "data_dir": str(self.folder),
            "role": "worker",
            "clock": "system",
        }
        # A damaged wrap looks as if the key store had another key: no answer so long.
        config["policy"] = {**config.get("policy", {}), "guard_timeout_ms": 1}
        keys = Keys(dict(self.original.keys))
        with contextlib.suppress(StopIteration):
            core = self._twice("open", lambda: Host(config, keys, library=self.library))
            try:
                self._judge(core)
            finally:
                core.close()
        return self.outcome

    def _judge(self, core: Host) -> None:
        outcome = self.outcome
        core.network_report({"online": False})
        shown = self._twice("resume", core.session_resume)
        for _ in range(LOOKS):
            if why(shown) != "keystore_failed":
                break
            time.sleep(0.002)
            shown = self._twice("resume", core.session_resume)
        if shown["screen"] not in {"home", "wait", "select_org"}:
            outcome.session_lost = True
            self._twice(
                "sign in",
                lambda: core.session_adopt({"session": cast("Any", self.original.session)}),
            )
        listed = self._list(core)
        events = self._twice("next", core.take).events
        found = [event for event in events if event["type"] == "storage_recovered"]
        outcome.recovered = bool(found)
        outcome.said = any(event["unreadable"] for event in found)
        readable = {item["id"]: item["payload"] for item in listed if item["kind"]}
        outcome.closed = len(listed) - len(readable)
        missing = set(self.original.payloads) - set(readable)
        outcome.missing = len(missing)
        for identity, payload in readable.items():
            if self.original.payloads.get(identity) != payload:
                outcome.faults.append(f"another item or content: {identity}")
        if len(missing) > outcome.closed and not outcome.said:
            outcome.faults.append(
                f"{len(missing)} of {len(self.original.payloads)} gone without a word, "
                f"{outcome.closed} shown as unreadable"
            )
        sign: Any = {"session": self.original.session}
        if outcome.session_lost:
            self._twice("sign in again", lambda: core.session_adopt(sign))
        self._twice("list again", lambda: core.queue_list({"limit": 1}))

    def _list(self, core: Host) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        after = 0
        while True:
            request: Any = {"limit": 500, "after": after}
            page = self._twice("list", lambda: core.queue_list(request))  # noqa: B023
            items += page["items"]
            if page["next"] is None:
                return items
            after = page["next"]


def draw(original: Original, seed: int, *, cuts: bool = False) -> list[tuple[str, int, int]]:
    """One to eight flips, drawn over all bytes of the main file and its log; some of them cuts."""
    choice = random.Random(seed)
    sizes = [(name, len(original.files.get(name, b""))) for name in FILES]
    flips = []
    for _ in range(choice.randint(1, 8)):
        at = choice.randrange(sum(size for _, size in sizes))
        name, start = (FILES[0], 0) if at < sizes[0][1] else (FILES[1], sizes[0][1])
        flips.append((name, at - start, choice.randrange(8 + cuts)))
    return flips


def report(outcomes: list[Outcome]) -> str:
    """The figures of a run as JSON."""
    return json.dumps(
        {
            "cases": len(outcomes),
            "flips": sum(len(outcome.flips) for outcome in outcomes),
            "recovered": sum(outcome.recovered for outcome in outcomes),
            "session_lost": sum(outcome.session_lost for outcome in outcomes),
            "items_missing": sum(outcome.missing for outcome in outcomes),
            "items_unreadable": sum(outcome.closed for outcome in outcomes),
            "said_to_be_unreadable": sum(outcome.said for outcome in outcomes),
            "calls_that_failed_once": sum(len(outcome.errors) for outcome in outcomes),
            "faults": sum(bool(outcome.faults) for outcome in outcomes),
        }
    )
