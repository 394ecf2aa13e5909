"""Changes and deletions of the own activities: by table, and by `change_activities` of schema.sql.

Every test runs on PostgreSQL with the policies, privileges and triggers of the file.
"""

from __future__ import annotations

import concurrent.futures
import threading
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from local_supabase import LocalSupabase

from people import Person, activity, member

SHOW = {"Prefer": "return=representation"}
#: Times of the server's clock differ from each other, so any other one is an old base.
OLD = "2001-01-01T00:00:00.000001+00:00"


class Row:
    """A stored activity, and the base of its next change."""

    def __init__(self, person: Person, org: str, **fields: Any) -> None:
        self.sent = activity(org, **fields)
        self.id, self.org = self.sent["id"], org
        answer = person.insert(self.sent, select="id,updated_at")
        assert answer.status_code == 201, answer.text
        [kept] = answer.json()
        assert list(kept) == ["id", "updated_at"]
        self.base: str = kept["updated_at"]

    def item(self, operation: str = "change", **more: Any) -> dict[str, Any]:
        """An item of change_activities; `columns` as keywords, or as the mapping `columns`."""
        own = {k: more.pop(k) for k in ("updated_at", "org_id", "change_id") if k in more}
        columns = more.pop("columns", more)
        found = {"id": self.id, "org_id": self.org, "updated_at": self.base}
        return {**found, "operation": operation, "columns": columns, **own}

    def patch(self, person: Person, base: str | None = None, **columns: Any) -> httpx.Response:
        """A change by table, as the library sends it."""
        query = {"id": f"eq.{self.id}", "updated_at": f"eq.{base or self.base}"}
        return person.rest.patch(
            "/activities", params={**query, "select": "id,updated_at"}, json=columns, headers=SHOW
        )

    def read(self, backend: LocalSupabase) -> dict[str, Any]:
        """The row as it is stored."""
        [found] = backend.control.sql("select * from activities where id = %s", self.id)
        return found


def change(person: Person, *items: Any) -> list[dict[str, Any]]:
    """Call the function; its results."""
    answer = call(person, list(items))
    assert answer.status_code == 200, answer.text
    return list(answer.json())


def call(person: Person, items: Any) -> httpx.Response:
    return person.rest.post("/rpc/change_activities", json={"items": items})


def words(results: list[dict[str, Any]]) -> list[str]:
    return [row["status"] for row in results]


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


@pytest.fixture(params=["table", "function"])
def way(request: pytest.FixtureRequest) -> str:
    """How a change is sent."""
    return str(request.param)


def send(person: Person, way: str, row: Row, operation: str = "change", **columns: Any) -> str:
    """Send one change or deletion, and return its result in the words of the function.

    By table, the row is read to tell what an answer without a row means, as the library does.
    """
    if way == "function":
        [result] = change(person, row.item(operation, columns=columns))
        assert result["id"] == row.id
        if result["status"] == "stored":
            row.base = result["updated_at"]
        return str(result["status"])
    answer = row.patch(person, **(columns or {"deleted_at": "now"}))
    if answer.status_code != 200:
        return "not_allowed" if answer.json()["code"] == "42501" else "rejected"
    if answer.json():
        row.base = answer.json()[0]["updated_at"]
        return "stored"
    there = person.activities(id=f"eq.{row.id}", select="updated_at")
    if not there:
        return "gone"
    return "not_allowed" if there[0]["updated_at"] == row.base else "changed"


# One row ------------------------------------------------------------------------------------------


def test_a_change_sets_its_columns_and_moves_the_base(
    backend: LocalSupabase, org: str, mentor: Person, way: str
) -> None:
    row = Row(mentor, org, minutes=30, note="før")
    first = row.base
    assert send(mentor, way, row, minutes=90) == "stored"
    assert row.base > first
    kept = row.read(backend)
    assert (kept["minutes"], kept["note"], kept["type"]) == (90, "før", "samtale")
    # The new base is the one of the next change; null is a value.
    assert send(mentor, way, row, note=None) == "stored"
    kept = row.read(backend)
    assert (kept["minutes"], kept["note"]) == (90, None)


def test_a_change_on_an_old_base_changes_nothing(
    backend: LocalSupabase, org: str, mentor: Person, way: str
) -> None:
    row = Row(mentor, org)
    other = Row.__new__(Row)
    other.__dict__.update(row.__dict__)
    assert send(mentor, way, row, minutes=45) == "stored"
    assert send(mentor, way, other, minutes=60) == "changed"
    assert row.read(backend)["minutes"] == 45


def test_a_deleted_row_stays_visible_and_can_be_restored(
    backend: LocalSupabase, org: str, mentor: Person, way: str
) -> None:
    """The library learns of it by the mark, and the policies let the user change it further."""
    row = Row(mentor, org, minutes=77)
    assert send(mentor, way, row, "delete") == "stored"
    [seen] = mentor.activities(id=f"eq.{row.id}", select="deleted_at,minutes")
    assert seen["deleted_at"] is not None
    assert seen["minutes"] == 77
    assert send(mentor, way, row, deleted_at=None) == "stored"
    assert row.read(backend)["deleted_at"] is None


def test_another_members_row_is_not_changed(
    backend: LocalSupabase, org: str, mentor: Person, way: str
) -> None:
    """A coordinator sees it, another peer mentor does not."""
    row = Row(mentor, org)
    for role, expected in (("coordinator", "not_allowed"), ("peer_mentor", "gone")):
        person = member(backend, org, role)
        assert send(person, way, row, minutes=1) == expected
        assert send(person, way, row, "delete") == expected
    kept = row.read(backend)
    assert (kept["minutes"], kept["deleted_at"]) == (30, None)


def test_a_row_that_does_not_exist_is_gone(org: str, mentor: Person, way: str) -> None:
    row = Row(mentor, org)
    row.id = str(uuid.uuid4())
    assert send(mentor, way, row, minutes=1) == "gone"


@pytest.mark.parametrize("change", ["membership ended", "organisation disabled"])
def test_without_access_a_row_is_as_gone_and_stays(
    backend: LocalSupabase, org: str, mentor: Person, way: str, change: str
) -> None:
    row = Row(mentor, org)
    if change == "membership ended":
        backend.control.set_membership(mentor.email, org, status="ended")
    else:
        backend.control.set_org(org, "disabled")
    assert send(mentor, way, row, minutes=1) == "gone"
    assert send(mentor, way, row, "delete") == "gone"
    kept = row.read(backend)
    assert (kept["minutes"], kept["deleted_at"]) == (30, None)


@pytest.mark.parametrize("column", ["id", "org_id", "user_id", "created_at", "updated_at"])
def test_a_member_of_two_organisations_moves_no_row(
    backend: LocalSupabase, org: str, mentor: Person, way: str, column: str
) -> None:
    other = backend.control.add_org("Et annet lag")
    backend.control.set_membership(mentor.email, other, role="peer_mentor")
    row = Row(mentor, org)
    before = row.read(backend)
    values = {"id": str(uuid.uuid4()), "org_id": other, "user_id": mentor.id}
    refused = "not_allowed" if way == "table" else "rejected"
    assert send(mentor, way, row, **{column: values.get(column, OLD)}) == refused
    assert row.read(backend) == before


def test_a_row_of_another_organisation_than_named_is_gone(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    row = Row(mentor, org)
    item = row.item(minutes=1, org_id=str(uuid.uuid4()))
    assert words(change(mentor, item)) == ["gone"]
    del item["org_id"]
    assert words(change(mentor, item)) == ["stored"]
    assert row.read(backend)["minutes"] == 1


def test_changes_of_a_signed_out_user_are_refused(backend: LocalSupabase) -> None:
    answer = httpx.post(
        f"{backend.rest_url}/rpc/change_activities",
        json={"items": []},
        headers={"apikey": backend.anon_key},
    )
    assert code(answer) == (401, "42501")


def test_the_id_of_the_last_change_is_kept(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    row, ids = Row(mentor, org), [str(uuid.uuid4()) for _ in range(2)]
    [result] = change(mentor, row.item(minutes=1, change_id=ids[0]))
    assert row.read(backend)["change_id"] == ids[0]
    row.base = result["updated_at"]
    assert len(row.patch(mentor, minutes=2, change_id=ids[1]).json()) == 1
    assert row.read(backend)["change_id"] == ids[1]


def test_an_upload_by_function_tells_the_base(org: str, mentor: Person) -> None:
    """Of a row that it stored. One that existed may have been changed since, so it has to be read."""
    sent = [activity(org), activity(org)]
    first = mentor.submit(sent[:1]).json()
    results = mentor.submit(sent).json()
    assert words(results) == ["duplicate", "stored"]
    assert results[0]["updated_at"] is None
    row = Row.__new__(Row)
    for item, base in ((sent[0], first[0]), (sent[1], results[1])):
        row.id, row.org, row.base = item["id"], org, base["updated_at"]
        assert words(change(mentor, row.item(minutes=2))) == ["stored"]


# Many rows ----------------------------------------------------------------------------------------


def test_a_lost_answer_is_found_in_the_row(org: str, mentor: Person) -> None:
    """Given a call whose answer was lost, when it is sent again, then each result has what was sent."""
    rows = [Row(mentor, org, note="før") for _ in range(3)]
    changes: list[dict[str, Any]] = [
        {"minutes": 90, "note": None},
        {"occurred_at": "2026-03-01T10:00:00+01:00", "type": "tur"},
    ]
    items = [
        row.item(columns=columns, change_id=str(uuid.uuid4()))
        for row, columns in zip(rows[:2], changes, strict=True)
    ]
    items.append(rows[2].item("delete"))
    first, again = change(mentor, *items), change(mentor, *items)
    assert words(first) == ["stored"] * 3
    assert words(again) == ["changed"] * 3
    assert [r["updated_at"] for r in again] == [r["updated_at"] for r in first]
    found = {r["id"]: r["row"] for r in again}
    shown = {"type": "samtale", "minutes": 30, "note": "før", "contact_id": None, "follows": None}
    shown |= {"occurred_at": "2026-03-01T10:00:00+00:00", "deleted_at": None, "change_id": None}
    assert found[rows[0].id] == {**shown, **changes[0], "change_id": items[0]["change_id"]}
    assert found[rows[1].id] == {
        **shown,
        "type": "tur",
        "occurred_at": "2026-03-01T09:00:00+00:00",
        "change_id": items[1]["change_id"],
    }
    deleted = found[rows[2].id]
    assert deleted["deleted_at"] is not None
    assert {**deleted, "deleted_at": None} == shown


def test_each_item_has_its_own_result_in_the_order_of_the_ids(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    """Refused items among good ones: these are stored, whatever their number."""
    admin = member(backend, org, "coordinator")
    rows = [Row(mentor, org) for _ in range(40)]
    theirs = Row(admin, org)
    backend.control.set_membership(mentor.email, org, role="coordinator")
    before = Row(mentor, org)
    [after] = change(mentor, before.item(minutes=7))
    bad: dict[str, tuple[Any, tuple[str, str | None, str | None]]] = {
        "check": (rows[0].item(minutes=0), ("rejected", "23514", "minutes")),
        "null": (rows[1].item(type=None), ("rejected", "23502", "type")),
        "parent": (rows[2].item(follows=str(uuid.uuid4())), ("rejected", "23503", "follows")),
        "number": (rows[3].item(minutes="mange"), ("rejected", "22P02", "minutes")),
        "fraction": (rows[4].item(minutes=45.5), ("rejected", "22P02", "minutes")),
        "time": (rows[5].item(occurred_at="i går"), ("rejected", "22007", "occurred_at")),
        "unknown": (rows[6].item(colour="blå"), ("rejected", "42703", "colour")),
        "owner": (rows[7].item(user_id=admin.id), ("rejected", "42703", "user_id")),
        "empty": (rows[8].item(), ("rejected", "22023", "columns")),
        "no object": (rows[9].item(columns=[1]), ("rejected", "22023", "columns")),
        "operation": (rows[10].item("upsert", minutes=1), ("rejected", "22023", "operation")),
        "no base": (rows[11].item(minutes=1, updated_at=None), ("rejected", "22023", "updated_at")),
        "base": (rows[12].item(minutes=1, updated_at="i dag"), ("rejected", "22007", "updated_at")),
        "change id": (rows[13].item(minutes=1, change_id="x"), ("rejected", "22P02", "change_id")),
        "theirs": (theirs.item(minutes=1), ("not_allowed", None, None)),
        "changed": (before.item(minutes=1), ("changed", None, None)),
        "gone": ({**rows[14].item(minutes=1), "id": str(uuid.uuid4())}, ("gone", None, None)),
    }
    good = [row.item(minutes=88) for row in rows[14:]]
    items = [*good, *(item for item, _ in bad.values())]
    results = change(mentor, *items)
    assert [r["id"] for r in results] == sorted(item["id"] for item in items)
    found = {r["id"]: r for r in results}
    for name, (item, expected) in bad.items():
        result = found[item["id"]]
        assert (result["status"], result["sqlstate"], result["column"]) == expected, name
        assert bool(result["message"]) == (expected[1] is not None), name
        assert (result["row"] is not None) == (expected[0] == "changed"), name
        has_base = after["updated_at"] if expected[0] == "changed" else None
        assert result["updated_at"] == has_base, name
    assert {found[item["id"]]["status"] for item in good} == {"stored"}
    assert [row.read(backend)["minutes"] for row in rows] == [30] * 14 + [88] * 26


@pytest.mark.parametrize("item", ["no object", 7, None, [], {}, {"id": "no uuid"}])
def test_an_item_that_cannot_be_read_is_refused_alone(
    org: str, mentor: Person, item: object
) -> None:
    row = Row(mentor, org)
    results = change(mentor, item, row.item(minutes=1))
    assert sorted(words(results)) == ["rejected", "stored"]
    [refused] = [r for r in results if r["status"] == "rejected"]
    assert (refused["id"], refused["column"]) == (None, "id")


def test_two_changes_of_a_row_in_one_call_follow_each_other(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    row, other = Row(mentor, org), Row(mentor, org)
    items = [row.item(minutes=1), other.item(minutes=2), row.item(minutes=3)]
    results = {r["id"]: r for r in change(mentor, *items)}
    assert results[other.id]["status"] == "stored"
    assert sorted(words(change(mentor, row.item("delete"), row.item(minutes=4)))) == ["changed"] * 2
    assert row.read(backend)["minutes"] == 1


@pytest.mark.parametrize("items", [{}, "x", 5, None])
def test_the_items_are_an_array(mentor: Person, items: object) -> None:
    assert code(call(mentor, items)) == (400, "22023")


def test_a_call_has_500_changes_at_most(backend: LocalSupabase, org: str, mentor: Person) -> None:
    sent = [activity(org) for _ in range(501)]
    bases = {r["id"]: r["updated_at"] for r in mentor.submit(sent[:500]).json()}
    bases |= {r["id"]: r["updated_at"] for r in mentor.submit(sent[500:]).json()}
    items = [
        {"id": k, "org_id": org, "updated_at": v, "operation": "change", "columns": {"minutes": 5}}
        for k, v in bases.items()
    ]
    changed = "select count(*) as n from activities where org_id = %s and minutes = 5"
    assert code(call(mentor, items)) == (400, "22023")
    assert backend.control.sql(changed, org) == [{"n": 0}]
    assert set(words(change(mentor, *items[:500]))) == {"stored"}
    assert backend.control.sql(changed, org) == [{"n": 500}]
    assert change(mentor) == []


# At the same time ---------------------------------------------------------------------------------


@pytest.fixture
def slow_writes(backend: LocalSupabase) -> Iterator[None]:
    """Writing a row takes a while, so that calls at the same time meet."""
    backend.control.sql(
        "create function private.slow() returns trigger language plpgsql as "
        "$$ begin perform pg_sleep(0.002); return new; end $$; "
        "create trigger slow before update on activities for each row execute function private.slow()"
    )
    yield
    backend.control.sql("drop function private.slow cascade")


@pytest.mark.usefixtures("slow_writes")
@pytest.mark.parametrize("refused", [0, 1])
def test_calls_in_opposite_order_do_not_deadlock(
    backend: LocalSupabase, org: str, mentor: Person, refused: int
) -> None:
    """Also where a refused item lets the rows be changed in parts: each row is changed once."""
    rows = [Row(mentor, org) for _ in range(60)]
    bad = [Row(mentor, org).item(minutes=0) for _ in range(refused)]
    items = [row.item(minutes=9) for row in rows]
    backend.control.set(statement_timeout_ms=60_000)
    start = threading.Barrier(2)

    def run(given: list[dict[str, Any]]) -> httpx.Response:
        start.wait()
        return call(mentor, given)

    deadlocks = "select deadlocks from pg_stat_database where datname = current_database()"
    before = backend.control.sql(deadlocks)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(run, [[*items, *bad], [*bad, *reversed(items)]]))
    assert [answer.status_code for answer in answers] == [200, 200], [a.text for a in answers]
    found = [word for answer in answers for word in words(answer.json())]
    assert (found.count("stored"), found.count("changed")) == (60, 60)
    assert found.count("rejected") == 2 * refused
    assert backend.control.sql(deadlocks) == before


def test_a_change_waits_for_one_that_is_under_way(
    backend: LocalSupabase, org: str, mentor: Person, way: str
) -> None:
    """And then finds its base old."""
    row = Row(mentor, org)
    with psycopg.connect(backend.dsn) as connection:
        connection.execute("update activities set minutes = 3 where id = %s", (row.id,))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(send, mentor, way, row, minutes=4)
            wait_for_a_lock(backend)
            connection.commit()
            assert waiting.result() == "changed"
    assert row.read(backend)["minutes"] == 3


def wait_for_a_lock(backend: LocalSupabase) -> None:
    """Wait until a statement waits for a lock."""
    waits = "select 1 from pg_stat_activity where wait_event_type = 'Lock'"
    while not backend.control.sql(waits):
        pass


def test_past_the_time_limit_nothing_is_changed(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    held, free = Row(mentor, org), Row(mentor, org)
    backend.control.set(statement_timeout_ms=300)
    with psycopg.connect(backend.dsn) as connection:
        connection.execute("update activities set minutes = 3 where id = %s", (held.id,))
        assert code(call(mentor, [free.item(minutes=4), held.item(minutes=4)])) == (500, "57014")
        connection.rollback()
    assert [row.read(backend)["minutes"] for row in (held, free)] == [30, 30]


@pytest.mark.parametrize("state", ["40P01", "53100", "55P03", "57P01"])
def test_a_transient_failure_fails_the_call(
    backend: LocalSupabase, org: str, mentor: Person, state: str
) -> None:
    backend.control.sql(
        f"create function private.fail() returns trigger language plpgsql as $$ begin "
        f"if new.type = 'feil' then raise sqlstate '{state}'; end if; return new; end $$; "
        "create trigger fail before update on activities for each row execute function private.fail()"
    )
    try:
        good, bad = Row(mentor, org), Row(mentor, org)
        answer = call(mentor, [good.item(minutes=4), bad.item(type="feil")])
        assert code(answer)[1] == state
        assert good.read(backend)["minutes"] == 30
    finally:
        backend.control.sql("drop function private.fail cascade")


# Pulling ------------------------------------------------------------------------------------------


def test_own_rows_are_read_with_their_marks(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    """The two reads of the library: what changed since a time, and which rows there are."""
    colleague = member(backend, org, "peer_mentor")
    Row(colleague, org)
    backend.control.set_membership(mentor.email, org, role="coordinator")
    rows = [Row(mentor, org, minutes=n + 1) for n in range(4)]
    ancient = Row(mentor, org, occurred_at="2020-01-01T00:00:00Z")
    rows[0].patch(mentor, deleted_at="now")
    own = {"org_id": f"eq.{org}", "user_id": f"eq.{mentor.id}", "occurred_at": "gte.2025-01-01"}
    base = rows[1].base
    found = mentor.activities(
        select="type,minutes,occurred_at,note,id,updated_at,deleted_at",
        **own,
        updated_at=f"gte.{base}",
        **{"or": f"(updated_at.gt.{base},and(updated_at.eq.{base},id.gt.{rows[1].id}))"},
        order="updated_at.asc,id.asc",
        limit="100",
    )
    assert [(r["id"], r["deleted_at"] is None) for r in found] == [
        (rows[2].id, True),
        (rows[3].id, True),
        (rows[0].id, False),
    ]
    there = mentor.activities(
        select="id,updated_at", **own, deleted_at="is.null", order="id.asc", limit="100"
    )
    assert [r["id"] for r in there] == sorted(r.id for r in rows[1:])
    assert ancient.id not in {r["id"] for r in [*found, *there]}
