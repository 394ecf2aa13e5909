"""The data service at /rest/v1 over rows in memory."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from local_supabase import payload, prefer, query, rest_auth
from local_supabase.config import Config
from local_supabase.messages import Reply, Request
from local_supabase.prefer import Preferences
from local_supabase.query_tree import Query
from local_supabase.rest_context import apply_range, content_range
from local_supabase.rest_errors import RestError, status_of

from . import functions, reading
from .database import SERVICE, Database
from .schema import TABLES, Row, Table
from .values import SqlError, write

#: The privileges that a method needs.
VERBS = {"GET": "select", "POST": "insert", "PATCH": "update", "DELETE": "delete"}
JSON = {"Content-Type": "application/json; charset=utf-8"}


@functools.lru_cache(maxsize=512)
def _parsed(text: str) -> Query:
    """The query string; nobody may change the result."""
    return query.parse(query.pairs(text))


class Rest:
    """Answers requests as the caller of their token."""

    def __init__(self, database: Database, config: Config) -> None:
        self.database = database
        self.config = config

    def handle(self, request: Request, path: str) -> Reply:
        """Answer one request; `path` is what follows /rest/v1."""
        authenticated = False
        try:
            now = self.database.now().timestamp()
            bearer = request.header("authorization")
            caller = rest_auth.identify(bearer, self.config.jwt_secret, now)
            authenticated = caller.authenticated
            who = SERVICE if caller.role == "service_role" else str(caller.claims.get("sub", ""))
            return self._route(request, path, who, authenticated)
        except RestError as error:
            return Reply(error.status, error.body(), error.all_headers())
        except SqlError as error:
            known = refusal(error, authenticated)
            return Reply(known.status, known.body(), known.all_headers())

    def _route(self, request: Request, path: str, caller: str, authenticated: bool) -> Reply:
        name = path.strip("/")
        preferences = prefer.parse(request.all_headers("prefer"), frozenset())
        if name.startswith("rpc/"):
            if not authenticated:
                raise SqlError("42501", f"permission denied for function {name[4:]}")
            return functions.call(self.database, request, name[4:], caller)
        table = TABLES.get(name)
        if table is None:
            message = f"Could not find the table 'public.{name}' in the schema cache"
            raise RestError(404, "PGRST205", message)
        asked = _parsed(request.query)
        verb = VERBS.get(request.method)
        if verb is None:
            raise RestError(405, "PGRST117", f"Unsupported HTTP method: {request.method}")
        if verb in {"insert", "update"}:
            payload.read(request.body, request.header("content-type"), asked.columns)
        if not authenticated or (caller != SERVICE and not _granted(table, verb)):
            raise _no_privilege(table)
        if verb == "select":
            return self._read(request, table, asked, preferences, caller)
        if verb == "delete":
            raise NotImplementedError("nobody deletes rows of these tables over the API")
        with self.database.transaction():
            if verb == "insert":
                return self._insert(request, table, asked, preferences, caller)
            return self._update(request, table, asked, preferences, caller)

    def _read(
        self, request: Request, table: Table, asked: Query, preferences: Preferences, caller: str
    ) -> Reply:
        top = dataclasses.replace(asked.top)
        asked = dataclasses.replace(asked, levels={**asked.levels, (): top})
        apply_range(request, self.config, asked)
        _check_readable(table, asked, caller)
        visible = self.database.visible(table, caller)
        found = reading.rows(self.database, table, asked, caller, visible)
        total = None
        if preferences.count:
            total = sum(
                all(reading.holds(self.database, table, r, f, caller) for f in top.filters)
                for r in visible
            )
        headers = {**JSON, "Content-Range": content_range(len(found), top.offset, total)}
        status = 206 if total is not None and len(found) < total else 200
        return Reply(status, self._shown(table, found, asked, caller), headers)

    def _shown(self, table: Table, found: list[Row], asked: Query, caller: str) -> bytes:
        values = [
            reading.shown(self.database, table, row, asked.select, asked, caller) for row in found
        ]
        return write(values)

    def _insert(
        self, request: Request, table: Table, asked: Query, preferences: Preferences, caller: str
    ) -> Reply:
        sent = payload.parse_json(request.body, str)
        objects: list[dict[str, Any]] = sent if isinstance(sent, list) else [sent]
        limit = self.config.max_body_rows
        if limit is not None and len(objects) > limit:
            return Reply(413, b"Payload Too Large", {"Content-Type": "text/plain"})
        names = asked.columns or (list(objects[0]) if objects else [])
        merging = preferences.resolution == "merge-duplicates"
        granted = table.insertable & table.updatable if merging else table.insertable
        _check_writable(table, names, granted, caller)
        if preferences.returning == "representation":
            _check_readable(table, asked, caller)
        defaults = preferences.missing == "default"
        converted = [self.database.converted(table, names, one, defaults) for one in objects]
        returned: list[Row] = []
        new: list[Row] = []
        for values in converted:
            row, is_new = self.database.insert(table, values, caller, preferences.resolution)
            if row is None:
                continue
            if preferences.resolution == "merge-duplicates" and any(r is row for r in returned):
                raise SqlError(
                    "21000", "ON CONFLICT DO UPDATE command cannot affect row a second time"
                )
            returned.append(row)
            new += [row] if is_new else []
        for row in returned:
            self.database.check_references(table, row)
        merged = preferences.resolution == "merge-duplicates" and bool(returned) and not new
        status = 200 if merged else 201
        headers = {
            "Content-Range": "*/*",
            **preferences.applied("resolution", "missing", "return", "count"),
        }
        if preferences.returning != "representation":
            return Reply(status, b"", headers)
        if caller != SERVICE and not all(table.select(self.database, caller, r) for r in returned):
            raise SqlError(
                "42501", f'new row violates row-level security policy for table "{table.name}"'
            )
        return Reply(status, self._shown(table, returned, asked, caller), {**JSON, **headers})

    def _update(
        self, request: Request, table: Table, asked: Query, preferences: Preferences, caller: str
    ) -> Reply:
        sent = payload.parse_json(request.body, str)
        _check_writable(table, list(sent), table.updatable, caller)
        if preferences.returning == "representation":
            _check_readable(table, asked, caller)
        values = self.database.converted(table, list(sent), sent, True)
        # Rows that the caller sees and may not change are left out without an error.
        visible = [
            row
            for row in self.database.visible(table, caller)
            if caller == SERVICE or table.update(self.database, caller, row)
        ]
        changed = [
            self.database.update(table, row, values, caller)
            for row in reading.rows(self.database, table, asked, caller, visible)
        ]
        for row in changed:
            self.database.check_references(table, row)
        if preferences.returning != "representation":
            return Reply(204)
        return Reply(200, self._shown(table, changed, asked, caller), dict(JSON))


def _granted(table: Table, verb: str) -> bool:
    columns = {"select": True, "insert": bool(table.insertable), "update": bool(table.updatable)}
    return columns.get(verb, False)


def _no_privilege(table: Table) -> SqlError:
    return SqlError("42501", f"permission denied for table {table.name}")


def _check_writable(table: Table, names: list[str], granted: frozenset[str], caller: str) -> None:
    """Refuse columns that the table does not have, then those that the caller may not write."""
    for name in names:
        if table.column(name) is None:
            message = f"Could not find the '{name}' column of '{table.name}' in the schema cache"
            raise RestError(400, "PGRST204", message)
    if caller != SERVICE and not granted.issuperset(names):
        raise _no_privilege(table)


def _check_readable(table: Table, asked: Query, caller: str) -> None:
    if caller == SERVICE:
        return
    for place, name in reading.named(table, asked.select, asked.top, asked):
        if name in place.unreadable or (name == "*" and place.unreadable):
            raise _no_privilege(place)


def refusal(error: SqlError, authenticated: bool) -> RestError:
    """Return PostgREST's answer to a database error."""
    if error.state == "PGRST200":
        return RestError(400, "PGRST200", error.message)
    return RestError(status_of(error.state, authenticated), error.state, error.message)
