"""The tables of examples/backend/schema.sql: columns, checks, references, privileges, policies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .values import Value

if TYPE_CHECKING:
    from .database import Database

Row = dict[str, Value]
#: (database, id of the caller, row) -> allowed
Policy = Callable[["Database", str, Row], bool]
#: (database, id of the caller, row) -> value
Computed = Callable[["Database", str, Row], Value]


@dataclass(frozen=True)
class Column:
    """A column; `check` sees only values that are not null."""

    name: str
    kind: str
    required: bool = False
    #: "uuid", "now", "caller", or a value.
    default: object = None
    check: Callable[[Any], bool] | None = None


@dataclass(frozen=True)
class Reference:
    """A foreign key; not checked when one of its columns is null."""

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]


def nobody(_database: Database, _caller: str, _row: Row) -> bool:
    """The absence of a policy: nobody may."""
    return False


@dataclass(frozen=True)
class Table:
    """A table with its policies. Writing is granted by column, reading of all but `unreadable`."""

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ("id",)
    references: tuple[Reference, ...] = ()
    select: Policy = nobody
    insert: Policy = nobody
    update: Policy = nobody
    insertable: frozenset[str] = frozenset()
    updatable: frozenset[str] = frozenset()
    unreadable: frozenset[str] = frozenset()
    #: Combinations of columns that no two rows share, beside the key.
    unique: tuple[tuple[str, ...], ...] = ()
    #: The computed fields: functions that read as columns of type text.
    computed: dict[str, Computed] = field(default_factory=dict)

    def column(self, name: str) -> Column | None:
        """Return the column with this name."""
        return self._named.get(name)

    @functools.cached_property
    def _named(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}


def _length(low: int, high: int) -> Callable[[str], bool]:
    return lambda text: low <= len(text) <= high


def _one_of(*words: str) -> Callable[[str], bool]:
    return lambda text: text in words


def _own(column: str) -> Policy:
    return lambda _database, caller, row: row[column] == caller


def _in_active(database: Database, caller: str, row: Row) -> bool:
    return str(row["org_id"]) in database.active_organizations(caller)


def _own_activity(database: Database, caller: str, row: Row) -> bool:
    return row["user_id"] == caller and _in_active(database, caller, row)


def _visible_activity(database: Database, caller: str, row: Row) -> bool:
    return _own_activity(database, caller, row) or str(row["org_id"]) in database.overseen(caller)


def _own_organization(database: Database, caller: str, row: Row) -> bool:
    return (caller, str(row["id"])) in database.rows["memberships"]


def _visible_details(database: Database, caller: str, row: Row) -> bool:
    own = row["created_by"] == caller and _in_active(database, caller, row)
    return own or str(row["org_id"]) in database.overseen(caller)


def _detail(column: str, *, overseen: bool = False) -> Computed:
    """Return the computed field of a contact that reads this column of its details."""

    def read(database: Database, caller: str, contact: Row) -> Value:
        orgs = database.overseen(caller) if overseen else database.active_organizations(caller)
        for row in database.rows["contact_details"].values():
            if row["contact_id"] == contact["id"] and row["org_id"] in orgs:
                return row[column]
        return None

    return read


_UPDATED = Column("updated_at", "timestamp", required=True, default="now")
_ACTIVITY = frozenset({"type", "occurred_at", "minutes", "contact_id", "follows", "note"})
_ORGANIZATION = Reference(("org_id",), "organizations", ("id",))

TABLES = {
    table.name: table
    for table in (
        Table(
            "organizations",
            (
                Column("id", "uuid", required=True, default="uuid"),
                Column("name", "text", required=True, check=_length(1, 200)),
                Column("status", "text", True, "active", _one_of("active", "disabled")),
                Column("created_at", "timestamp", required=True, default="now"),
                _UPDATED,
            ),
            select=_own_organization,
        ),
        Table(
            "profiles",
            (
                Column("id", "uuid", required=True),
                Column("full_name", "text", check=_length(0, 200)),
                _UPDATED,
            ),
            references=(Reference(("id",), "users", ("id",)),),
            select=_own("id"),
            insert=_own("id"),
            update=_own("id"),
            insertable=frozenset({"id", "full_name"}),
            updatable=frozenset({"full_name"}),
        ),
        Table(
            "memberships",
            (
                Column("user_id", "uuid", required=True),
                Column("org_id", "uuid", required=True),
                Column(
                    "role", "text", True, check=_one_of("peer_mentor", "coordinator", "org_admin")
                ),
                Column("status", "text", True, "active", _one_of("active", "ended")),
                _UPDATED,
            ),
            key=("user_id", "org_id"),
            references=(Reference(("user_id",), "users", ("id",)), _ORGANIZATION),
            select=_own("user_id"),
        ),
        Table(
            "contacts",
            (
                Column("id", "uuid", required=True, default="uuid"),
                Column("org_id", "uuid", required=True),
                Column("name", "text", required=True, check=_length(1, 200)),
                Column("municipality", "text"),
                Column("relation", "text"),
                Column("created_by", "uuid", default="caller"),
                _UPDATED,
                Column("deleted_at", "timestamp"),
            ),
            references=(_ORGANIZATION,),
            select=_in_active,
            insert=_in_active,
            update=_in_active,
            insertable=frozenset({"id", "org_id", "name", "municipality", "relation"}),
            updatable=frozenset({"name", "municipality", "relation", "deleted_at"}),
            computed={
                "phone": _detail("phone"),
                "address": _detail("address"),
                "national_id": _detail("national_id", overseen=True),
            },
        ),
        Table(
            "contact_details",
            (
                Column("id", "uuid", required=True, default="uuid"),
                Column("contact_id", "uuid", required=True),
                Column("org_id", "uuid", required=True),
                Column("phone", "text"),
                Column("address", "text"),
                Column("national_id", "text"),
                Column("created_by", "uuid", default="caller"),
                Column("created_at", "timestamp", required=True, default="now"),
                _UPDATED,
            ),
            references=(Reference(("contact_id", "org_id"), "contacts", ("id", "org_id")),),
            unique=(("contact_id", "org_id"),),
            select=_visible_details,
            insert=_in_active,
            update=_visible_details,
            insertable=frozenset({"id", "contact_id", "org_id", "phone", "address", "national_id"}),
            updatable=frozenset({"phone", "address", "national_id"}),
            unreadable=frozenset({"national_id"}),
        ),
        Table(
            "activities",
            (
                Column("id", "uuid", required=True, default="uuid"),
                Column("org_id", "uuid", required=True),
                Column("user_id", "uuid", required=True, default="caller"),
                Column("type", "text", required=True, check=_length(1, 80)),
                Column("occurred_at", "timestamp", required=True),
                Column("minutes", "int", required=True, check=lambda n: 1 <= n <= 1440),
                Column("contact_id", "uuid"),
                Column("follows", "uuid"),
                Column("note", "text", check=_length(0, 4000)),
                Column("created_at", "timestamp", required=True, default="now"),
                _UPDATED,
                Column("deleted_at", "timestamp"),
            ),
            references=(
                Reference(("contact_id", "org_id"), "contacts", ("id", "org_id")),
                Reference(("follows", "org_id"), "activities", ("id", "org_id")),
                _ORGANIZATION,
                Reference(("user_id",), "users", ("id",)),
            ),
            select=_visible_activity,
            insert=_own_activity,
            update=_own_activity,
            insertable=_ACTIVITY | {"id", "org_id", "user_id"},
            updatable=_ACTIVITY | {"deleted_at"},
        ),
    )
}
