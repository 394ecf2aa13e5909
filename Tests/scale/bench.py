"""Measures schema.sql at ten million activities, and prints and records a table.

python bench.py FOLDER: the data stay in the folder, so that a second run need not make them again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from database import Connection, Server, Size, serve
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
    return [n for n, s in bench.statements.items() if s.request.writes]


def sizes(connection: Connection) -> Figures:
    """Rows and bytes of the activities with their partitions, and of each index."""
    rows = connection.execute(
        "select coalesce(p.inhparent, i.indexrelid)::regclass::text, "
        "sum(pg_relation_size(i.indexrelid))::bigint "
        "from pg_index i left join pg_inherits p on p.inhrelid = i.indexrelid "
        "where i.indrelid in (select relid from pg_partition_tree('public.activities')) "
        "group by 1 having sum(pg_relation_size(i.indexrelid)) > 0 order by 1"
    ).fetchall()
    whole = connection.execute(
        "select sum(pg_relation_size(relid))::bigint from pg_partition_tree('public.activities')"
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
        found["without"] = bench.run(name, 1)
        found["seconds to make it"] = timed(connection, row[0])
    return found


def table(figures: Figures) -> list[str]:
    """The rows of the printed table: a target, its figure, met or missed, and why."""
    lines = [
        "| request | 1 client | 16 clients | 64 clients | 100,000 rows | ratio | no policies |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in figures["requests"].items():
        cells = [f"{found[str(n)]['p50']:,.2f} ({found[str(n)]['p99']:,.1f})" for n in CLIENTS]
        cells += [f"{found['small']['p50']:,.2f}", f"{found['ratio']:.2f}"]
        cells += [f"{found['unpoliced']['p50']:,.2f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "| target | figure | result |", "|---|---|---|"]
    for name, plan in figures["plans"].items():
        why = "; ".join(plan["problems"])
        lines.append(
            f"| {name}: every plan uses an index | {', '.join(plan['indexes'])} "
            f"| {f'missed: {why}' if why else 'met'} |"
        )
    for name, found in figures["requests"].items():
        result = "met" if found["ratio"] <= GROWTH else f"missed: {WHY.get(name, 'not explained')}"
        lines.append(
            f"| {name}: p50 within {GROWTH} times of 100,000 activities "
            f"| {found['ratio']:.2f} | {result} |"
        )
    return lines


#: Why a request grows with the number of activities.
WHY = {
    "summary": "it adds up the caller's own activities, and a user has a hundred times as many",
    "administrator: figures of the organisation": "it adds up the whole organisation's activities",
    "administrator: a month's activities by a word": "no index has the words of a note, so it "
    "reads the organisation's activities of the month from the latest on until fifty match",
}


def measure(server: Server, seconds: float, large: str, small: str) -> Figures:
    """Everything but the partitions."""
    bench, before = Bench(server, large, seconds), Bench(server, small, seconds)
    found: Figures = {"plans": bench.plans(), "requests": {}}
    for name in [*reads(bench), *writes(bench)]:
        runs: Figures = {str(clients): bench.run(name, clients) for clients in CLIENTS}
        runs["small"] = before.run(name, 1)
        runs["unpoliced"] = bench.run(name, 1, "unpoliced")
        runs["ratio"] = round(runs["1"]["p50"] / runs["small"]["p50"], 2)
        found["requests"][name] = runs
        print(name, {k: v if k == "ratio" else v["p50"] for k, v in runs.items()}, flush=True)
    found["mix"] = {str(clients): bench.mix(clients) for clients in CLIENTS}
    found["index"] = index_cost(bench)
    with server.connect(large) as connection:
        found["sizes"] = sizes(connection)
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


def compare(server: Server, seconds: float, names: dict[str, str]) -> Figures:
    """The same requests with and without partitions; `names` maps a label to a database."""
    found: Figures = {}
    for label, database in names.items():
        target = "org_id,id" if label == "partitioned" else "id"
        bench = Bench(server, database, seconds, target)
        found[label] = {"requests": {name: bench.run(name, 1) for name in COMPARED}}
        with server.connect(database) as connection:
            found[label]["vacuum_s"] = timed(connection, "vacuum activities")
            found[label] |= sizes(connection)
        found[label]["plans"] = {
            name: plan["problems"] for name, plan in bench.plans().items() if plan["problems"]
        }
        print(label, {n: f["p50"] for n, f in found[label]["requests"].items()}, flush=True)
    return found


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


def main() -> None:
    """Make what is missing, measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--only", choices=["make", "measure", "partitions"], default=None)
    parser.add_argument("--seconds", type=float, default=4)
    given = parser.parse_args()
    figures: Figures = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    with serve(given.folder) as server:
        schema = partitioned(
            (Path(__file__).parents[2] / "examples/backend/schema.sql").read_text()
        )
        wanted = {"small": (SMALL, None), "large": (LARGE, None), "partitioned": (LARGE, schema)}
        for name, (size, text) in wanted.items():
            if not server.has(name):
                start = time.monotonic()
                server.make(name, size, text)
                print(f"{name}: made in {time.monotonic() - start:.0f} s", flush=True)
        if given.only in (None, "measure"):
            figures |= measure(server, given.seconds, "large", "small")
        if given.only in (None, "partitions"):
            names = {"one table": "large", "partitioned": "partitioned"}
            figures["partitions"] = compare(server, given.seconds, names)
            figures["partitions"]["count"] = PARTITIONS
        figures["machine"] = machine()
    RECORDED.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    print("\n".join(table(figures)))


if __name__ == "__main__":
    main()
