"""A phone: its clocks, files and keychain, and the processes of the app on it."""

from __future__ import annotations

import os
import random
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.keystore import KEY_INVALIDATED, KEY_NOT_FOUND

from support.keychain import KeyChain
from support.phone import METHODS, POLICY, ROUTES

from . import numbers, observer
from .ledger import SET_ASIDE
from .network import Fate
from .process import Process

if TYPE_CHECKING:
    from .ledger import Entry
    from .world import World

#: The name of a database that was set aside.
KEYLESS = re.compile(r"holdfast\.db\.keyless-\d+")
QUEUE: dict[str, Any] = {
    "activity": {
        "table": "activities",
        "columns": ["type", "minutes", "occurred_at", "contact_id", "follows", "note"],
        "function": "submit_activities",
    },
    "contact": {
        "table": "contacts",
        "columns": ["name", "municipality", "relation"],
        "upload": "table",
    },
}


def _without(kind: str, *columns: str) -> Any:  # noqa: ANN401 - a part of the configuration
    return {**QUEUE[kind], "columns": [c for c in QUEUE[kind]["columns"] if c not in columns]}


#: The queue's configuration in several versions of the app.
QUEUES: dict[str, dict[str, Any]] = {
    "whole": QUEUE,
    "no note": {**QUEUE, "activity": _without("activity", "note")},
    "fewer columns": {
        "activity": _without("activity", "follows", "contact_id"),
        "contact": _without("contact", "relation", "municipality"),
    },
    "no contacts": {"activity": QUEUE["activity"]},
    "no activities": {"contact": QUEUE["contact"]},
}


def _correcting(world: World) -> dict[str, Any]:
    """How the apps of a world keep and correct stored activities: alike on every device."""
    chance = random.Random(f"corrections {world.seed}")
    change: dict[str, Any] = {}
    if chance.random() < 0.4:
        change["function"] = "change_activities"
    if chance.random() < 0.3:
        change["id"] = "change_id"
    return {"own": {}, "change": change, "delete": "deleted_at"}


class MemoryKeyChain(KeyChain):
    """A key chain that all processes of a device share as one object: it needs no file."""

    def __init__(self, path: Path) -> None:
        """`path` names it; there is no file."""
        self._entries: dict[str, dict[str, object]] = {}
        #: These keys are not found, until this says that they are again.
        self._missing: set[str] = set()
        self._is_over: Callable[[], bool] = bool
        super().__init__(path)

    def hide_until(self, is_over: Callable[[], bool]) -> None:
        """Find none of the present keys until then. One that is saved meanwhile is found."""
        self._missing, self._is_over = set(self._entries), is_over

    def load(self, name: str) -> bytes | None:
        if self._missing and self._is_over():
            self._missing = set()
        key = super().load(name)
        return None if name in self._missing else key

    def save(self, name: str, key: bytes, protection: int) -> None:
        super().save(name, key, protection)
        self._missing.discard(name)

    def keys(self) -> dict[str, bytes]:
        """Return every key by its name."""
        return {
            name: bytes.fromhex(str(entry["key"]))
            for name, entry in self._entries.items()
            if entry["key"]
        }

    def take_over(self, other: MemoryKeyChain) -> None:
        """Hold the keys of another one, without its script."""
        self._entries = other._read()

    def _read(self) -> dict[str, dict[str, object]]:
        return {name: dict(entry) for name, entry in self._entries.items()}

    def _write(self, entries: dict[str, dict[str, object]]) -> None:
        self._entries = entries


class Device:
    """A phone. At most two processes of the app live at once; killed ones are never used again."""

    def __init__(self, world: World, name: str, chance: random.Random) -> None:
        """Create a phone that was switched on two hours ago."""
        self.world = world
        self.name = name
        self.folder: Path = world.folder / name
        self._place = str(self.folder)
        self.keychain = MemoryKeyChain(world.folder / f"{name}.keychain")
        self.ahead_ms = chance.choice((0, 0, 0, 1500, -4000, 5_400_000, -7_200_000))
        #: The clock was set back: a stored pause may then last up to a day.
        self.clock_went_back = False
        #: The clock jumped: leases end by it, so another process may have taken over work.
        self.clock_jumped = False
        self.booted_ms = world.now_ms - 7_200_000
        self._chance = chance
        self.boot = self._new_boot()
        self.online = True
        #: The outcomes of the next uploads and of questions about them, instead of drawn ones.
        self.fates: list[Fate] = []
        self.alive: list[Process] = []
        self.killed: list[Process] = []
        self.stored = observer.Stored()
        self._observer = observer.Observer(self.folder)
        self._file = 0
        #: Owner tag of queued items -> user, as learned from the session row.
        self.users: dict[bytes, str] = {}
        #: The stored session, and former ones: only a revoke may use the tokens of these.
        self.session: str | None = None
        self.former: set[str] = set()
        #: When the app went to the background: (monotonic time, boot); None: it did not.
        self.away: tuple[int, str] | None = None
        #: The user locked the app and has not unlocked it since.
        self.locked_by_user = False
        #: The key store reported the device key as lost.
        self.key_was_denied = False
        self.set_aside: set[str] = set()
        #: A file that was set aside -> the items in it.
        self.aside: dict[str, list[Entry]] = {}
        self.biometric = chance.choice(("required", "required", "required", "preferred", "off"))
        self._upload = chance.choice(("table", "table", "rpc"))
        #: Which of `QUEUES` the next process is configured with.
        self.queue = "whole"
        self.config: dict[str, Any] = {
            "data_dir": str(self.folder),
            "backend": {
                "url": world.url,
                "api_key": world.server.anon_key,
                "queue": {},
            },
            "template": "volunteers",
            "auth_methods": [
                *METHODS,
                {"id": "app", "provider": "vipps", "flow": "id_token", "label": "Vipps"},
            ],
            "redirect_url": "app.example://signed-in",
            "routes": ROUTES,
            "policy": {**POLICY, "biometric": self.biometric},
            "locale": chance.choice(("nb", "nn", "en")),
            "clock": "manual",
        }
        #: The versions of the app that ran on it.
        self.versions: set[str] = set()
        self._correcting = _correcting(world) if world.corrects else {}
        self.set_queue("whole")

    def set_queue(self, name: str) -> None:
        """Configure processes that start from now on with one of `QUEUES`."""
        self.queue = name
        self.versions.add(name)
        queue = dict(QUEUES[name])
        if "activity" in queue:
            queue["activity"] = {**queue["activity"], "upload": self._upload}
            if self.world.version >= 3:
                names = ["exact"] if name == "fewer columns" else list(numbers.COLUMNS)
                queue["activity"]["columns"] = [*queue["activity"]["columns"], *names]
            if self._correcting:
                columns = [*queue["activity"]["columns"], "user_id"]
                queue["activity"] |= {**self._correcting, "columns": columns}
        self.config["backend"]["queue"] = queue

    @property
    def uploads_by_function(self) -> bool:
        """Whether visits go to a function, which judges each of a batch."""
        return self._upload == "rpc"

    def _new_boot(self) -> str:
        return str(uuid.UUID(int=self._chance.getrandbits(128), version=4))

    # Time -----------------------------------------------------------------------------------------

    @property
    def wall_ms(self) -> int:
        """The time by the device's wall clock."""
        return self.world.now_ms + self.ahead_ms

    @property
    def monotonic_ms(self) -> int:
        """The time since it was switched on."""
        return self.world.now_ms - self.booted_ms

    def set_ahead(self, ahead_ms: int) -> None:
        """Set the wall clock this far ahead of true time."""
        self.clock_went_back |= ahead_ms < self.ahead_ms
        self.clock_jumped |= ahead_ms != self.ahead_ms
        self.ahead_ms = ahead_ms

    # Processes ------------------------------------------------------------------------------------

    def install(self, file: bytes) -> None:
        """Put the file of a first start in place; each first start makes the same one."""
        self.folder.mkdir()
        (self.folder / "holdfast.db").write_bytes(file)

    def start(self) -> Process | None:
        """Start a process of the app; None when the library cannot open its files."""
        process = Process.start(self)
        if process is not None:
            self.alive.append(process)
        return process

    def kill(self, process: Process) -> None:
        """Kill a process at once; its unanswered requests are lost."""
        self.alive.remove(process)
        self.killed.append(process)
        process.die()

    def close(self, process: Process) -> None:
        """Close a process in an orderly way."""
        self.alive.remove(process)
        self._observer.close()
        process.end()

    def give_back(self) -> None:
        """Free every handle, also those of killed processes."""
        for process in list(self.alive):
            self.close(process)
        self._observer.close()
        for process in self.killed:
            process.give_back()

    def reboot(self) -> None:
        """Kill every process and restart the monotonic clock."""
        for process in list(self.alive):
            self.kill(process)
        self.world.now_ms += 30_000
        self.booted_ms = self.world.now_ms - 20_000
        self.boot = self._new_boot()

    # The files ------------------------------------------------------------------------------------

    def session_key(self) -> bytes | None:
        """Return the key that opens the session's wrap."""
        return self.keychain.keys().get("session")

    def keys(self) -> list[bytes]:
        """Return every key in the key store."""
        return list(self.keychain.keys().values())

    def has_new_file(self) -> bool:
        """Whether the database is another file than when this was asked last."""
        before, self._file = self._file, self._observer.file()
        return before != self._file

    def look(self) -> observer.Stored:
        """Read the device's database."""
        self.stored = self._observer.look(self.session_key, self.stored)
        return self.stored

    @property
    def user(self) -> str | None:
        """The user who is signed in, if the tokens were ever readable."""
        return self.users.get(self.stored.owner or b"")

    def keyless_files(self) -> list[Path]:
        """Return the databases that were set aside because their key was lost."""
        try:
            names = os.listdir(self._place)
        except FileNotFoundError:
            return []
        # The pattern excludes the log, which moves with its database.
        names = [name for name in names if ".keyless-" in name and KEYLESS.fullmatch(name)]
        return [self.folder / name for name in sorted(names)] if names else []

    def hide_keys(self, until_ms: int) -> None:
        """The key store finds none of its keys until then."""
        self.key_was_denied = True
        self.keychain.hide_until(lambda: self.world.healed or self.world.now_ms >= until_ms)

    def returning(self, user: str | None = None) -> list[Entry]:
        """The items, of one user or all, in files that were set aside and whose keys are here."""
        return [
            entry
            for name, entries in self.aside.items()
            if observer.opens(self.folder / name, self.keys())
            for entry in entries
            if entry.state == SET_ASIDE and user in {None, entry.owner}
        ]

    def script(self, call: str, name: str, answers: list[int]) -> None:
        """Let the key store give these answers to its next calls."""
        if (call, name) == ("load", "device") and {KEY_NOT_FOUND, KEY_INVALIDATED} & set(answers):
            self.key_was_denied = True
        self.keychain.answer(call, name, *answers)
