"""What the library has acknowledged: the simulation's own book of what must not be lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Payload = dict[str, Any]

#: The library said that it has it.
HELD = "held"
#: The user took it back, or discarded it at logout.
TAKEN_BACK = "taken back"
#: It lies in a file that was set aside, because the key store said that its key was lost.
SET_ASIDE = "set aside"


@dataclass
class Entry:
    """An item that a device has acknowledged."""

    id: str
    device: str
    owner: str
    org: str
    kind: str
    #: Every payload that was acknowledged; the last is the one that counts.
    payloads: list[Payload]
    parents: list[str] = field(default_factory=list)
    state: str = HELD

    @property
    def payload(self) -> Payload:
        """As the user wants it."""
        return self.payloads[-1]


class Ledger:
    """All entries, in the order of their registration."""

    def __init__(self) -> None:
        """An empty book."""
        self._entries: dict[tuple[str, str, str], Entry] = {}

    def add(self, entry: Entry) -> None:
        """An item was acknowledged."""
        self._entries[entry.device, entry.owner, entry.id] = entry

    def get(self, device: str, owner: str | None, item: str) -> Entry | None:
        """The entry of this item of this user's on this device."""
        return None if owner is None else self._entries.get((device, owner, item))

    def of(self, device: str, owner: str | None = None) -> list[Entry]:
        """What this device holds, of this user."""
        return [
            entry
            for entry in self._entries.values()
            if entry.device == device
            and entry.state == HELD
            and (owner is None or entry.owner == owner)
        ]

    def with_id(self, item: str) -> list[Entry]:
        """Every device's entry of this id, whatever became of it."""
        return [entry for entry in self._entries.values() if entry.id == item]

    def all(self) -> list[Entry]:
        """Everything that was ever acknowledged."""
        return list(self._entries.values())
