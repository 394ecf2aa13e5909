"""What users correct after it was sent, and what becomes of each value at the server.

The library's own base of a change is not looked at. What counts is what a user saw before they
corrected an item: the list of their own items, the values that they wrote on this device, and what
`conflict` showed them.
"""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.parse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memory_supabase.schema import TABLES, Column, Row
from memory_supabase.values import SqlError, convert

from .invariants import Violation, bearer_of, claims_of
from .ledger import HELD, Entry

if TYPE_CHECKING:
    from .device import Device
    from .network import Answer, InFlightRequest
    from .process import Process
    from .world import World

Json = dict[str, Any]
#: Device, user, item.
Place = tuple[str, str, str]

#: The columns of an activity that its user writes.
COLUMNS = ("type", "minutes", "occurred_at", "contact_id", "follows", "note", "exact", "rough")
#: Those that every version of the app keeps.
ALWAYS_KEPT = ("type", "minutes", "occurred_at", "exact")
#: Who changes a row besides the library.
ELSEWHERE = "elsewhere"
_ID = re.compile(r'"id": ?"([0-9a-f-]{36})"')
_NAMED = re.compile(r"[?&]id=eq\.([0-9a-f-]{36})")
_MARK = "number:"


@dataclass
class Wish:
    """What the user of a device wants of an item: what was acknowledged and not dropped since."""

    #: Column -> the value, and the number of versions that the row had by then.
    columns: dict[str, tuple[Any, int]] = field(default_factory=dict)
    #: The number of versions that the row had when the deletion was acknowledged; None: none was.
    deleted: int | None = None


@dataclass(frozen=True)
class Version:
    """A row, as one request or somebody else left it."""

    row: Row
    author: str


def add_columns() -> None:
    """Give the table of the server in memory the column for the id of a row's last change."""
    table = TABLES["activities"]
    if table.column("change_id") is None:
        TABLES["activities"] = dataclasses.replace(
            table,
            columns=(*table.columns, Column("change_id", "uuid")),
            insertable=table.insertable | {"change_id"},
            updatable=table.updatable | {"change_id"},
        )


def plain(column: str, value: object) -> Any:  # noqa: ANN401 - a value of any type
    """A value in the form in which two of them are compared; None for one that does not fit."""
    known = TABLES["activities"].column(column)
    if known is None or value is None:
        return None
    if known.kind in {"numeric", "float"}:
        return float(str(value).removeprefix(_MARK))
    try:
        return convert(known.kind, value)
    except SqlError:
        return None


def stored(column: str, row: Row) -> Any:  # noqa: ANN401
    """A value of a row, in the form in which two of them are compared."""
    value = row.get(column)
    return value if value is None or column not in {"exact", "rough"} else float(str(value))


def _add(known: dict[Place, dict[str, set[Any]]], place: Place, values: Json) -> None:
    of_place = known.setdefault(place, {})
    for column in COLUMNS:
        if column in values:
            of_place.setdefault(column, set()).add(plain(column, values[column]))


def ids_of(request: Json) -> list[str]:
    """The items that a request sends."""
    named = _NAMED.findall(request["url"]) if request["method"] in {"PATCH", "DELETE"} else []
    return named or _ID.findall(request["body"] or "")


def is_correction(request: Json) -> bool:
    """Whether the request changes or deletes stored rows."""
    by_function = request["url"].endswith("/rpc/change_activities")
    return bool(request["purpose"] == "upload" and (request["method"] == "PATCH" or by_function))


class Corrections:
    """The wishes of the users, the versions of the rows, and what each device was told."""

    def __init__(self, world: World) -> None:
        """Start with nothing."""
        self.world = world
        self.versions: dict[str, list[Version]] = {}
        self.wishes: dict[Place, Wish] = {}
        #: Where a correction was dropped that the server may have: its values are nobody's there.
        self._forgotten: set[Place] = set()
        #: Place -> column -> the values that the device was told of.
        self._told: dict[Place, dict[str, set[Any]]] = {}
        #: Place -> column -> the values that its user wrote there.
        self._written: dict[Place, dict[str, set[Any]]] = {}
        #: Place -> column -> the values over which the user's may be written.
        self._seen: dict[Place, dict[str, set[Any]]] = {}

    # What a device knows --------------------------------------------------------------------------

    def handed(self, device: Device, request: Json, answer: Answer) -> None:
        """Note the rows of activities in an answer that a device got."""
        is_read = request["method"] == "GET" and "/rest/v1/activities?" in request["url"]
        if not is_read and not is_correction(request):
            return
        bearer = bearer_of(request)
        try:
            rows = json.loads(answer.get("body") or "")
        except ValueError:
            return
        if bearer is None or not isinstance(rows, list):
            return
        user = claims_of(bearer)["sub"]
        for row in rows:
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                _add(self._told, (device.name, user, row["id"]), row.get("row") or row)

    def _see(self, place: Place, columns: tuple[str, ...], listed: Json | None) -> None:
        """The user corrects these columns: they saw what the list shows, and what they wrote.

        An item that is not in the list: what the device was told of.
        """
        seen = self._seen.setdefault(place, {})
        told, written = self._told.get(place, {}), self._written.get(place, {})
        for column in columns:
            shown = told.get(column, set())
            if listed is not None:
                shown = {plain(column, listed.get(column))}
            seen.setdefault(column, set()).update(shown | written.get(column, set()))

    def knows(self, place: Place, column: str, value: object) -> bool:
        """Whether the device was told of this value before, or its user wrote it."""
        plainly = plain(column, value)
        return any(
            plainly in known.get(place, {}).get(column, ()) for known in (self._told, self._written)
        )

    # What the user wants --------------------------------------------------------------------------

    def added(self, entry: Entry, payload: Json) -> None:
        """An item was registered, with the payload that the queue shows."""
        place = (entry.device, entry.owner, entry.id)
        self.wishes.pop(place, None)
        _add(self._written, place, {column: payload.get(column) for column in COLUMNS})

    def told(self, entry: Entry, values: Json) -> None:
        """The user of a device has these values of an item there."""
        _add(self._written, (entry.device, entry.owner, entry.id), values)

    def edited(
        self,
        entry: Entry,
        payload: Json,
        queued: tuple[Json | None, Json | None],
        listed: Json | None,
    ) -> None:
        """An edit was acknowledged.

        `queued`: what the queue had and has, None: nothing. `listed`: what the list showed before.
        """
        before, item = queued
        place = (entry.device, entry.owner, entry.id)
        for name, value in payload.items():
            if (item is None or name not in item["payload"]) and not self.knows(place, name, value):
                raise Violation("an edit is not lost", f"{entry} {name} {value} {item}")
        _add(self._written, place, payload)
        self._see(place, tuple(payload), listed)
        if item is None:
            self.wishes.pop(place, None)
            return
        if item["operation"] == "insert":
            # Its payload is the whole row. What it leaves as it was others may have changed.
            was = before["payload"] if before is not None else {}
            payload = {
                column: payload.get(column)
                for column in COLUMNS
                if plain(column, payload.get(column)) != plain(column, was.get(column))
            }
            _add(self._written, place, payload)
            self._see(place, tuple(payload), listed)
            kept = payload
        else:
            kept = {name: value for name, value in payload.items() if name in item["payload"]}
        now = self._present(entry.id)
        wish = self.wishes.get(place) or Wish()
        # A deletion drops the changes before it, also of an item that turned out to be stored.
        was_deletion = before is not None and before["operation"] == "delete"
        wanted = {} if wish.deleted is not None or was_deletion else wish.columns
        still = {name: one for name, one in wanted.items() if name not in payload}
        new = {name: (plain(name, value), now) for name, value in kept.items()}
        self.wishes[place] = Wish({**still, **new})

    def taken_back(self, entry: Entry, listed: Json | None) -> None:
        """A deletion of a stored row was acknowledged."""
        place = (entry.device, entry.owner, entry.id)
        self._see(place, COLUMNS, listed)
        self.wishes[place] = Wish(deleted=self._present(entry.id))

    def cancelled(self, entry: Entry, listed: Json | None) -> None:
        """An item that the server may have was taken back: the user saw what they registered."""
        self._see((entry.device, entry.owner, entry.id), COLUMNS, listed)

    def dropped(self, entry: Entry) -> None:
        """The user took a correction back: the row stays as it is."""
        place = (entry.device, entry.owner, entry.id)
        self.wishes.pop(place, None)
        self._forgotten.add(place)

    def overwritten(self, entry: Entry, conflict: Json) -> None:
        """The user saw what others set, and wants their own values over it."""
        place = (entry.device, entry.owner, entry.id)
        seen = self._seen.setdefault(place, {})
        for column in conflict["columns"]:
            name = column["name"]
            seen.setdefault(name, set()).add(plain(name, column["theirs"]))

    def _present(self, item: str) -> int:
        """The number of the row's present version; 0 when there is no row yet."""
        return max(0, len(self.versions.get(item, ())) - 1)

    # What the server has --------------------------------------------------------------------------

    def noted(self, item: str, author: str) -> Version | None:
        """Note the present row as a new version, if it is one; return the one before."""
        row = self.world.server.database.stored.get(item)
        if row is None:
            return None
        versions = self.versions.setdefault(item, [])
        before = versions[-1] if versions else None
        if before is None or before.row is not row:
            versions.append(Version(row, author))
        return before

    def processed(self, device: Device, sent: InFlightRequest) -> None:
        """Check what the server has made of a request."""
        request = sent.request
        bearer = bearer_of(request)
        if request["purpose"] != "upload" or request["method"] == "GET" or bearer is None:
            return
        user = claims_of(bearer)["sub"]
        author = f"{device.name} {user}"
        for item in ids_of(request):
            before = self.noted(item, author)
            now = self.versions.get(item)
            if before is not None and now is not None and now[-1] is not before:
                self._overwrites(device, user, item, before.row, now[-1].row)

    def _overwrites(self, device: Device, user: str, item: str, old: Row, new: Row) -> None:
        """No value of somebody else disappears unseen."""
        seen = self._seen.get((device.name, user, item), {})
        if new["deleted_at"] is not None and old["deleted_at"] is None:
            is_whole = device.versions == {"whole"}
            columns: tuple[str, ...] = COLUMNS if is_whole else ALWAYS_KEPT
        else:
            columns = tuple(c for c in COLUMNS if stored(c, old) != stored(c, new))
        for column in columns:
            if stored(column, old) not in seen.get(column, ()):
                detail = f"{device.name} {item} {column} {old[column]} seen {seen.get(column)}"
                raise Violation("no value of somebody else disappears unseen", detail)

    # The invariants -------------------------------------------------------------------------------

    def is_done(self, entry: Entry) -> bool:
        """Whether everything that the user wants of a stored item is, or was, at the server."""
        wish = self.wishes.get((entry.device, entry.owner, entry.id))
        versions = self.versions.get(entry.id, [])
        if wish is None:
            return True
        if wish.deleted is not None:
            return any(v.row["deleted_at"] is not None for v in versions[wish.deleted :])
        author = f"{entry.device} {entry.owner}"
        for column, (value, since) in wish.columns.items():
            is_there, before = False, None
            for version in versions[since:]:
                now = stored(column, version.row)
                if now == value:
                    is_there = True
                elif version.author == author and now != before:
                    # An older request of this device arrived later.
                    is_there = False
                before = now
            if not is_there:
                return False
        return True

    def is_owed(self, entry: Entry) -> bool:
        """Whether an item must be queued: it is not stored, or not as its user wants it."""
        return entry.id not in self.world.stored_ids(entry.kind) or not self.is_done(entry)

    def requested(self, process: Process, request: Json, user: str) -> None:
        """Check a request that changes or deletes stored rows, when it is made."""
        device = process.device
        for item, values in _corrections_of(request):
            if item not in self.world.server.database.stored:
                raise Violation("a correction follows its insert", f"{process} {request}")
            place = (device.name, user, item)
            entry = self.world.ledger.get(*place)
            if entry is None or entry.state != HELD:
                raise Violation("a cancelled item is not sent", f"{process} {request}")
            wish = self.wishes.get(place) or Wish()
            deletes = "deleted_at" in values
            is_deletion = wish.deleted is not None or entry.is_cancelled
            # What was parked after its cancel goes on as its user decides anew.
            is_open = entry.is_cancelled and entry.is_open_again
            if deletes is not is_deletion and not is_open:
                raise Violation("a correction is what the user wants", f"{process} {request}")
            for name in () if deletes else values:
                if name != "change_id" and not self.knows(place, name, values[name]):
                    raise Violation("a correction is what the user wants", f"{process} {request}")

    def is_changed_elsewhere(self, entry: Entry, conflict: Json | None) -> bool:
        """Whether others have set what a conflict shows."""
        author = f"{entry.device} {entry.owner}"
        if (entry.device, entry.owner, entry.id) in self._forgotten:
            return True
        columns = (conflict or {"columns": []})["columns"]
        for column in columns:
            theirs, before, others = plain(column["name"], column["theirs"]), None, False
            if column["base"] is None and column["name"] not in ALWAYS_KEPT:
                # The app that read the base may not have kept the column: then nobody can say who
                # set it, and the user is asked.
                continue
            for version in self.versions.get(entry.id, []):
                value = stored(column["name"], version.row)
                is_new = before is None or value != stored(column["name"], before.row)
                others |= value == theirs and is_new and version.author != author
                before = version
            if not others:
                return False
        return bool(columns)

    def is_of_others(self, entry: Entry) -> bool:
        """Whether somebody else has written the row."""
        author = f"{entry.device} {entry.owner}"
        return any(version.author != author for version in self.versions.get(entry.id, ()))

    def wanted(self, entry: Entry, column: str) -> Any:  # noqa: ANN401
        """The value that a correction asks for; None: it asks for none."""
        wish = self.wishes.get((entry.device, entry.owner, entry.id)) or Wish()
        return wish.columns.get(column, (None, 0))[0]

    def shown(self, entry: Entry, item: Json) -> None:
        """A queued item has the values that its user wants."""
        wish = self.wishes.get((entry.device, entry.owner, entry.id)) or Wish()
        is_deletion = wish.deleted is not None or entry.is_cancelled
        if item["operation"] == "delete":
            wrong = not is_deletion
        else:
            wrong = any(
                plain(name, item["payload"].get(name)) != value
                for name, (value, _) in wish.columns.items()
                if name in item["payload"] or item["operation"] == "insert"
            )
        if wrong:
            raise Violation("an item is as the user wrote it", f"{entry} {item} {wish}")

    def is_deleted(self, item: str) -> bool:
        """Whether the row was ever taken back."""
        return any(v.row["deleted_at"] is not None for v in self.versions.get(item, ()))


def _corrections_of(request: Json) -> list[tuple[str, Json]]:
    body = json.loads(request["body"] or "{}")
    if request["method"] == "PATCH":
        named = _NAMED.findall(urllib.parse.unquote(request["url"]))
        return [(named[0], body)]
    return [
        (one["id"], {"deleted_at": "now"} if one["operation"] == "delete" else one["columns"])
        for one in body["items"]
    ]
