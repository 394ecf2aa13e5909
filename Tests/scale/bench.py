"""Measures schema.sql at ten million activities, and prints and records a table.

python bench.py FOLDER: the data stay in the folder, so that a second run need not make them again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from database import SCHEMA, Connection, Server, Size, serve
from load import Times, run
from partition import PARTITIONS, partitioned
from plans import Explainer
from statements import statements

RECORDED = Path(__file__).with_name("recorded.json")
LARGE = Size(1_000, 100_000, 200_000, 10_000_000)
SMALL = dataclasses.replace(LARGE, activities=100_000)
CLIENTS = (1, 16, 64)
#: How much slower than at 100,000 activities a request may be.
GROWTH = 1.5
#: A request of each purpose in the fleet's ordinary load, without the auth service's (Tests/fleet).
MIX = {"upload of 5, by table": 1, "delta read of contacts": 2, "summary": 1}
Figures = dict[str, Any]


def numbers(times: Times) -> dict[str, float]:
    """A run for the record."""
    return {
        "p50": round(times.p50, 3),
        "p99": round(times.p99, 3),
        "per_second": round(times.rate, 1),
        "count": times.count,
    }


class Bench:
    """Runs requests on one database."""

    def __init__(self, server: Server, database: str, seconds: float, target: str = "id") -> None:
        self.server, self.database, self.seconds = server, database, seconds
        self.statements = {s.request.name: s for s in statements(server.dsn(database), target)}
        with server.connect(database) as connection:
            row = connection.execute(
                "select count(*), count(*) filter (where role = 'org_admin') from scale.people"
            ).fetchone()
        assert row is not None
        self.people, self.admins = int(row[0]), int(row[1])

    def script(self, name: str, role: str = "authenticated") -> str:
        """The script of a request."""
        return self.statements[name].script(role, self.people, self.admins)

    def run(self, name: str, clients: int, role: str = "authenticated") -> dict[str, float]:
        """Run one request by so many clients."""
        seconds = self.seconds * (2 if self.statements[name].request.writes else 1)
        return numbers(
            run(self.server.port, self.database, [(self.script(name, role), 1)], clients, seconds)
        )

    def mix(self, clients: int) -> dict[str, float]:
        """Run the fleet's ordinary load."""
        scripts = [(self.script(name), weight) for name, weight in MIX.items()]
        return numbers(run(self.server.port, self.database, scripts, clients, 2 * self.seconds))

    def plans(self) -> dict[str, Figures]:
        """The problems and the indexes of every request's plans."""
        found: dict[str, Figures] = {}
        with self.server.connect(self.database) as connection:
            explainer = Explainer(connection)
            for name, statement in self.statements.items():
                problems, used = explainer.check(statement)
                found[name] = {"problems": problems, "indexes": sorted(used)}
        return found


def reads(bench: Bench) -> list[str]:
    """The requests that store nothing; they come first, so that they see the generated rows."""
    return [n for n, s in bench.statements.items() if not s.request.writes]


def writes(bench: Bench) -> list[str]:
    """The uploads."""
    return [n for n, s in bench.statements.items() if s.request.writes and s.request.by_anybody]


_PARTS = """
with parts as (select 'public.activities'::regclass as id
  union select relid from pg_partition_tree('public.activities'))
"""


def sizes(connection: Connection) -> Figures:
    """Bytes of the activities with their partitions, and of each index."""
    rows = connection.execute(
        f"{_PARTS} select coalesce(p.inhparent, i.indexrelid)::regclass::text, "
        "sum(pg_relation_size(i.indexrelid))::bigint from parts "
        "join pg_index i on i.indrelid = parts.id "
        "left join pg_inherits p on p.inhrelid = i.indexrelid "
        "group by 1 having sum(pg_relation_size(i.indexrelid)) > 0 order by 1".encode()
    ).fetchall()
    whole = connection.execute(
        f"{_PARTS} select sum(pg_relation_size(id))::bigint from parts".encode()
    ).fetchone()
    assert whole is not None
    return {
        "table_bytes": int(whole[0]),
        "index_bytes": {n.split(".")[-1]: int(b) for n, b in rows},
    }


def timed(connection: Connection, text: str) -> float:
    """The seconds that a statement takes."""
    start = time.monotonic()
    connection.execute(text.encode())
    return round(time.monotonic() - start, 1)


def index_cost(bench: Bench) -> Figures:
    """What the index for the latest fifty costs an upload: with, without, with it again."""
    name = "upload of 500, by table"
    found: Figures = {}
    with bench.server.connect(bench.database) as connection:
        row = connection.execute("select pg_get_indexdef('activities_latest'::regclass)").fetchone()
        assert row is not None
        found["with"] = bench.run(name, 1)
        connection.execute("drop index public.activities_latest")
        try:
            found["without"] = bench.run(name, 1)
        finally:
            found["seconds to make it"] = timed(connection, row[0])
    return found


def times(figures: Figures) -> list[str]:
    """The tables of docs/scale.md."""
    lines = ["| p50 (p99), ms | 1 client | 16 clients | 64 clients |", "|---|---|---|---|"]
    for name, found in figures["clients"].items():
        cells = [f"{found[str(n)]['p50']:,.1f} ({found[str(n)]['p99']:,.1f})" for n in CLIENTS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "| p50, ms, 1 client | 100,000 | 10,000,000 | ratio | without policies |",
        "|---|---|---|---|---|",
    ]
    for name, found in figures["growth"].items():
        cells = [f"{found[key]:,.2f}" for key in ("small", "large", "ratio", "unpoliced")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    found = figures["corrections"]
    lines += [
        "",
        "| p50, ms, 1 client, by function | 500 added | 500 changed | 500 deleted |",
        "|---|---|---|---|",
        f"| | {found['add']:,.1f} | {found['change']:,.1f} | {found['delete']:,.1f} |",
    ]
    lines += [
        "",
        "| p50, ms, 1 client, 10,000,000 | one table | 64 partitions |",
        "|---|---|---|",
    ]
    whole, parts = (figures["partitions"][key] for key in ("one table", "partitioned"))
    for name in COMPARED:
        cells = [f"{kind['requests'][name]['p50']:,.1f}" for kind in (whole, parts)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    kept = [figures["upkeep"][key] for key in ("large", "partitioned")]
    lines.append(f"| vacuum, s | {' | '.join(str(kind['vacuum_s']) for kind in kept)} |")
    for what, sums in (
        ("table, MB", [kind["table_bytes"] for kind in kept]),
        ("indexes, MB", [sum(kind["index_bytes"].values()) for kind in kept]),
    ):
        lines.append(f"| {what} | {' | '.join(f'{size / 1e6:,.0f}' for size in sums)} |")
    return lines


def targets(figures: Figures) -> list[str]:
    """Each target with its figure, met or missed, and why."""
    lines = ["| target | figure | result |", "|---|---|---|"]
    for name, plan in figures["plans"].items():
        why = "; ".join(plan["problems"])
        lines.append(
            f"| {name}: every plan uses an index | {', '.join(plan['indexes'])} "
            f"| {f'missed: {why}' if why else 'met'} |"
        )
    for name, found in figures["growth"].items():
        result = "met" if found["ratio"] <= GROWTH else f"missed: {WHY.get(name, 'not explained')}"
        lines.append(
            f"| {name}: p50 within {GROWTH} times of 100,000 activities "
            f"| {found['ratio']:.2f} | {result} |"
        )
    return lines


#: Why a request grows with the number of activities.
WHY = {
    "administrator: one member's latest fifty": "at 100,000 activities a member has one, and here "
    "fifty are returned",
    "summary": "it adds up the caller's own activities, and a user has a hundred times as many",
    "administrator: figures of the organisation": "it adds up the whole organisation's activities",
    "administrator: a month's activities by a word": "no index has the words of a note, so it "
    "reads the organisation's activities of the month from the latest on until fifty match",
}


def growth(server: Server, seconds: float) -> Figures:
    """The p50 of one client at both sizes and without policies, one after another."""
    bench, before = Bench(server, "large", seconds), Bench(server, "small", seconds)
    found: Figures = {}
    for name in [*reads(bench), *writes(bench)]:
        large, small = bench.run(name, 1)["p50"], before.run(name, 1)["p50"]
        found[name] = {
            "large": large,
            "small": small,
            "unpoliced": bench.run(name, 1, "unpoliced")["p50"],
            "ratio": round(large / small, 2),
        }
        print(name, found[name], flush=True)
    return found


def clients(server: Server, seconds: float) -> Figures:
    """Every request by 1, 16 and 64 clients, and the fleet's ordinary load."""
    bench = Bench(server, "large", seconds)
    found: Figures = {}
    for name in [*reads(bench), *writes(bench)]:
        found[name] = {str(count): bench.run(name, count) for count in CLIENTS}
        print(name, {count: f["p50"] for count, f in found[name].items()}, flush=True)
    found["the fleet's ordinary load"] = {str(count): bench.mix(count) for count in CLIENTS}
    return found


#: Requests that the partitions may make faster or slower.
COMPARED = (
    "delta read of activities",
    "summary",
    "read back of five ids",
    "administrator: latest fifty",
    "administrator: figures of the organisation",
    "upload of 500, by table",
    "upload of 500, by function",
)


def partitions(server: Server, seconds: float) -> Figures:
    """The same requests with and without partitions."""
    found: Figures = {"count": PARTITIONS}
    for label, database in {"one table": "large", "partitioned": "partitioned"}.items():
        target = "org_id,id" if label == "partitioned" else "id"
        bench = Bench(server, database, seconds, target)
        found[label] = {"requests": {name: bench.run(name, 1) for name in COMPARED}}
        found[label]["plans"] = {
            name: plan["problems"] for name, plan in bench.plans().items() if plan["problems"]
        }
        print(label, {n: f["p50"] for n, f in found[label]["requests"].items()}, flush=True)
    return found


#: How often `corrections` repeats.
ROUNDS = 40
_ITEMS = """
select json_agg(json_build_object('id', a.id, 'org_id', a.org_id, 'updated_at', a.updated_at,
  'operation', %s::text, 'columns', %s::jsonb))::text
from public.activities a where a.id in (select (e ->> 'id')::uuid from jsonb_array_elements(%s) e)
"""
CORRECTIONS = {"change": '{"minutes": 45, "note": "Rettet"}', "delete": "{}"}


_CALLER = """
select set_config('request.jwt.claims', p.claims, false),
  scale.body(p.user_id, p.org_id, o.contacts, 500)
from scale.people p join scale.organisations o on o.org_id = p.org_id
where p.role = 'peer_mentor' order by p.n limit 1
"""


def corrections(server: Server, database: str, rounds: int = ROUNDS) -> Figures:
    """The p50 in ms of 500 items added, changed and deleted by function, each in a transaction.

    In the transaction that added them, a change would check the foreign keys, too.
    """
    taken: dict[str, list[float]] = {name: [] for name in ("add", *CORRECTIONS)}
    with server.connect(database) as connection:

        def call(name: str, function: str, body: str) -> None:
            source = f"from public.{function}(%s::jsonb) where status = 'stored'"
            connection.execute(b"set role authenticated")
            start = time.monotonic()
            found = connection.execute(f"select count(*) {source}".encode(), (body,)).fetchone()
            taken[name].append(1000 * (time.monotonic() - start))
            connection.execute(b"reset role")
            assert found == (500,), (name, found)

        for _ in range(rounds):
            row = connection.execute(_CALLER.encode()).fetchone()
            assert row is not None
            call("add", "submit_activities", row[1])
            for name, columns in CORRECTIONS.items():
                items = connection.execute(_ITEMS.encode(), (name, columns, row[1])).fetchone()
                assert items is not None
                call(name, "change_activities", items[0])
            connection.execute(
                "delete from public.activities a where a.id in "
                "(select (e ->> 'id')::uuid from jsonb_array_elements(%s) e)",
                (row[1],),
            )
    return {name: round(statistics.median(found), 1) for name, found in taken.items()}


def machine() -> str:
    """The machine in a few words."""
    pages = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text("utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return f"{model}, {os.cpu_count()} cores, {round(pages / 2**30)} GB"


def upkeep(server: Server) -> Figures:
    """Sizes, and the seconds of a vacuum, with and without partitions."""
    found: Figures = {}
    for database in ("large", "partitioned"):
        with server.connect(database) as connection:
            found[database] = {"vacuum_s": timed(connection, "vacuum activities")}
            found[database] |= sizes(connection)
    return found


def plans(server: Server) -> Figures:
    """The plans at ten million activities."""
    return Bench(server, "large", 1).plans()


PARTS: dict[str, Callable[[Server, float], Figures]] = {
    "plans": lambda server, _: plans(server),
    "growth": growth,
    "clients": clients,
    "index": lambda server, seconds: index_cost(Bench(server, "large", seconds)),
    "partitions": partitions,
    "corrections": lambda server, _: corrections(server, "small"),
    "upkeep": lambda server, _: upkeep(server),
}


def by_line(figures: Figures) -> str:
    """JSON with one line for each figure of each part, so that a change shows what has changed."""
    parts = []
    for name, part in figures.items():
        rows = part.items() if isinstance(part, dict) else []
        lines = ",\n".join(f"    {json.dumps(key)}: {json.dumps(row)}" for key, row in rows)
        parts.append(
            f"  {json.dumps(name)}: " + (f"{{\n{lines}\n  }}" if lines else json.dumps(part))
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Make what is missing, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", choices=list(PARTS), nargs="+", default=list(PARTS))
    parser.add_argument("--seconds", type=float, default=4)
    given = parser.parse_args()
    figures: Figures = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    with serve(given.folder) as server:
        divided = partitioned(SCHEMA.read_text("utf-8"))
        wanted = {"small": (SMALL, None), "large": (LARGE, None), "partitioned": (LARGE, divided)}
        for name, (size, text) in wanted.items():
            if not server.has(name) and (name == "small" or given.only != ["corrections"]):
                start = time.monotonic()
                server.make(name, size, text)
                print(f"{name}: made in {time.monotonic() - start:.0f} s", flush=True)
        for part in given.only:
            figures[part] = PARTS[part](server, given.seconds)
            # The other parts' figures may be another machine's.
            if given.only == list(PARTS):
                figures["machine"] = machine()
            RECORDED.write_text(by_line(figures), "utf-8")
    if figures.keys() >= PARTS.keys():
        print("\n".join([*times(figures), "", *targets(figures)]))


if __name__ == "__main__":
    main()
