"""The acknowledged calls, and the states that are allowed after a kill."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from process_killer import Outcome


@dataclass
class Item:
    """An activity, identified by its note."""

    #: The allowed minutes: one number, two after an unacknowledged edit.
    minutes: set[int]
    #: The allowed organisations.
    orgs: set[str]
    id: str | None = None
    #: It must be in the queue or on the server.
    owed: bool = False
    #: A cancel was begun, so the item may be gone; after `cancelled` it must not be on the server.
    cancelling: bool = False
    cancelled: bool = False


@dataclass
class Ledger:
    """The record of one user's calls on one phone."""

    items: dict[str, Item] = field(default_factory=dict)
    #: The organisations of which one must be the chosen one.
    orgs: set[str] = field(default_factory=set)
    #: `leaving`: a logout was begun; `left`: it was acknowledged.
    leaving: bool = False
    left: bool = False

    def enter(self, outcome: Outcome) -> None:
        """Enter the reports of a process."""
        for what, value in outcome.reports:
            getattr(self, f"_{what}", lambda _value: None)(value)

    def _add(self, values: list[Any]) -> None:
        note, minutes = values
        self.items[note] = Item({minutes}, set(self.orgs))

    def _added(self, values: list[Any]) -> None:
        note, item = values
        self.items[note].id, self.items[note].owed = item, True

    def _edit(self, values: list[Any]) -> None:
        note, minutes = values
        self.items[note].minutes.add(minutes)

    def _edited(self, values: list[Any]) -> None:
        note, minutes = values
        self.items[note].minutes = {minutes}

    def _cancel(self, note: str) -> None:
        self.items[note].cancelling = True
        self.items[note].owed = False

    def _cancelled(self, note: str) -> None:
        self.items[note].cancelled = True

    def _select(self, org: str) -> None:
        self.orgs.add(org)

    def _selected(self, org: str) -> None:
        self.orgs = {org}

    def _logout(self, _value: object) -> None:
        self.leaving = True

    def _logged_out(self, _value: object) -> None:
        self.left = True
