"""schema.sql: policies, the two functions, the triggers, and the index of the delta read."""

from __future__ import annotations

import json
import threading
import time
import uuid
from typing import Any

import httpx
import psycopg
import pytest
from local_supabase import LocalSupabase, demo

from conftest import Person, activity, member

pytestmark = pytest.mark.both_servers
ROLES = ["peer_mentor", "coordinator", "org_admin"]


def codes(answer: httpx.Response) -> tuple[int, str | None]:
    body = answer.json() if answer.content else None
    return answer.status_code, body.get("code") if isinstance(body, dict) else None


# Row-level security -------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_members_register_and_read_their_own(backend: LocalSupabase, org: str, role: str) -> None:
    person = member(backend, org, role)
    row = activity(org)
    assert person.insert(row).json() == [{"id": row["id"]}]
    again = person.insert(row, prefer="resolution=ignore-duplicates,return=representation")
    assert (again.status_code, again.json()) == (201, [])
    assert [r["user_id"] for r in person.activities()] == [person.id]


@pytest.mark.parametrize(
    ("role", "sees"), [("peer_mentor", 0), ("coordinator", 1), ("org_admin", 1)]
)
def test_who_sees_a_colleagues_activity(
    backend: LocalSupabase, org: str, mentor: Person, role: str, sees: int
) -> None:
    mentor.insert(activity(org))
    assert len(member(backend, org, role).activities()) == sees


@pytest.mark.parametrize("role", ROLES)
def test_a_user_cannot_register_for_another_user(
    backend: LocalSupabase, org: str, mentor: Person, role: str
) -> None:
    person = member(backend, org, role)
    assert codes(person.insert(activity(org, user_id=mentor.id))) == (403, "42501")


@pytest.mark.parametrize("role", ROLES)
def test_contacts_of_the_own_organisation_only(backend: LocalSupabase, org: str, role: str) -> None:
    person = member(backend, org, role)
    backend.control.seed_contacts(org, 3)
    found = person.rest.get("/contacts").json()
    assert {row["org_id"] for row in found} == {org}
    new = {"org_id": org, "name": "Ny Kontakt"}
    assert person.rest.post("/contacts", json=new).status_code == 201
    elsewhere = {"org_id": demo.ORG_4, "name": "Ny Kontakt"}
    assert codes(person.rest.post("/contacts", json=elsewhere)) == (403, "42501")
    moved = person.rest.patch(
        "/contacts", params={"org_id": f"eq.{org}"}, json={"org_id": demo.ORG_4}
    )
    assert codes(moved) == (403, "42501")
    changed = person.rest.patch(
        "/contacts",
        params={"id": f"eq.{found[0]['id']}", "select": "name"},
        json={"name": "Endret"},
        headers={"Prefer": "return=representation"},
    )
    assert changed.json() == [{"name": "Endret"}]


@pytest.mark.parametrize("change", ["membership ended", "organisation disabled"])
def test_losing_access(backend: LocalSupabase, org: str, mentor: Person, change: str) -> None:
    """Given a stored row, when access ends, then the row stays but its owner no longer sees it."""
    row = activity(org)
    mentor.insert(row)
    backend.control.seed_contacts(org, 1)
    if change == "membership ended":
        backend.control.set_membership(mentor.email, org, status="ended")
    else:
        backend.control.set_org(org, "disabled")
    assert mentor.activities() == []
    assert mentor.rest.get("/contacts").json() == []
    assert codes(mentor.insert(activity(org))) == (403, "42501")
    repeated = mentor.insert(row, prefer="resolution=ignore-duplicates,return=representation")
    assert codes(repeated) == (403, "42501")
    everything = {"apikey": backend.anon_key, "Authorization": f"Bearer {backend.service_key}"}
    asked = {"id": f"eq.{row['id']}", "select": "id"}
    there = httpx.get(f"{backend.rest_url}/activities", params=asked, headers=everything)
    assert there.json() == [{"id": row["id"]}]
    shown = mentor.rest.get(
        "/memberships", params={"select": "status,organizations(status)"}
    ).json()
    expected = ("ended", "active") if change == "membership ended" else ("active", "disabled")
    assert [(m["status"], m["organizations"]["status"]) for m in shown] == [expected]
    if change == "membership ended":
        backend.control.set_membership(mentor.email, org, status="active")
    else:
        backend.control.set_org(org, "active")
    assert [r["id"] for r in mentor.activities()] == [row["id"]]


@pytest.mark.parametrize(
    "table", ["organizations", "profiles", "memberships", "contacts", "activities"]
)
def test_the_public_sees_nothing(backend: LocalSupabase, table: str) -> None:
    for headers in ({}, {"Authorization": f"Bearer {backend.anon_key}"}):
        answer = httpx.get(
            f"{backend.rest_url}/{table}", headers={"apikey": backend.anon_key, **headers}
        )
        assert codes(answer) == (401, "42501")


def test_a_user_cannot_grant_themselves_a_membership(mentor: Person) -> None:
    row = {"user_id": mentor.id, "org_id": demo.ORG_4, "role": "org_admin"}
    assert codes(mentor.rest.post("/memberships", json=row)) == (403, "42501")
    own = {"user_id": f"eq.{mentor.id}"}
    change = mentor.rest.patch("/memberships", params=own, json={"role": "org_admin"})
    assert codes(change) == (403, "42501")
    assert codes(mentor.rest.patch("/organizations", json={"name": "x"})) == (403, "42501")


def test_users_see_only_their_own_memberships_and_profile(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    admin = member(backend, org, "org_admin")
    assert [m["user_id"] for m in admin.rest.get("/memberships").json()] == [admin.id]
    profile = {"id": mentor.id, "full_name": "Prøve"}
    assert mentor.rest.post("/profiles", json=profile).status_code == 201
    assert admin.rest.get("/profiles").json() == []
    stolen = {"id": mentor.id, "full_name": "Annen"}
    assert codes(admin.rest.post("/profiles", json=stolen))[0] in {403, 409}


def test_someone_without_membership(backend: LocalSupabase) -> None:
    nobody = Person(backend, "nobody@example.org")
    assert nobody.rest.get("/organizations").json() == []
    assert codes(nobody.insert(activity(demo.ORG_1))) == (403, "42501")


def test_references_never_cross_organisations(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    backend.control.seed_contacts(org, 1)
    other = backend.control.add_org("Et annet lag")
    backend.control.set_membership(mentor.email, other, role="peer_mentor")
    contact = mentor.rest.get("/contacts").json()[0]["id"]
    assert codes(mentor.insert(activity(other, contact_id=contact))) == (409, "23503")
    assert mentor.insert(activity(org, contact_id=contact)).status_code == 201


# Constraints and triggers -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"minutes": 0}, "23514"),
        ({"minutes": 1441}, "23514"),
        ({"type": ""}, "23514"),
        ({"type": "x" * 81}, "23514"),
        ({"note": "x" * 4001}, "23514"),
        ({"type": None}, "23502"),
        ({"occurred_at": None}, "23502"),
        ({"occurred_at": "i går"}, "22007"),
        ({"id": "x"}, "22P02"),
        ({"contact_id": str(uuid.uuid4())}, "23503"),
        ({"follows": str(uuid.uuid4())}, "23503"),
    ],
)
def test_refused_rows(org: str, mentor: Person, fields: dict[str, Any], code: str) -> None:
    rows = [activity(org), activity(org, **fields)]
    answer = mentor.insert(rows, columns=",".join(rows[1]))
    assert codes(answer)[1] == code
    assert mentor.activities() == [], "one bad row rolls back the whole statement"


@pytest.mark.parametrize("table", ["contacts", "activities"])
def test_updated_at_moves_and_ignores_the_client(
    backend: LocalSupabase, org: str, mentor: Person, table: str
) -> None:
    row = (
        activity(org)
        if table == "activities"
        else {"id": str(uuid.uuid4()), "org_id": org, "name": "Å"}
    )
    old = "2001-01-01T00:00:00Z"
    show = {"Prefer": "return=representation"}
    stored = mentor.rest.post(f"/{table}", json={**row, "updated_at": old}, headers=show).json()[0]
    assert stored["updated_at"] > "2020"
    key = {"id": f"eq.{row['id']}"}
    changed = mentor.rest.patch(
        f"/{table}", params=key, json={"updated_at": old}, headers=show
    ).json()[0]
    assert changed["updated_at"] > stored["updated_at"]


@pytest.mark.postgres_only(reason="transactions of its own")
def test_updated_at_is_the_moment_not_the_transactions_start(
    backend: LocalSupabase, org: str
) -> None:
    with psycopg.connect(backend.dsn) as connection:
        begun = connection.execute("select now()").fetchone()
        time.sleep(0.05)
        stored = connection.execute(
            "insert into contacts (org_id, name) values (%s, 'x') returning updated_at", (org,)
        ).fetchone()
    assert begun is not None and stored is not None
    assert (stored[0] - begun[0]).total_seconds() >= 0.05


@pytest.mark.postgres_only(reason="a query plan")
@pytest.mark.parametrize("table", ["contacts", "activities"])
def test_the_delta_read_uses_its_index(
    backend: LocalSupabase, org: str, mentor: Person, table: str
) -> None:
    """Given many rows, when a member reads one page of an organisation, then PostgreSQL uses the index, without a sort."""
    with psycopg.connect(backend.dsn) as connection:
        connection.execute("set local session_replication_role = replica")
        if table == "contacts":
            connection.execute(
                "insert into contacts (org_id, name, updated_at) select %s, 'x' || i, "
                "timestamptz '2026-01-01' + i * interval '1 second' from generate_series(1, 20000) i",
                (org,),
            )
        else:
            connection.execute(
                "insert into activities (org_id, user_id, type, occurred_at, minutes, updated_at) "
                "select %s, %s, 'x', now(), 1, timestamptz '2026-01-01' + i * interval '1 second' "
                "from generate_series(1, 20000) i",
                (org, mentor.id),
            )
        connection.execute("set local session_replication_role = origin")
        connection.execute(f"analyze {table}")
        connection.execute("set local role authenticated")
        claims = json.dumps({"sub": mentor.id, "role": "authenticated"})
        connection.execute("select set_config('request.jwt.claims', %s, true)", (claims,))
        plan = connection.execute(
            f"explain (analyze, format json) select * from {table} where org_id = %s "
            "and updated_at >= '2026-01-01 03:00+00' and (updated_at > '2026-01-01 03:00+00' or "
            "(updated_at = '2026-01-01 03:00+00' and id > '00000000-0000-4000-8000-000000000000')) "
            "order by updated_at, id limit 500",
            (org,),
        ).fetchone()
        connection.rollback()
    assert plan is not None
    text = json.dumps(plan[0])
    assert f'"{table}_delta"' in text, text
    assert '"Sort"' not in text, text


# submit_activities --------------------------------------------------------------------------------


def outcome(answer: httpx.Response) -> list[tuple[str, str | None, str | None]]:
    assert answer.status_code == 200, answer.text
    return [(r["status"], r["sqlstate"], r["column"]) for r in answer.json()]


def test_each_item_gets_its_own_result_in_order(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    stored, other_org = activity(org), backend.control.add_org("Et annet lag")
    stranger = member(backend, other_org, "peer_mentor")
    taken = activity(other_org)
    stranger.insert(taken)
    mentor.insert(stored)
    items: list[Any] = [
        activity(org),
        stored,
        {**activity(org), "id": taken["id"]},
        activity(org, minutes=0),
        activity(other_org),
        activity(org, follows=str(uuid.uuid4())),
        "not an object",
        7,
        None,
        activity(org, id="no uuid"),
        {k: v for k, v in activity(org).items() if k != "id"},
        activity(org, colour="blå"),
        activity(org, minutes="mange"),
        activity(org, minutes=7.5),
        activity(org, type=None),
        activity(org, occurred_at="i går"),
        activity(org),
    ]
    answer = mentor.submit(items)
    assert outcome(answer) == [
        ("stored", None, None),
        ("duplicate", None, None),
        ("conflict", None, None),
        ("rejected", "23514", "minutes"),
        ("rejected", "42501", None),
        ("rejected", "23503", "follows"),
        ("rejected", "22023", None),
        ("rejected", "22023", None),
        ("rejected", "22023", None),
        ("rejected", "22P02", "id"),
        ("rejected", "23502", "id"),
        ("rejected", "42703", "colour"),
        ("rejected", "22P02", "minutes"),
        ("rejected", "22P02", "minutes"),
        ("rejected", "23502", "type"),
        ("rejected", "22007", "occurred_at"),
        ("stored", None, None),
    ]
    assert [r["id"] for r in answer.json()][:4] == [i["id"] for i in items[:4]]
    assert all(r["message"] for r in answer.json() if r["status"] == "rejected")
    assert len(mentor.activities()) == 3


def test_the_same_id_twice_in_one_call(org: str, mentor: Person) -> None:
    row = activity(org)
    assert [o[0] for o in outcome(mentor.submit([row, row]))] == ["stored", "duplicate"]


def test_a_follow_up_in_the_same_call(org: str, mentor: Person) -> None:
    first = activity(org)
    assert [o[0] for o in outcome(mentor.submit([first, activity(org, follows=first["id"])]))] == [
        "stored",
        "stored",
    ]


def test_a_colleagues_visible_row_is_a_conflict(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    admin, row = member(backend, org, "org_admin"), activity(org)
    mentor.insert(row)
    assert [o[0] for o in outcome(admin.submit([row]))] == ["conflict"]


@pytest.mark.parametrize("items", [{}, "x", 5, None])
def test_items_must_be_an_array(mentor: Person, items: Any) -> None:
    assert codes(mentor.submit(items)) == (400, "22023")


def test_a_user_cannot_submit_for_another_user(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    other = member(backend, org, "peer_mentor")
    assert outcome(mentor.submit([activity(org, user_id=other.id)])) == [
        ("rejected", "42501", None)
    ]


def test_submitting_is_refused_without_a_token(backend: LocalSupabase) -> None:
    answer = httpx.post(
        f"{backend.rest_url}/rpc/submit_activities",
        json={"items": []},
        headers={"apikey": backend.anon_key},
    )
    assert codes(answer) == (401, "42501")


@pytest.mark.postgres_only(reason="locks")
def test_a_transient_failure_fails_the_whole_call(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    """Given a row that another transaction locks, when the timeout expires, then nothing is stored."""
    held, free = activity(org), activity(org)
    backend.control.set(statement_timeout_ms=300)
    with psycopg.connect(backend.dsn) as connection:
        connection.execute(
            "insert into activities (id, org_id, user_id, type, occurred_at, minutes) "
            "values (%s, %s, %s, 'x', now(), 1)",
            (held["id"], org, mentor.id),
        )
        assert codes(mentor.submit([free, held])) == (500, "57014")
        connection.rollback()
    assert mentor.activities() == []


@pytest.mark.postgres_only(reason="a trigger")
@pytest.mark.parametrize("state", ["40P01", "53100", "55P03", "57P01"])
def test_transient_states_are_not_answered_per_row(
    backend: LocalSupabase, org: str, mentor: Person, state: str
) -> None:
    """Given a trigger that raises a transient state, then the call fails with it; no row is rejected."""
    backend.control.sql(
        f"create function private.fail() returns trigger language plpgsql as $$ begin "
        f"if new.type = 'feil' then raise sqlstate '{state}'; end if; return new; end $$; "
        "create trigger fail before insert on activities for each row execute function private.fail()"
    )
    try:
        answer = mentor.submit([activity(org), activity(org, type="feil")])
        assert codes(answer)[1] == state
        assert mentor.activities() == []
    finally:
        backend.control.sql("drop function private.fail cascade")


def test_two_callers_with_the_same_items(backend: LocalSupabase, org: str, mentor: Person) -> None:
    items = sorted((activity(org) for _ in range(50)), key=lambda row: str(row["id"]))
    answers: list[httpx.Response] = []
    threads = [
        threading.Thread(target=lambda: answers.append(mentor.submit(items))) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    words = [word for answer in answers for word, _, _ in outcome(answer)]
    assert (words.count("stored"), words.count("duplicate")) == (50, 50)


# activity_summary ---------------------------------------------------------------------------------


def summary(person: Person, **query: str) -> dict[str, Any]:
    answer = person.rest.get("/rpc/activity_summary", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_summary_counts_the_callers_own_of_this_year(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    year = time.gmtime().tm_year
    now = f"{year}-01-15T12:00:00Z"
    rows = [
        activity(org, type="samtale", minutes=30, occurred_at=now),
        activity(org, type="samtale", minutes=15, occurred_at=now),
        activity(org, type="tur", minutes=60, occurred_at=now),
        activity(org, type="tur", minutes=5, occurred_at=f"{year - 1}-06-01T12:00:00Z"),
        # The year begins in Norwegian time, not in UTC.
        activity(org, type="tur", minutes=1, occurred_at=f"{year - 1}-12-31T23:30:00Z"),
    ]
    assert mentor.insert(rows).status_code == 201
    member(backend, org, "peer_mentor").insert(activity(org, minutes=500, occurred_at=now))
    shown = summary(mentor, org=org)
    assert shown.pop("as_of")
    assert shown == {
        "org_id": org,
        "since": f"{year - 1}-12-31T23:00:00+00:00",
        "activities": 4,
        "minutes": 106,
        "by_type": [
            {"type": "samtale", "activities": 2, "minutes": 45},
            {"type": "tur", "activities": 2, "minutes": 61},
        ],
    }
    assert summary(mentor, org=org, since=f"{year - 1}-01-01T00:00:00Z")["activities"] == 5
    mentor.rest.patch("/activities", params={"type": "eq.samtale"}, json={"deleted_at": now})
    assert summary(mentor, org=org)["by_type"] == [{"type": "tur", "activities": 2, "minutes": 61}]


def test_summary_of_another_organisation_is_empty(mentor: Person) -> None:
    shown = summary(mentor, org=demo.ORG_4)
    assert (shown["activities"], shown["minutes"], shown["by_type"]) == (0, 0, [])


# Loading ------------------------------------------------------------------------------------------


@pytest.mark.postgres_only(reason="owners of tables")
def test_nothing_in_the_schema_needs_a_superuser(backend: LocalSupabase) -> None:
    """A role without special privileges loads the schema, as in a Supabase project."""
    owners = backend.control.sql(
        "select distinct r.rolname, r.rolsuper, r.rolbypassrls from pg_class c join pg_roles r "
        "on r.oid = c.relowner where c.relnamespace = 'public'::regnamespace"
    )
    assert owners == [{"rolname": "project_owner", "rolsuper": False, "rolbypassrls": False}]
