"""schema.sql: policies, privileges, functions and triggers."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import uuid
from typing import Any

import httpx
import psycopg
import pytest
from local_supabase import LocalSupabase, demo
from local_supabase.server import SCHEMA

import web
from people import Person, activity, member

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
    there = web.get(f"{backend.rest_url}/activities", params=asked, headers=everything)
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
    "table",
    ["organizations", "profiles", "memberships", "contacts", "contact_details", "activities"],
)
def test_the_public_sees_nothing(backend: LocalSupabase, table: str) -> None:
    for headers in ({}, {"Authorization": f"Bearer {backend.anon_key}"}):
        answer = web.get(
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


# Privileges by column -----------------------------------------------------------------------------


def details(org: str, contact: str, **fields: Any) -> dict[str, Any]:
    return {"id": str(uuid.uuid4()), "org_id": org, "contact_id": contact, **fields}


def stored(person: Person, table: str, org: str) -> dict[str, Any]:
    """Insert a row of this table as the person; returns what was sent."""
    row: dict[str, Any] = {"id": str(uuid.uuid4()), "org_id": org, "name": "Å"}
    if table == "activities":
        row = activity(org)
    if table == "contact_details":
        row = details(org, stored(person, "contacts", org)["id"], phone="+47 000 00 000")
    answer = person.rest.post(f"/{table}", json=row)
    assert answer.status_code == 201, answer.text
    return row


def everything(backend: LocalSupabase, table: str, row: dict[str, Any]) -> list[dict[str, Any]]:
    """The row as the service role reads it."""
    headers = {"apikey": backend.anon_key, "Authorization": f"Bearer {backend.service_key}"}
    query = {"id": f"eq.{row['id']}"}
    return list(web.get(f"{backend.rest_url}/{table}", params=query, headers=headers).json())


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("how", ["update", "upsert"])
@pytest.mark.parametrize("table", ["contacts", "contact_details", "activities"])
def test_no_row_moves_to_another_organisation(
    backend: LocalSupabase, org: str, role: str, table: str, how: str
) -> None:
    """Given a member of two organisations, whom the policies of both let write."""
    person, other = member(backend, org, role), backend.control.add_org("Et annet lag")
    backend.control.set_membership(person.email, other, role=role)
    row = stored(person, table, org)
    if how == "update":
        key = {"id": f"eq.{row['id']}"}
        answer = person.rest.patch(f"/{table}", params=key, json={"org_id": other})
    else:
        prefer = {"Prefer": "resolution=merge-duplicates"}
        answer = person.rest.post(f"/{table}", json={**row, "org_id": other}, headers=prefer)
    assert codes(answer) == (403, "42501")
    assert [r["org_id"] for r in everything(backend, table, row)] == [org]


@pytest.mark.parametrize("how", ["insert", "update"])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("contacts", "created_by"),
        ("contacts", "updated_at"),
        ("contact_details", "created_by"),
        ("contact_details", "created_at"),
        ("contact_details", "updated_at"),
        ("activities", "created_at"),
        ("activities", "updated_at"),
        ("profiles", "updated_at"),
    ],
)
def test_a_user_sets_neither_creator_nor_times(
    backend: LocalSupabase, org: str, mentor: Person, table: str, column: str, how: str
) -> None:
    admin = member(backend, org, "org_admin")
    forged = admin.id if column == "created_by" else "2001-01-01T00:00:00Z"
    if table == "profiles":
        row: dict[str, Any] = {"id": mentor.id, "full_name": "Prøve"}
        if how == "update":
            assert mentor.rest.post("/profiles", json=row).status_code == 201
    elif how == "insert" and table == "contact_details":
        row = details(org, stored(mentor, "contacts", org)["id"])
    elif how == "insert":
        row = activity(org) if table == "activities" else {"org_id": org, "name": "Å"}
    else:
        row = stored(mentor, table, org)
    if how == "insert":
        answer = mentor.rest.post(f"/{table}", json={**row, column: forged})
    else:
        key = {"id": f"eq.{row['id']}"}
        answer = mentor.rest.patch(f"/{table}", params=key, json={column: forged})
    assert codes(answer) == (403, "42501")


@pytest.mark.parametrize("table", ["contacts", "contact_details", "activities"])
def test_a_user_changes_neither_id_nor_owner(
    backend: LocalSupabase, org: str, mentor: Person, table: str
) -> None:
    row = stored(mentor, table, org)
    key = {"id": f"eq.{row['id']}"}
    changes: list[dict[str, Any]] = [{"id": str(uuid.uuid4())}]
    if table == "activities":
        changes.append({"user_id": mentor.id})
    if table == "contact_details":
        changes.append({"contact_id": stored(mentor, "contacts", org)["id"]})
    for change in changes:
        assert codes(mentor.rest.patch(f"/{table}", params=key, json=change)) == (403, "42501")
    assert len(everything(backend, table, row)) == 1


# Network-only columns ---------------------------------------------------------------------------------

NETWORK_ONLY: dict[str, Any] = {
    "phone": "+47 000 00000",
    "address": "Prøveveien 1",
    "national_id": "00000000000",
}


def details_shown(person: Person, **query: str) -> list[dict[str, Any]]:
    """The network-only columns of the visible contacts, read as the library does."""
    asked = {"select": "phone,address,national_id", **query}
    answer = person.rest.get("/contacts", params=asked)
    assert answer.status_code == 200, answer.text
    return list(answer.json())


@pytest.mark.parametrize("role", ROLES)
def test_who_reads_the_network_only_columns(backend: LocalSupabase, org: str, role: str) -> None:
    """A peer mentor has to reach the contact; only coordinators and administrators see the national id."""
    person = member(backend, org, role)
    backend.control.seed_contacts(org, 1)
    sees = role != "peer_mentor"
    shown = NETWORK_ONLY if sees else {**NETWORK_ONLY, "national_id": None}
    assert details_shown(person) == [shown]
    # Neither a filter nor an order tells more, and `*` does not have them.
    assert len(details_shown(person, national_id=f"eq.{NETWORK_ONLY['national_id']}")) == sees
    assert len(details_shown(person, national_id="is.null")) == (not sees)
    assert details_shown(person, phone="like.+47*", order="national_id.desc,phone") == [shown]
    assert not set(NETWORK_ONLY) & set(person.rest.get("/contacts").json()[0])
    rows = person.rest.get("/contact_details", params={"select": "phone,address"})
    assert rows.json() == ([{k: NETWORK_ONLY[k] for k in ("phone", "address")}] if sees else [])
    for select in ("national_id", "*"):
        read = person.rest.get("/contact_details", params={"select": select})
        assert codes(read) == (403, "42501")
    hidden = {"select": "id", "national_id": f"eq.{NETWORK_ONLY['national_id']}"}
    assert codes(person.rest.get("/contact_details", params=hidden)) == (403, "42501")


@pytest.mark.parametrize("role", ROLES)
def test_other_organisations_and_former_members_read_no_details(
    backend: LocalSupabase, org: str, role: str
) -> None:
    backend.control.seed_contacts(org, 1)
    stranger = member(backend, backend.control.add_org("Et annet lag"), role)
    former = member(backend, org, role)
    backend.control.set_membership(former.email, org, status="ended")
    for person in (stranger, former):
        assert details_shown(person) == []
        assert person.rest.get("/contact_details", params={"select": "id"}).json() == []


def test_a_peer_mentor_never_reads_a_national_id_back(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    """Not even of the row that they created, which a coordinator may have changed since."""
    coordinator = member(backend, org, "coordinator")
    contact = stored(mentor, "contacts", org)["id"]
    row = details(org, contact, phone="1", national_id="2")
    prefer = {"Prefer": "resolution=ignore-duplicates,return=representation"}
    query = {"select": "id", "columns": ",".join(row)}
    sent = mentor.rest.post("/contact_details", params=query, json=[row], headers=prefer)
    assert sent.json() == [{"id": row["id"]}]
    again = mentor.rest.post("/contact_details", params=query, json=[row], headers=prefer)
    assert (again.status_code, again.json()) == (201, [])
    key = {"id": f"eq.{row['id']}", "select": "phone"}
    change = {"phone": "3", "national_id": "4"}
    show = {"Prefer": "return=representation"}
    changed = coordinator.rest.patch("/contact_details", params=key, json=change, headers=show)
    assert changed.json() == [{"phone": "3"}]
    assert mentor.rest.get("/contact_details", params=key).json() == [{"phone": "3"}]
    assert details_shown(mentor) == [{"phone": "3", "address": None, "national_id": None}]
    assert details_shown(coordinator) == [{"phone": "3", "address": None, "national_id": "4"}]
    read = mentor.rest.patch(
        "/contact_details",
        params={**key, "select": "national_id"},
        json={"phone": "5"},
        headers=show,
    )
    assert codes(read) == (403, "42501")
    assert everything(backend, "contact_details", row)[0]["national_id"] == "4"


def test_a_colleagues_details_are_not_changed_by_a_peer_mentor(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    row = stored(member(backend, org, "coordinator"), "contact_details", org)
    key = {"contact_id": f"eq.{row['contact_id']}"}
    mentor.rest.patch("/contact_details", params=key, json={"phone": "taken over"})
    assert everything(backend, "contact_details", row)[0]["phone"] == row["phone"]
    second = details(org, row["contact_id"], phone="taken over")
    assert codes(mentor.rest.post("/contact_details", json=second)) == (409, "23505")


def test_details_never_cross_organisations(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    contact, other = stored(mentor, "contacts", org)["id"], backend.control.add_org("Et annet lag")
    backend.control.set_membership(mentor.email, other, role="peer_mentor")
    answer = mentor.rest.post("/contact_details", json=details(other, contact))
    assert codes(answer) == (409, "23503")
    elsewhere = mentor.rest.post("/contact_details", json=details(demo.ORG_4, contact))
    assert codes(elsewhere) == (403, "42501")


def test_a_network_only_column_cannot_be_written_into_contacts(org: str, mentor: Person) -> None:
    row = {"org_id": org, "name": "Å", "phone": "1"}
    assert codes(mentor.rest.post("/contacts", json=row)) == (400, "PGRST204")


@pytest.mark.parametrize("column", list(NETWORK_ONLY))
@pytest.mark.parametrize("name", ["contacts", "", "contact"])
def test_the_computed_fields_are_no_functions_of_the_api(
    backend: LocalSupabase, org: str, mentor: Person, column: str, name: str
) -> None:
    """Given a forged contact, when it is sent to /rpc, then no such function is found."""
    backend.control.seed_contacts(org, 1)
    forged = mentor.rest.get("/contacts").json()[0]
    answer = mentor.rest.post(f"/rpc/{column}", json={name: forged})
    assert codes(answer) == (404, "PGRST202")


@pytest.mark.postgres_only(reason="a call of the function in SQL")
@pytest.mark.parametrize("claims_org", ["own", "contact's"])
@pytest.mark.parametrize("role", ROLES)
def test_a_forged_contact_opens_no_details(
    backend: LocalSupabase, org: str, role: str, claims_org: str
) -> None:
    """Given the id of a contact elsewhere in a composed row, then each function checks the stored row."""
    backend.control.seed_contacts(org, 1)
    [contact] = backend.control.sql("select id from contacts where org_id = %s", org)
    own = backend.control.add_org("Et annet lag")
    stranger, claimed = member(backend, own, role), own if claims_org == "own" else org
    mentor, coordinator = member(backend, org, "peer_mentor"), member(backend, org, "coordinator")
    call = ", ".join(f"public.{c}(r)" for c in NETWORK_ONLY)
    query = (
        f"select {call} from jsonb_populate_record(null::contacts, "
        f"jsonb_build_object('id', %s::text, 'org_id', %s::text)) r"
    )
    found = []
    with psycopg.connect(backend.dsn) as connection:
        connection.execute("set local role authenticated")
        for person in (stranger, mentor, coordinator):
            claims = json.dumps({"sub": person.id, "role": "authenticated"})
            connection.execute("select set_config('request.jwt.claims', %s, true)", (claims,))
            values = (str(contact["id"]), claimed)
            found.append(connection.execute(query.encode(), values).fetchone())
        connection.rollback()
    phone, address, national_id = NETWORK_ONLY.values()
    assert found == [(None, None, None), (phone, address, None), (phone, address, national_id)]


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


@pytest.mark.parametrize("table", ["contacts", "contact_details", "activities"])
def test_updated_at_moves(backend: LocalSupabase, org: str, mentor: Person, table: str) -> None:
    row = stored(mentor, table, org)
    show = {"Prefer": "return=representation"}
    key = {"id": f"eq.{row['id']}", "select": "updated_at"}
    changes = {"contacts": "relation", "contact_details": "phone", "activities": "note"}
    [before] = mentor.rest.get(f"/{table}", params=key).json()
    assert before["updated_at"] > "2020"
    change = {changes[table]: "x"}
    [after] = mentor.rest.patch(f"/{table}", params=key, json=change, headers=show).json()
    assert after["updated_at"] > before["updated_at"]


@pytest.mark.postgres_only(reason="SQL of an administrator")
def test_updated_at_ignores_what_is_sent(backend: LocalSupabase, org: str) -> None:
    """The trigger holds also for those whom the privileges let set the column."""
    old = "2001-01-01T00:00:00Z"
    insert = "insert into contacts (org_id, name, updated_at) values (%s, 'x', %s) returning *"
    [made] = backend.control.sql(insert, org, old)
    update = "update contacts set updated_at = %s where id = %s returning *"
    [changed] = backend.control.sql(update, old, made["id"])
    assert "2020" < str(made["updated_at"]) < str(changed["updated_at"])


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


def test_a_call_has_500_items_at_most(org: str, mentor: Person) -> None:
    """As many as the library sends; a call with more stores nothing."""
    items = [activity(org) for _ in range(501)]
    assert codes(mentor.submit(items)) == (400, "22023")
    assert mentor.activities() == []
    assert {word for word, _, _ in outcome(mentor.submit(items[1:]))} == {"stored"}


def test_a_user_cannot_submit_for_another_user(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    other = member(backend, org, "peer_mentor")
    assert outcome(mentor.submit([activity(org, user_id=other.id)])) == [
        ("rejected", "42501", None)
    ]


def test_submitting_is_refused_without_a_token(backend: LocalSupabase) -> None:
    answer = web.post(
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


# activity_overview --------------------------------------------------------------------------------


def overview(person: Person, org: str) -> dict[str, Any]:
    answer = person.rest.get("/rpc/activity_overview", params={"org": org})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


@pytest.mark.postgres_only(reason="no device asks for it")
@pytest.mark.parametrize("role", ROLES)
def test_who_reads_the_figures_of_the_organisation(
    backend: LocalSupabase, org: str, mentor: Person, role: str
) -> None:
    """Given activities of several members, then a coordinator and an administrator read the sum of
    this year, and a peer mentor reads the own figures only."""
    now = f"{time.gmtime().tm_year}-01-15T12:00:00Z"
    earlier = f"{time.gmtime().tm_year - 1}-06-01T12:00:00Z"
    deleted = activity(org, minutes=200, occurred_at=now)
    mentor.insert([activity(org, minutes=30, occurred_at=now), deleted])
    mentor.insert(activity(org, minutes=100, occurred_at=earlier))
    mentor.rest.patch("/activities", params={"id": f"eq.{deleted['id']}"}, json={"deleted_at": now})
    former = member(backend, org, "peer_mentor")
    former.insert(activity(org, minutes=7, occurred_at=now))
    backend.control.set_membership(former.email, org, status="ended")
    person = member(backend, org, role)
    person.insert(activity(org, minutes=15, occurred_at=now))
    backend.control.seed_contacts(org, 3)
    shown = overview(person, org)
    assert (shown["org_id"], shown["activities"], shown["minutes"]) == (org, 1, 15)
    everybody = {"activities": 3, "minutes": 52, "members": 2, "contacts": 3}
    assert shown["organization"] == (None if role == "peer_mentor" else everybody)
    own = summary(person, org=org)
    assert {**own, "as_of": None} == {name: shown[name] for name in own} | {"as_of": None}


@pytest.mark.postgres_only(reason="no device asks for it")
@pytest.mark.parametrize("change", ["another organisation", "membership ended", "disabled"])
def test_the_figures_of_an_organisation_end_with_the_access(
    backend: LocalSupabase, org: str, mentor: Person, change: str
) -> None:
    mentor.insert(activity(org))
    admin = member(backend, org, "org_admin")
    asked = org
    if change == "another organisation":
        asked = demo.ORG_4
    elif change == "membership ended":
        backend.control.set_membership(admin.email, org, status="ended")
    else:
        backend.control.set_org(org, "disabled")
    shown = overview(admin, asked)
    assert (shown["activities"], shown["organization"]) == (0, None)


def test_the_number_of_members_is_no_function_of_the_api(org: str, mentor: Person) -> None:
    answer = mentor.rest.get("/rpc/overseen_members", params={"org": org})
    assert answer.status_code == 404


def test_the_overview_is_refused_without_a_token(backend: LocalSupabase, org: str) -> None:
    answer = web.get(
        f"{backend.rest_url}/rpc/activity_overview",
        params={"org": org},
        headers={"apikey": backend.anon_key},
    )
    assert codes(answer) == (401, "42501")


# Loading ------------------------------------------------------------------------------------------


@pytest.mark.postgres_only(reason="owners of tables")
def test_nothing_in_the_schema_needs_a_superuser(backend: LocalSupabase) -> None:
    """A role without special privileges loads the schema, as in a Supabase project."""
    owners = backend.control.sql(
        "select distinct r.rolname, r.rolsuper, r.rolbypassrls from pg_class c join pg_roles r "
        "on r.oid = c.relowner where c.relnamespace = 'public'::regnamespace"
    )
    assert owners == [{"rolname": "project_owner", "rolsuper": False, "rolbypassrls": False}]


# Applying it again --------------------------------------------------------------------------------

#: What the file decides about: policies, functions, triggers, tables, indexes, columns, privileges.
CATALOG = [
    "select tablename, policyname, cmd, roles, qual, with_check from pg_policies",
    "select pronamespace::regnamespace, proname, pg_get_functiondef(oid), proacl from pg_proc"
    " where pronamespace::regnamespace::text in ('public', 'private')",
    "select tgrelid::regclass, tgname, pg_get_triggerdef(oid) from pg_trigger where not tgisinternal",
    "select oid::regclass, relrowsecurity, relacl from pg_class where relnamespace::regnamespace::text"
    " = 'public' and relkind in ('r', 'p')",
    "select indexrelid::regclass, pg_get_indexdef(indexrelid) from pg_index"
    " join pg_class on pg_class.oid = indrelid where relnamespace::regnamespace::text = 'public'",
    "select attrelid::regclass, attname, attacl from pg_attribute join pg_class on pg_class.oid = attrelid"
    " where relnamespace::regnamespace::text = 'public' and attnum > 0",
]


def catalog(connection: psycopg.Connection) -> list[list[str]]:
    return [sorted(map(str, connection.execute(query).fetchall())) for query in CATALOG]


@pytest.mark.postgres_only(reason="the file itself")
@pytest.mark.parametrize(
    "change",
    [
        "select",
        'drop policy "read contacts" on contacts',
        'alter policy "read contacts" on contacts using (true)',
        "alter table activities disable row level security",
        "drop trigger touch on contacts; drop index contacts_delta",
        "grant all on contacts to anon, authenticated",
        "create or replace function activity_summary(org uuid, since timestamptz default null)"
        " returns json language sql stable as 'select null::json'",
        "alter table contacts add column region text; insert into contacts (org_id, name)"
        " select id, 'Kari' from organizations limit 1",
    ],
)
def test_FIX_26_the_schema_can_be_applied_again(backend: LocalSupabase, change: str) -> None:
    """In one transaction, as both ways of a project do, and twice; rows and own columns stay."""
    schema = SCHEMA.read_text()
    with psycopg.connect(backend.dsn) as connection:
        before = catalog(connection)
        rows = "select (select count(*) from contacts), (select count(*) from activities)"
        connection.execute(change)
        own = "alter table contacts" in change
        expected = catalog(connection) if own else before
        count = connection.execute(rows).fetchone()
        for _ in range(2):
            connection.execute(schema)
            assert catalog(connection) == expected
            assert connection.execute(rows).fetchone() == count
        connection.rollback()


@pytest.mark.postgres_only(reason="the file itself")
def test_FIX_26_the_schema_adds_what_its_earlier_version_lacks(backend: LocalSupabase) -> None:
    """Given a table without change_id, and an upload function whose result has no updated_at."""
    columns = "select attname from pg_attribute where attrelid = 'activities'::regclass"
    result = "select pg_get_function_result('submit_activities(jsonb)'::regprocedure)"
    with psycopg.connect(backend.dsn) as connection:
        before = connection.execute(result).fetchone()
        connection.execute(
            "alter table activities drop column change_id; drop function submit_activities; "
            "create function submit_activities(items jsonb) returns table (id uuid, status text) "
            "language sql as 'select null::uuid, null::text'"
        )
        connection.execute(SCHEMA.read_text())
        assert ("change_id",) in connection.execute(columns).fetchall()
        assert connection.execute(result).fetchone() == before
        connection.rollback()


@pytest.mark.postgres_only(reason="the file itself")
def test_FIX_26_the_schema_can_be_applied_statement_by_statement(backend: LocalSupabase) -> None:
    """As psql does: no statement needs that another one has not been applied yet."""
    done = subprocess.run(
        ["psql", "--quiet", "--set=ON_ERROR_STOP=1", "--file", SCHEMA, backend.dsn],
        capture_output=True,
        text=True,
        env={**os.environ, "PGOPTIONS": "--client-min-messages=warning"},
    )
    assert (done.returncode, done.stderr) == (0, "")
