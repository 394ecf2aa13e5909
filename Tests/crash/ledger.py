"""What was acknowledged, and what may therefore be found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from process_killer import Outcome


@dataclass
class Item:
    """An activity, known by its note."""

    #: The minutes that it may have: one number, but for a change that was not acknowledged.
    minutes: set[int]
    #: The organisations that it may belong to.
    orgs: set[str]
    id: str | None = None
    #: It must be in the queue or on the server.
    owed: bool = False
    #: It may be cancelled; it must not be on the server when that was acknowledged.
    cancelling: bool = False
    cancelled: bool = False


@dataclass
class Ledger:
    """The account of one person's work on one phone."""

    items: dict[str, Item] = field(default_factory=dict)
    #: The organisations of which one must be chosen.
    orgs: set[str] = field(default_factory=set)
    #: A logout was begun; it was acknowledged.
    leaving: bool = False
    left: bool = False

    def enter(self, outcome: Outcome) -> None:
        """Book a process."""
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
