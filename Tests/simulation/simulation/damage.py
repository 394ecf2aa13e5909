"""Flipped bits in a device's database or its log (attack A3), and what a start makes of them.

The bits are flipped in a copy of the device's files. An app with the device's keys and clock starts
on it, without a network, and the copy is dropped. What damage costs, items and perhaps the session,
has no consequences in the run, so no other invariant needs an exception.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast import Holdfast, HoldfastError
from holdfast.handle import encode
from holdfast.library import ALL

from support import attacker
from support.flips import CALLS, FILES, INDEX, PAGE, Original, draw

from . import observer
from .device import Device, MemoryKeyChain
from .invariants import EXPECTED, Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Json = dict[str, Any]
Rows = dict[bytes, bytes]
#: A file, a byte of it, and a bit.
Flip = tuple[str, int, int]
#: A body is found in a page by pieces of this size: a long one goes on in other pages.
PIECE = 64
_ROWS = "SELECT item, body FROM queue"


def damage(device: Device, chance: random.Random) -> None:
    """Flip bits in a copy of the device's files, start the app on it twice, and judge."""
    key = device.keychain.keys().get("device")
    main = device.folder / FILES[0]
    # What was set aside before, and is not yet carried over, is in another file.
    if not observer.opens(main, [key] if key else []):
        return
    folder = device.folder.with_name(f"{device.name}-damaged")
    try:
        _Case(device, folder, chance).run()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Case:
    """One damaged copy."""

    def __init__(self, device: Device, folder: Path, chance: random.Random) -> None:
        self._device = device
        self._folder = folder
        self._chance = chance
        folder.mkdir(mode=0o700)
        for name in (*FILES, INDEX):
            if (device.folder / name).exists():
                shutil.copyfile(device.folder / name, folder / name)

    def run(self) -> None:
        """Flip bits before the app starts, or while it runs; close it, and start it once more."""
        if self._chance.random() < 0.3:
            host = Host(self._device, self._folder)
            host.resume()
            before, excused, hits_log = self._flip()
        else:
            before, excused, hits_log = self._flip()
            host = Host(self._device, self._folder)
        host.resume()
        said = host.said()
        host.close()
        again = Host(self._device, self._folder)
        again.resume()
        said = said or again.said()
        again.close()
        # What was only in the log may be lost with its end: then an item is as it was before.
        if hits_log and said:
            excused = {item.hex() for item in before}
        self._judge(before, excused, said, _rows(self._folder))

    def _flip(self) -> tuple[Rows, set[str], bool]:
        """Flip one to eight bits.

        Return the items, those on pages of which a bit flipped, and whether one of the log did.
        """
        before = _rows(self._folder)
        files = {
            name: (self._folder / name).read_bytes()
            for name in FILES
            if (self._folder / name).exists()
        }
        original = Original(self._device.name, {}, {}, {}, files, {})
        for item, body in before.items():
            for start in range(0, len(body), PIECE):
                _find(original, item.hex(), body[start : start + PIECE])
        flips = _draw(original, self._chance)
        self._device.world.trace.note(f"{self._device.name} flips {flips}")
        for name, at, bit in flips:
            with open(self._folder / name, "r+b") as file:
                file.seek(at)
                file.write(bytes([files[name][at] ^ 1 << bit]))
            files[name] = (
                files[name][:at] + bytes([files[name][at] ^ 1 << bit]) + files[name][at + 1 :]
            )
        hit = {original.image_of(name, at) for name, at, _ in flips}
        held = set().union(*(original.held.get(image, set()) for image in hit))
        return before, held, any(name.endswith("-wal") for name, _, _ in flips)

    def _judge(self, before: Rows, excused: set[str], said: bool, after: Rows) -> None:
        name = self._device.name
        changed = {item.hex() for item, body in before.items() if after.get(item, body) != body}
        if changed - excused:
            raise Violation("damage changes no other item", f"{name} {changed - excused}")
        gone = [item.hex() for item in before if item not in after]
        if gone and not said:
            raise Violation("what damage costs is said", f"{name} {gone}")


def _rows(folder: Path) -> Rows:
    return dict(cast("list[tuple[bytes, bytes]]", attacker.rows(folder / FILES[0], _ROWS)))


def _draw(original: Original, chance: random.Random) -> list[Flip]:
    """One to eight bits: of all bytes, or in every other case of the pages that hold items."""
    images = sorted(original.held)
    if not images or chance.random() < 0.5:
        return draw(original, chance.getrandbits(32))
    places = [chance.choice(images) for _ in range(chance.randint(1, 8))]
    return [(name, at + chance.randrange(PAGE), chance.randrange(8)) for name, at in places]


def _find(original: Original, item: str, piece: bytes) -> None:
    for name, data in original.files.items():
        at = data.find(piece)
        while at >= 0:
            original.held.setdefault(original.image_of(name, at), set()).add(item)
            at = data.find(piece, at + 1)


class Host:
    """An app on the copy, in a process of its own. A call may fail once."""

    def __init__(self, device: Device, folder: Path) -> None:
        """Open the copy with the device's keys."""
        self.folder = folder
        self._device = device
        self._world = device.world
        self._pid = self._world.machine.new_process()
        keychain = MemoryKeyChain(folder)
        keychain.take_over(device.keychain)
        config = {**device.config, "data_dir": str(folder), "role": "worker"}

        def start() -> Holdfast:
            return Holdfast(cast("Any", config), keychain, library=self._world.library)

        self._core = self._twice("open", start)
        self.call("network_report", {"online": False})

    def _twice(self, name: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401
        """Make a call once more if it fails; an error that a host expects is an answer."""
        device, error = self._device, HoldfastError
        failures: list[str] = []
        for _ in range(CALLS):
            try:
                inside = (self._pid, device.wall_ms, device.monotonic_ms, device.boot)
                with self._world.machine.inside(*inside):
                    return make()
            except error as failure:
                self._world.trace.note(f"{device.name} damaged {name}: {failure.code}")
                if failure.code in EXPECTED:
                    return None
                failures.append(failure.code)
        raise Violation("a damaged file works within two calls", f"{device.name} {name} {failures}")

    def call(self, name: str, request: Mapping[str, Any]) -> Json | None:
        """Make a call, twice if it fails."""

        return cast("Json | None", self._twice(name, lambda: self._make(name, request)))

    def _make(self, name: str, request: Mapping[str, Any]) -> Any:  # noqa: ANN401
        status, reply = self._world.library.call(name, self._core._handle, encode(request))
        self._world.trace.note(f"{self._device.name} damaged {name} -> {status} {reply!r}")
        return self._core._decode(name, status, reply)

    def next_thing(self) -> Json:
        """What the library gives next; nothing, if it expects to fail."""

        def take() -> Any:  # noqa: ANN401
            status, reply = self._world.library.next(self._core._handle, ALL, 0)
            self._world.trace.note(f"{self._device.name} damaged next -> {status} {reply!r}")
            return self._core._decode("next", status, reply)

        return self._twice("next", take) or {"wake_in_ms": None}

    def resume(self) -> None:
        """Resume the session, and read what a user who is in sees."""
        self.call("session_resume", {})
        self.call("queue_list", {"limit": 500})
        self.call("sync_status", {})

    def said(self) -> bool:
        """Return whether a notice says that something could not be read."""
        said = False
        while "wake_in_ms" not in (thing := self.next_thing()):
            notice = thing.get("notice") or {"type": "", "unreadable": False}
            if notice["type"] == "storage_recovered" and ".damaged-" in notice["file"]:
                said = said or notice["unreadable"]
        return said

    def close(self) -> None:
        """Close the app in an orderly way."""
        with self._world.machine.inside(
            self._pid, self._device.wall_ms, self._device.monotonic_ms, self._device.boot
        ):
            self._core.close()
        self._world.machine.end_process(self._pid)
