"""The library's requests as the SQL that the data service makes of them, and an administrator's.

The URLs are those of `RestRequests.swift`. The test server's own code turns them into SQL, which
Tests/backend compares with PostgREST. A value such as `VAR_org` becomes a variable.
"""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Callable

import psycopg
from local_supabase import query, schema_cache
from local_supabase.sql import Builder, RawJson

COLUMNS = "id,org_id,user_id,type,occurred_at,minutes,contact_id,note"


@dataclasses.dataclass(frozen=True)
class Request:
    """One request: who sends it, what it reads or writes, and what its plan may do."""

    name: str
    #: A condition on scale.people that the caller meets; "admin" or "member".
    caller: str
    #: A path with a query string, "insert" or the name of a function and its argument.
    path: str
    #: Variables beside `org` and `owner`, as expressions over p (people) and o (organisations).
    variables: tuple[tuple[str, str], ...] = ()
    #: The number of rows that may be read and thrown away by a filter, for each table of the plan.
    discards: int = 600
    #: The number of rows of a large table that the plan may sort: at most one page.
    sorts: int = 500
    writes: bool = False
    #: Whether clients with random callers send it. Not what needs rows that few callers have.
    by_anybody: bool = True


_CONTACTS = "select=id,org_id,name,municipality,relation,updated_at,deleted_at&org_id=eq.VAR_org"
_AFTER = (
    "&updated_at=gte.VAR_at&or=(updated_at.gt.VAR_at,and(updated_at.eq.VAR_at,id.gt.VAR_id))"
    "&order=updated_at.asc,id.asc&limit=500"
)
_OWN = "&org_id=eq.VAR_org&user_id=eq.VAR_owner&occurred_at=gte.2025-06-01"
_BODY = (("body", "scale.body(p.user_id, p.org_id, o.contacts, 500)"),)
_VISIT = (("body", "scale.body(p.user_id, p.org_id, o.contacts, 5)"),)

REQUESTS = (
    Request(
        "membership check",
        "member",
        "memberships?select=org_id,role,status,updated_at,organizations(id,name,status)"
        "&user_id=eq.VAR_owner&order=org_id.asc,status.asc&limit=500",
    ),
    Request(
        "delta read of contacts",
        "member",
        f"contacts?{_CONTACTS}{_AFTER}",
        (("at", "o.contact_at"), ("id", "o.contact_id")),
    ),
    Request(
        "delta read of activities",
        "admin",
        f"activities?select=*&org_id=eq.VAR_org{_AFTER}",
        (("at", "o.activity_at"), ("id", "o.activity_id")),
    ),
    Request(
        "reconcile, ids of contacts",
        "member",
        "contacts?select=id,updated_at&org_id=eq.VAR_org&deleted_at=is.null&id=gt.VAR_id"
        "&order=id.asc&limit=500",
        (("id", "o.middle_id"),),
    ),
    Request(
        "delta read of own activities",
        "member",
        f"activities?select=type,minutes,id,updated_at,deleted_at{_OWN}{_AFTER}",
        (("at", "o.activity_at"), ("id", "o.activity_id")),
        discards=10,
    ),
    Request(
        "reconcile, ids of own activities",
        "member",
        f"activities?select=id,updated_at{_OWN}&deleted_at=is.null&id=gt.VAR_id"
        "&order=id.asc&limit=500",
        (("id", "o.middle_id"),),
    ),
    Request("summary", "member", "rpc/activity_summary", discards=100, sorts=100_000),
    Request(
        "read back of five ids",
        "member",
        "activities?id=in.(VAR_ids)&select=id",
        (("ids", "coalesce(scale.own_ids(p.user_id, p.org_id), '{}')"),),
    ),
    Request(
        "administrator: latest fifty",
        "admin",
        "activities?select=*&org_id=eq.VAR_org&order=occurred_at.desc,id&limit=50",
        sorts=200,
    ),
    Request(
        "administrator: one member's latest fifty",
        "admin",
        "activities?select=*&org_id=eq.VAR_org&user_id=eq.VAR_member&order=occurred_at.desc"
        "&limit=50",
        (("member", "o.mentor"),),
        sorts=200,
    ),
    Request(
        "administrator: contacts by part of a name",
        "admin",
        "contacts?select=id,name&org_id=eq.VAR_org&name=ilike.*a1b*&limit=50",
        discards=100_000,
    ),
    Request(
        "administrator: a month's activities by a word",
        "admin",
        "activities?select=*&org_id=eq.VAR_org&occurred_at=gte.2026-06-01&note=ilike.*kveld*"
        "&order=occurred_at.desc,id&limit=50",
        discards=100_000,
        sorts=200,
    ),
    Request(
        "administrator: figures of the organisation",
        "admin",
        "rpc/activity_overview",
        sorts=100_000,
        discards=1_000_000,
    ),
    Request("upload of 500, by table", "member", "insert", _BODY, writes=True),
    Request("upload of 500, by function", "member", "rpc/submit_activities", _BODY, writes=True),
    Request(
        "500 changes, by function",
        "member",
        "rpc/change_activities",
        (("body", "scale.changes(p.user_id, p.org_id, 500)"),),
        writes=True,
        by_anybody=False,
    ),
    Request("upload of 5, by table", "member", "insert", _VISIT, writes=True),
)


@dataclasses.dataclass(frozen=True)
class Statement:
    """A request's SQL. `pick` makes the transaction the caller's and returns its variables."""

    request: Request
    pick: str
    text: str

    def script(self, role: str, people: int, admins: int) -> str:
        """The script for pgbench: one transaction by a random caller, as the data service makes."""
        last = admins if self.request.caller == "admin" else people
        return (
            f"\\set n random(1, {last})\n"
            f"begin{'' if self.request.writes else ' read only'};\n"
            f"{self.pick.replace('ROLE', role)} \\gset\n{self.text};\ncommit;\n"
        )


def _substituted(text: str, parameters: list[object]) -> str:
    """Replace $n by variables and literals."""

    def value(found: re.Match[str]) -> str:
        given = parameters[int(found[1]) - 1]
        if isinstance(given, RawJson):
            return ":body"
        word = str(given)
        name = re.fullmatch(r'(?:\{")?VAR_(\w+)(?:"\})?', word)
        return f":{name[1]}" if name else "'" + word.replace("'", "''") + "'"

    return re.sub(r"\$(\d+)", value, text)


def _read(cache: schema_cache.SchemaCache, path: str) -> str:
    table, _, asked = path.partition("?")
    builder = Builder(cache)
    inner = builder.read(table, query.parse(query.pairs(asked)))
    text = (
        f"WITH source AS ({inner}) SELECT count(*), coalesce(json_agg(_), '[]')::text, NULL "
        "FROM source AS _"
    )
    return _substituted(text, builder.parameters)


def _insert(cache: schema_cache.SchemaCache, target: str) -> str:
    builder = Builder(cache)
    table = cache.tables["activities"]
    names = COLUMNS.split(",")
    rows = builder.rows_of_body(table, names, RawJson(b""), defaults=True)
    # The body is an array. As in PostgREST it is sent once.
    rows = re.sub(r"CASE jsonb_typeof\((\S+)\) WHEN 'array' THEN .*? END", r"\1", rows)
    stored = builder.insert(table, names, rows, ("ignore-duplicates", target.split(",")))
    text = (
        f'WITH written AS ({stored} RETURNING "activities"."id") SELECT count(*), '
        "coalesce(json_agg(_), '[]')::text, 0 FROM (SELECT id FROM written) AS _"
    )
    return _substituted(text, builder.parameters)


_CALLS: dict[str, Callable[[str], str]] = {
    "activity_summary": lambda name: f"public.{name}(org := :org::uuid)",
    "activity_overview": lambda name: f"public.{name}(org := :org::uuid)",
    "submit_activities": lambda name: f"public.{name}(items := :body::jsonb)",
    "change_activities": lambda name: f"public.{name}(items := :body::jsonb)",
}


def _call(name: str) -> str:
    rows = f"SELECT * FROM {_CALLS[name](name)}"
    return f"SELECT count(*), coalesce(json_agg(_), '[]')::text FROM ({rows}) AS _"


def statements(dsn: str, target: str = "id") -> list[Statement]:
    """The SQL of all requests, for the schema of this database."""

    async def load() -> schema_cache.SchemaCache:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            return await schema_cache.load(connection)

    cache = asyncio.run(load())
    found = []
    for request in REQUESTS:
        if request.path == "insert":
            text = _insert(cache, target)
        elif request.path.startswith("rpc/"):
            text = _call(request.path.removeprefix("rpc/"))
        else:
            text = _read(cache, request.path)
        more = "".join(f", {what} as {name}" for name, what in request.variables)
        pick = (
            "select set_config('role', 'ROLE', true), "
            "set_config('request.jwt.claims', p.claims, true), "
            f"p.org_id as org, p.user_id as owner{more} "
            "from scale.people p join scale.organisations o on o.org_id = p.org_id where p.n = :n"
        )
        found.append(Statement(request, pick, text))
    return found
