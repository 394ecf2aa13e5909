"""The ledger: the simulation's own record of every item that the library acknowledged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Payload = dict[str, Any]

#: The library acknowledged the item.
HELD = "held"
#: The user cancelled the item, or discarded it at logout.
TAKEN_BACK = "taken back"
#: The item is in a file that was set aside because the key store reported its key lost.
SET_ASIDE = "set aside"


@dataclass
class Entry:
    """An item that a device acknowledged."""

    id: str
    device: str
    owner: str
    org: str
    kind: str
    #: Every payload that was acknowledged, oldest first.
    payloads: list[Payload]
    parents: list[str] = field(default_factory=list)
    state: str = HELD
    #: How often the item alone was refused on the way since it was last edited, and when first.
    refusals: int = 0
    first_refused_ms: int = 0
    #: How many uploads of each process the service had judged when its last refusal was counted.
    judged_before: dict[str, int] = field(default_factory=dict)
    #: The user cancelled it and the library said that it asks the server first: it may go or stay.
    is_cancelled: bool = False
    #: It was parked after its cancel, so its user decides anew: a retry takes the cancel back.
    is_open_again: bool = False

    def edit(self, payload: Payload) -> None:
        """Record an edit that was acknowledged: it makes the item a new one."""
        self.payloads.append(payload)
        self.refusals = 0
        self.is_cancelled = False

    def cancel(self) -> None:
        """Record a cancel after which the server is asked first."""
        self.is_cancelled = True
        self.is_open_again = False

    def note_refusal(self, now_ms: int) -> None:
        """Count an upload of this item alone that was refused on the way."""
        self.first_refused_ms = self.first_refused_ms if self.refusals else now_ms
        self.refusals += 1

    @property
    def payload(self) -> Payload:
        """The payload as the user last wrote it."""
        return self.payloads[-1]


class Ledger:
    """All entries, in order of registration."""

    def __init__(self) -> None:
        """Start with an empty ledger."""
        self._entries: dict[tuple[str, str, str], Entry] = {}

    def add(self, entry: Entry) -> None:
        """Record an item that was acknowledged."""
        self._entries[entry.device, entry.owner, entry.id] = entry

    def get(self, device: str, owner: str | None, item: str) -> Entry | None:
        """Return this user's entry of the item on this device."""
        return None if owner is None else self._entries.get((device, owner, item))

    def holds_elsewhere(self, device: str, owner: str, item: str) -> bool:
        """Whether another device of this user has or had the item."""
        return any(
            held == item and user == owner and place != device
            for place, user, held in self._entries
        )

    def of(self, device: str, owner: str | None = None) -> list[Entry]:
        """Return the entries that this device holds, optionally of one user."""
        return [
            entry
            for entry in self._entries.values()
            if entry.device == device
            and entry.state == HELD
            and (owner is None or entry.owner == owner)
        ]

    def with_id(self, item: str) -> list[Entry]:
        """Return every device's entry of this id, in any state."""
        return [entry for entry in self._entries.values() if entry.id == item]

    def all(self) -> list[Entry]:
        """Return every entry, in any state."""
        return list(self._entries.values())
