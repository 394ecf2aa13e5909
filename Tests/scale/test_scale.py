"""Every plan of the library's requests uses an index, and the check notices a missing one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from holdfast import Holdfast, Library, Runner
from holdfast.types import QueueAddRequest
from local_supabase import LocalSupabase

from bench import RECORDED, corrections, times
from database import ROOT, SCHEMA, Server, Size, serve
from load import run
from partition import partitioned
from plans import Explainer
from statements import REQUESTS, Statement, statements

# With ten organisations PostgreSQL would expect that an administrator oversees all of them.
SIZE = Size(organisations=100, users=1_000, contacts=20_000, activities=20_000)
ADMINS = 100


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server with one small database."""
    with serve(durable=False) as running:
        running.make("scale", SIZE)
        yield running


@pytest.fixture(scope="session")
def written(server: Server) -> dict[str, Statement]:
    """The SQL of every request."""
    return {s.request.name: s for s in statements(server.dsn("scale"))}


@pytest.mark.parametrize("name", [request.name for request in REQUESTS])
def test_every_plan_uses_an_index(server: Server, written: dict[str, Statement], name: str) -> None:
    with server.connect("scale") as connection:
        assert Explainer(connection).check(written[name])[0] == []


@pytest.mark.parametrize(
    ("name", "indexes"),
    [
        ("administrator: latest fifty", ["activities_latest"]),
        ("delta read of activities", ["activities_delta"]),
        ("delta read of contacts", ["contacts_delta"]),
        # Both begin with the user and the organisation, and users of this database have few rows.
        ("delta read of own activities", ["activities_own", "activities_own_delta"]),
        ("summary", ["activities_own", "activities_own_delta"]),
    ],
)
def test_a_missing_index_is_noticed(
    server: Server, written: dict[str, Statement], name: str, indexes: list[str]
) -> None:
    """Given the schema without an index, the plan reads or sorts too much."""
    with server.connect("scale") as connection:
        made = []
        for index in indexes:
            row = connection.execute("select pg_get_indexdef(%s::regclass)", (index,)).fetchone()
            assert row is not None
            made.append(row[0])
            connection.execute(f"drop index public.{index}".encode())
        try:
            assert Explainer(connection).check(written[name])[0] != []
        finally:
            for definition in made:
                connection.execute(definition.encode())


# The schema as it was: these two read and sorted a whole organisation at ten million activities.
FORMER = {
    "reconcile, ids of contacts": (
        "alter table contacts drop constraint contacts_org_id_id_key cascade, "
        "add unique (id, org_id)"
    ),
    "administrator: latest fifty": (
        'alter policy "oversee activities" on activities '
        "using (org_id = any (array(select private.overseen_organizations())))"
    ),
}


@pytest.mark.parametrize("name", FORMER)
def test_the_former_schema_is_noticed_and_mended(
    server: Server, written: dict[str, Statement], name: str
) -> None:
    """Given the former schema, the statements of docs/scale.md end the sort."""
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    [mend] = re.findall(r"^```sql\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    server.copy("scale", "former")
    with server.connect("former") as connection:
        connection.execute(FORMER[name].encode())
        found = Explainer(connection).check(written[name])[0]
        assert any("sorts" in problem for problem in found), found
        for statement in mend.split(";")[:-1]:
            connection.execute(statement.encode())
        assert Explainer(connection).check(written[name])[0] == []


@pytest.mark.parametrize("clients", [1, 4])
def test_every_request_runs(server: Server, written: dict[str, Statement], clients: int) -> None:
    scripts = [(s.script("authenticated", SIZE.users, ADMINS), 1) for s in written.values()]
    times = run(server.port, "scale", scripts, clients, 1)
    assert times.count >= clients
    assert 0 < times.p50 <= times.p99


def test_an_upload_stores_every_row(server: Server, written: dict[str, Statement]) -> None:
    """The measured upload is no upload of nothing."""
    with server.connect("scale") as connection:
        for name in ("upload of 500, by table", "upload of 500, by function"):
            before = connection.execute("select count(*) from activities").fetchone()
            times = run(
                server.port,
                "scale",
                [(written[name].script("authenticated", SIZE.users, ADMINS), 1)],
                1,
                1,
            )
            after = connection.execute("select count(*) from activities").fetchone()
            assert before is not None and after is not None
            assert after[0] - before[0] == 500 * times.count


def test_measured_corrections_change_every_row(server: Server) -> None:
    """`corrections` checks what each call says; nothing stays of it."""
    with server.connect("scale") as connection:
        before = connection.execute("select count(*) from activities").fetchone()
        figures = corrections(server, "scale", 2)
        assert all(figures[name] > 0 for name in ("add", "change", "delete"))
        assert connection.execute("select count(*) from activities").fetchone() == before


def test_without_an_active_membership_nothing_is_stored(
    server: Server, written: dict[str, Statement]
) -> None:
    """The policies hold in the measured transactions."""
    script = written["upload of 5, by table"].script("authenticated", SIZE.users, ADMINS)
    with server.connect("scale") as connection:
        connection.execute("update memberships set status = 'ended'")
        try:
            with pytest.raises(RuntimeError, match="row-level security"):
                run(server.port, "scale", [(script, 1)], 1, 1)
        finally:
            connection.execute("update memberships set status = 'active'")


KIND = {
    "table": "activities",
    "columns": ["type", "minutes", "occurred_at", "contact_id", "follows", "note"],
    "function": "submit_activities",
}


def test_every_plan_in_partitions_uses_an_index(server: Server) -> None:
    server.make("parts", SIZE, partitioned(SCHEMA.read_text("utf-8"), 4))
    with server.connect("parts") as connection:
        explainer = Explainer(connection)
        for statement in statements(server.dsn("parts"), target="org_id,id"):
            assert explainer.check(statement)[0] == [], statement.request.name


@pytest.mark.parametrize(
    ("options", "stored"),
    [
        ({"upload": "rpc"}, 1),
        ({"upload": "table"}, 0),
        ({"upload": "table", "primary_key": "id_and_org_id"}, 1),
        ({"upload": "rpc", "primary_key": "id_and_org_id"}, 1),
    ],
)
def test_in_partitions_the_library_uploads_by_function_or_with_the_whole_key(
    tmp_path: Path, options: dict[str, str], stored: int
) -> None:
    """No unique key of a partitioned table is `id` alone, which an insert names by default."""
    schema = tmp_path / "schema.sql"
    schema.write_text(partitioned(SCHEMA.read_text("utf-8"), 4), "utf-8")
    with LocalSupabase(demo=True, schema=schema) as backend:
        config = {
            "data_dir": str(tmp_path / "data"),
            "backend": {
                "url": backend.url,
                "api_key": backend.anon_key,
                "queue": {"activity": {**KIND, **options}},
            },
            "template": "volunteers",
            "development": True,
        }
        library = Library(ROOT / "build" / "lib" / "libholdfast.so")
        with Holdfast(config, library=library) as app:
            network = Runner(app)
            app.sign_in_complete({"email": "solo@example.org", "password": "holdfast-demo"})
            network.run_until_idle()
            visit = {"type": "visit", "minutes": 45}
            item: QueueAddRequest = {
                "kind": "activity",
                "id": "01976b36-0000-7000-8000-0000000c0de4",
                "payload": visit,
                "occurred_at_ms": 1_795_000_000_000,
            }
            app.queue_add(item)
            network.run_until_idle()
            problems = app.sync_status()["problems"]
            if stored:
                # The same item again is found by the read-back, and another one under its id, too.
                app.queue_add(item)
                network.run_until_idle()
                assert app.queue_list()["items"] == []
                app.queue_add({**item, "payload": {**visit, "note": "another"}})
                network.run_until_idle()
                [parked] = app.queue_list()["items"]
                assert parked["reason"] is not None
                assert parked["reason"]["code"] == "conflict"
        query = "select count(*) as n from activities where minutes = 45"
        assert backend.control.sql(query)[0]["n"] == stored
    assert [problem["code"] for problem in problems] == ([] if stored else ["42P10"])


def test_the_page_has_the_recorded_figures() -> None:
    """docs/scale.md shows what `make bench-server` recorded."""
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    lines = times(json.loads(RECORDED.read_text("utf-8")))
    assert [line for line in lines if line not in page.splitlines()] == []
