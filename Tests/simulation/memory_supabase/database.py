"""Rows in memory under PostgreSQL's rules: policies, checks, unique keys, references."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from local_supabase.accounts import Accounts

from .schema import TABLES, Column, Row, Table
from .values import SqlError, Value, convert

Key = Any
#: The caller that bypasses every policy.
SERVICE = "service"


class Database(Accounts):
    """All tables, and the users. `now` is the server's clock; `chance` makes its ids."""

    def __init__(self, now: Callable[[], datetime.datetime], chance: random.Random) -> None:
        super().__init__(now, chance)
        #: Table -> key -> row; the key of one column is its value, of several a tuple.
        self.rows: dict[str, dict[Key, Row]] = {name: {} for name in TABLES}
        #: Every row that was ever inserted into activities.
        self.stored: dict[str, Row] = {}
        self._last = datetime.datetime.min.replace(tzinfo=datetime.UTC)

    def moment(self) -> datetime.datetime:
        """clock_timestamp(): no two values are equal."""
        self._last = max(self.now(), self._last + datetime.timedelta(microseconds=1))
        return self._last

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all or nothing. Rows are never changed in place, so shallow copies suffice."""
        before = {name: dict(rows) for name, rows in self.rows.items()}
        stored = dict(self.stored)
        try:
            yield
        except BaseException:
            self.rows, self.stored = before, stored
            raise

    # Memberships ----------------------------------------------------------------------------------

    def _organizations(self, caller: str, *roles: str) -> set[str]:
        found = set()
        for (user, org), membership in self.rows["memberships"].items():
            if user != caller or membership["status"] != "active":
                continue
            if roles and membership["role"] not in roles:
                continue
            if self.rows["organizations"][org]["status"] == "active":
                found.add(org)
        return found

    def active_organizations(self, caller: str) -> set[str]:
        """Return the active organisations in which the caller is an active member."""
        return self._organizations(caller)

    def overseen(self, caller: str) -> set[str]:
        """Return the organisations in which the caller sees the activities of all members."""
        return self._organizations(caller, "coordinator", "org_admin")

    # Reading --------------------------------------------------------------------------------------

    def visible(self, table: Table, caller: str) -> list[Row]:
        """Return the rows that the policies show to the caller."""
        rows = self.rows[table.name].values()
        if caller == SERVICE:
            return list(rows)
        return [row for row in rows if table.select(self, caller, row)]

    def key_of(self, table: Table, row: Row) -> Key:
        """Return the row's primary key."""
        return tuple(row[c] for c in table.key) if len(table.key) > 1 else row[table.key[0]]

    # Writing --------------------------------------------------------------------------------------

    def converted(
        self, table: Table, names: list[str], sent: dict[str, Any], defaults: bool
    ) -> dict[str, Value]:
        """Convert the named columns of a JSON object to the table's types."""
        found: dict[str, Value] = {}
        for name in names:
            column = table.column(name)
            assert column is not None
            if name in sent or not defaults:
                is_now = column.kind == "timestamp" and sent.get(name) == "now"
                found[name] = self.now() if is_now else convert(column.kind, sent.get(name))
        return found

    def complete(self, table: Table, values: dict[str, Value], caller: str) -> Row:
        """Return a whole row: columns without a value get their default."""
        row: Row = {}
        for column in table.columns:
            row[column.name] = (
                values[column.name] if column.name in values else self._default(column, caller)
            )
        # A trigger of every table sets it, whatever the client sent.
        row["updated_at"] = self.moment()
        return row

    def _default(self, column: Column, caller: str) -> Value:
        if column.default == "uuid":
            return self.new_id()
        if column.default == "now":
            return self.moment()
        if column.default == "caller":
            return caller
        return None if column.default is None else str(column.default)

    def insert(
        self, table: Table, values: dict[str, Value], caller: str, resolution: str | None
    ) -> tuple[Row | None, bool]:
        """Insert one row; return (the stored row, is it new). None: a duplicate was skipped.

        The order is PostgreSQL's: policies, then checks, then the unique key; references at the end
        of the statement (`check_references`).
        """
        row = self.complete(table, values, caller)
        if caller != SERVICE:
            allowed = table.insert(self, caller, row)
            if resolution is not None:
                allowed = allowed and table.select(self, caller, row)
            if not allowed:
                raise self._denied(table)
        self._check(table, row)
        key = self.key_of(table, row)
        existing = self.rows[table.name].get(key)
        if existing is None:
            self._check_unique(table, row)
            self._put(table, key, row)
            return row, True
        if resolution is None:
            name = f"{table.name}_pkey"
            message = f'duplicate key value violates unique constraint "{name}"'
            raise SqlError("23505", message)
        if resolution == "ignore-duplicates":
            return None, False
        changed = {**existing, **values, "updated_at": self.moment()}
        self._allow_update(table, existing, changed, caller)
        self._put(table, key, changed)
        return changed, False

    def update(self, table: Table, row: Row, values: dict[str, Value], caller: str) -> Row:
        """Change one visible row."""
        changed = {**row, **values, "updated_at": self.moment()}
        self._allow_update(table, row, changed, caller)
        self._check(table, changed)
        del self.rows[table.name][self.key_of(table, row)]
        self._put(table, self.key_of(table, changed), changed)
        return changed

    def _allow_update(self, table: Table, before: Row, after: Row, caller: str) -> None:
        if caller == SERVICE:
            return
        if not (table.update(self, caller, before) and table.update(self, caller, after)):
            raise self._denied(table)

    def _put(self, table: Table, key: Key, row: Row) -> None:
        self.rows[table.name][key] = row
        if table.name == "activities":
            self.stored[str(key)] = row

    def _denied(self, table: Table) -> SqlError:
        message = f'new row violates row-level security policy for table "{table.name}"'
        return SqlError("42501", message)

    def _check(self, table: Table, row: Row) -> None:
        for column in table.columns:
            if column.required and row[column.name] is None:
                message = (
                    f'null value in column "{column.name}" of relation "{table.name}" '
                    "violates not-null constraint"
                )
                raise SqlError("23502", message, column.name)
        for column in table.columns:
            value = row[column.name]
            if value is not None and column.check is not None and not column.check(value):
                constraint = f"{table.name}_{column.name}_check"
                message = (
                    f'new row for relation "{table.name}" violates check constraint "{constraint}"'
                )
                raise SqlError("23514", message, column.name)

    def _check_unique(self, table: Table, row: Row) -> None:
        for columns in table.unique:
            values = [row[c] for c in columns]
            if any([r[c] for c in columns] == values for r in self.rows[table.name].values()):
                name = "_".join((table.name, *columns, "key"))
                message = f'duplicate key value violates unique constraint "{name}"'
                raise SqlError("23505", message)

    def check_references(self, table: Table, row: Row) -> None:
        """Check foreign keys after the whole statement: its rows may refer to each other."""
        for reference in table.references:
            wanted = tuple(row[c] for c in reference.columns)
            if None in wanted:
                continue
            if reference.table == "users":
                found = wanted[0] in self.users
            else:
                target = self.rows[reference.table].get(wanted[0])
                found = target is not None and all(
                    target[c] == value for c, value in zip(reference.target, wanted, strict=True)
                )
            if not found:
                name = f"{table.name}_{reference.columns[0]}_fkey"
                message = (
                    f'insert or update on table "{table.name}" violates foreign key constraint '
                    f'"{name}"'
                )
                raise SqlError("23503", message, reference.columns[0])
