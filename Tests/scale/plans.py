"""Checks the plans of a request: the statement's, and those of functions, triggers and policies.

auto_explain reports every plan with its actual rows as EXPLAIN (ANALYZE, FORMAT JSON) would, also
inside functions, which EXPLAIN does not show.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg

from database import Connection
from statements import Statement

#: Tables that grow with the project. The 1,000 organisations are a few pages.
LARGE = ("activities", "contacts", "memberships", "contact_details", "users")
SORTS = {"Sort", "Incremental Sort"}
Node = dict[str, Any]

_EXPLAIN = """
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_nested_statements = on;
set auto_explain.log_analyze = on;
set auto_explain.log_timing = off;
set auto_explain.log_format = json;
set auto_explain.log_level = notice;
"""


def nodes(plan: Node) -> Iterator[Node]:
    """The plan's nodes, each before its children."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def table(node: Node) -> str | None:
    """The large table that a node reads; a partition counts as its table."""
    name = re.sub(r"_\d+$", "", str(node.get("Relation Name", "")))
    return name if name in LARGE else None


def problems(plan: Node, discards: int, sorts: int) -> list[str]:
    """What a plan does that would take longer in a larger project."""
    found = []
    for node in nodes(plan):
        kind, name = node["Node Type"], table(node)
        if kind == "Seq Scan" and name:
            found.append(f"reads all of {name}")
        thrown = node.get("Rows Removed by Filter", 0) * node.get("Actual Loops", 1)
        if name and thrown > discards:
            found.append(f"throws away {thrown} rows of {name}")
        if kind in SORTS:
            rows = max(child["Actual Rows"] * child["Actual Loops"] for child in node["Plans"])
            names = {table(below) for below in nodes(node)} - {None}
            found += [f"sorts {rows} rows of {name}" for name in names if rows > sorts]
    return found


def indexes(plan: Node) -> set[str]:
    """The indexes that a plan uses."""
    return {str(node["Index Name"]) for node in nodes(plan) if "Index Name" in node}


class Explainer:
    """Runs requests as random callers and collects every plan; nothing is stored."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._cursor = psycopg.RawCursor(connection)
        self._plans: list[Node] = []
        connection.execute(_EXPLAIN)
        connection.add_notice_handler(self._notice)
        #: For each kind of caller: one of the largest organisation, one of the middle, the last.
        self.callers = {
            kind: [
                int(row[0])
                for row in connection.execute(
                    "with sizes as (select org_id, count(*),"
                    " row_number() over (order by count(*) desc) as place,"
                    " count(*) over () as last from scale.people group by org_id)"
                    " select min(p.n) from scale.people p join sizes s using (org_id)"
                    " where s.place in (1, s.last / 2, s.last) and p.role = %s group by s.place",
                    (role,),
                )
            ]
            for kind, role in (("admin", "org_admin"), ("member", "peer_mentor"))
        }

    def _notice(self, notice: psycopg.errors.Diagnostic) -> None:
        _, found, text = (notice.message_primary or "").partition("plan:\n")
        if found:
            self._plans.append(json.loads(text)["Plan"])

    def plans(self, statement: Statement, number: int, mode: str) -> list[Node]:
        """The plans of one request by a caller; `mode` is custom or generic."""
        cursor = self._cursor
        cursor.execute("begin")
        try:
            cursor.execute(f"set local plan_cache_mode = force_{mode}_plan".encode())
            pick = statement.pick.replace("ROLE", "authenticated").replace(", 500)", ", 5)")
            cursor.execute(pick.replace(":n", "$1").encode(), (number,))
            row = cursor.fetchone()
            assert row is not None and cursor.description is not None
            values = {c.name: _text(v) for c, v in zip(cursor.description, row, strict=True)}
            names: list[str] = []

            def placeholder(found: re.Match[str]) -> str:
                if found[1] not in names:
                    names.append(found[1])
                return f"${names.index(found[1]) + 1}"

            text = re.sub(r"(?<!:):([a-z]\w*)", placeholder, statement.text)
            # A plan is reported when the next statement replaces it.
            cursor.execute("select 1")
            self._plans.clear()
            cursor.execute(text.encode(), [values[name] for name in names], prepare=True)
            cursor.execute("select 1")
            return [plan for plan in self._plans if "Plans" in plan or table(plan)]
        finally:
            cursor.execute("rollback")

    def check(self, statement: Statement) -> tuple[list[str], set[str]]:
        """The problems and the indexes of a request, in the largest organisation and in others."""
        request = statement.request
        found: set[str] = set()
        used: set[str] = set()
        for number in self.callers[request.caller]:
            for mode in ("custom", "generic"):
                plans = self.plans(statement, number, mode)
                assert plans, request.name
                for plan in plans:
                    found.update(problems(plan, request.discards, request.sorts))
                    used |= indexes(plan)
        return sorted(found), used


def _text(value: object) -> str:
    if isinstance(value, list):
        return "{" + ",".join(str(item) for item in value) + "}"
    return str(value)
