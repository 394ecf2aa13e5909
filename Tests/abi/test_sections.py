"""HST-5: an app without organisations, without contacts, without summary; and its next version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from holdfast import Holdfast, HoldfastError

from support.directory_fixtures import DirectoryFixtures, Person, changed
from support.errors import error_of
from support.phone import App, Phone
from support.queue import EMPTY, drain, item_of, stored
from support.screens import why
from support.users import MakePhone, MakeUser, SignedIn

NOTES = {"note": {"table": "notes", "columns": ["title", "user_id"]}}
#: An app whose only server data are the user's notes.
NOTHING = {"queue": NOTES, "memberships": None, "contacts": None, "summary": None}
#: The same with contacts and figures that belong to the user.
OWN = {
    "queue": NOTES,
    "memberships": None,
    "contacts": {"table": "friends", "columns": ["name"], "needs_network": ["phone"]},
    "summary": {"function": "note_figures", "kind": "note"},
}
USER = {"user": {"home": "/notes", "screens": ["/notes", "/notes/*"]}}
#: The sections that a call of this name needs.
NEEDED = {
    "org_list": (None, "memberships"),
    "org_select": ({"org_id": str(uuid.uuid4())}, "memberships"),
    "contact_search": ({"query": "a"}, "contacts"),
    "contact_get": ({"id": str(uuid.uuid4())}, "contacts"),
    "summary_get": (None, "summary"),
}


@pytest.fixture
def personal(directory: DirectoryFixtures) -> Iterator[DirectoryFixtures]:
    """A schema without organisations: rows belong to their user."""
    tables = """
        create table public.notes(id uuid primary key, title text not null,
          user_id uuid not null default auth.uid());
        create table public.friends(id uuid primary key default gen_random_uuid(),
          user_id uuid not null, name text not null, phone text,
          updated_at timestamptz not null default now(), deleted_at timestamptz);
        alter table public.notes enable row level security;
        alter table public.friends enable row level security;
        create policy own on public.notes to authenticated
          using (user_id = auth.uid()) with check (user_id = auth.uid() and title <> 'forbidden');
        create policy own on public.friends for select to authenticated
          using (user_id = auth.uid());
        grant select, insert on public.notes to authenticated;
        grant select on public.friends to authenticated;
        create function public.note_figures() returns json language sql stable as $$
          select json_build_object('since', null, 'activities', count(*), 'minutes', 0)
          from public.notes where user_id = auth.uid() $$;
        grant execute on function public.note_figures() to authenticated
        """
    with changed(
        directory,
        tables,
        "drop function public.note_figures(); drop table public.notes, public.friends",
    ):
        yield directory


def note(app: App, title: str = "milk") -> str:
    return str(app.queue_add({"kind": "note", "payload": {"title": title}})["id"])


def notes(directory: DirectoryFixtures, person: Person) -> dict[str, str]:
    rows = directory.control.sql(
        "select id::text, title from public.notes where user_id = %s::uuid", person.id
    )
    return {str(row["id"]): str(row["title"]) for row in rows}


def sent(phone: Phone, purpose: str) -> list[dict[str, Any]]:
    return [dict(one) for one in phone.network.sent if one["purpose"] == purpose]


@pytest.fixture
def loner(phones: MakePhone, personal: DirectoryFixtures) -> tuple[Phone, App, Person]:
    """A signed-in user of an app without organisations, contacts and figures."""
    phone = phones(tables=NOTHING, routes=USER)
    person = personal.person()
    app = phone.start()
    app.sign_in(person)
    return phone, app, person


def test_HST_5_without_organisations_a_session_leads_home(loner: tuple[Phone, App, Person]) -> None:
    phone, app, _ = loner
    assert app.screen["screen"] == "home"
    assert app.screen["route"] == "/notes"
    assert app.screen["org"] is None
    assert app.screen["orgs"] == []
    for purpose in ("guard", "pull", "summary"):
        assert sent(phone, purpose) == [], purpose
    assert app.route_check({"route": "/notes/1"}) == {"allow": True}
    assert why(app.route_check({"route": "/admin"})["screen"]) == "route_forbidden"
    phone.close()
    app = phone.start(online=False)
    assert app.screen["screen"] == "home"
    assert [banner["code"] for banner in app.screen["banners"]] == ["offline"]
    assert app.session_lock()["screen"] == "unlock"
    assert app.touch()["screen"] == "home"
    app.reconnect()
    assert sent(phone, "validate") != []
    assert sent(phone, "guard") == []


def test_HST_5_without_organisations_an_item_is_the_users(
    loner: tuple[Phone, App, Person], personal: DirectoryFixtures
) -> None:
    phone, app, person = loner
    app.go_offline()
    item = note(app)
    assert item_of(app, item)["org_id"] is None
    exported = app.queue_export({})["items"]
    assert [one["org_id"] for one in exported] == [None]
    # The form of the export is accepted
    assert app.queue_add(cast(Any, exported[0]))["id"] == item
    phone.close()
    phone.network.up = True
    app = phone.start()
    drain(app)
    assert notes(personal, person) == {item: "milk"}
    [upload] = sent(phone, "upload")
    assert "org_id" not in upload["url"]
    assert "org_id" not in (upload["body"] or "")
    assert app.queue_list({})["counts"] == EMPTY
    assert app.sync_status()["contacts"] is None
    assert app.sync_status()["summary"] is None
    # An organisation in the request is refused, as one in the payload is
    for request, code, field in (
        ({"org_id": str(uuid.uuid4())}, "config.not_configured", "/org_id"),
        ({"payload": {"org_id": "x"}}, "queue.unknown_column", "/payload/org_id"),
    ):
        error = error_of(
            app.queue_add, cast(Any, {"kind": "note", "payload": {"title": "x"}, **request})
        )
        assert (error.code, error.field) == (code, field)


def test_HST_5_without_organisations_a_refusal_is_the_items(
    loner: tuple[Phone, App, Person], personal: DirectoryFixtures
) -> None:
    """No membership can explain it: once another item got through, it is parked."""
    phone, app, person = loner
    bad, good = note(app, "forbidden"), note(app, "bread")
    drain(app)
    assert notes(personal, person) == {good: "bread"}
    later = note(app, "milk")
    for _ in range(6):
        phone.pass_time(600)
        app.settle()
    assert item_of(app, bad)["state"] == "parked"
    assert notes(personal, person) == {good: "bread", later: "milk"}
    app.queue_edit({"id": bad, "payload": {"title": "allowed"}})
    app.queue_retry({"id": bad})
    drain(app)
    assert notes(personal, person) == {good: "bread", later: "milk", bad: "allowed"}


def test_HST_5_a_call_of_a_missing_section_names_it(loner: tuple[Phone, App, Person]) -> None:
    _, app, _ = loner
    for name, (request, section) in NEEDED.items():
        with pytest.raises(HoldfastError) as caught:
            getattr(app, name)(*([] if request is None else [request]))
        assert caught.value.code == "config.not_configured", name
        assert caught.value.field == f"/backend/{section}", name
        assert section in str(caught.value), name


def test_HST_5_without_organisations_no_key_contains_one(
    loner: tuple[Phone, App, Person], tmp_path: Path
) -> None:
    phone, _, _ = loner
    backend = {**phone.config["backend"], "queue": {"note": {**NOTES["note"]}}}
    backend["queue"]["note"]["primary_key"] = "id_and_org_id"
    with pytest.raises(HoldfastError) as caught:
        config: Any = {**phone.config, "data_dir": str(tmp_path / "other"), "backend": backend}
        Holdfast(config, phone.key_store, library=phone.library)
    assert caught.value.code == "request.invalid_value"
    assert caught.value.field == "/backend/queue/note/primary_key"


def test_HST_5_contacts_and_figures_of_a_user_without_organisations(
    phones: MakePhone, personal: DirectoryFixtures
) -> None:
    person, other = personal.person(), personal.person()
    for owner, name in ((person, "Kari"), (person, "Ola"), (other, "Per")):
        personal.control.sql(
            "insert into public.friends(user_id, name, phone) values (%s::uuid, %s, '99')",
            owner.id,
            name,
        )
    phone = phones(tables=OWN, routes=USER)
    app = phone.start()
    app.sign_in(person)
    found = app.contact_search({"query": ""})["contacts"]
    assert sorted(str(contact["name"]) for contact in found) == ["Kari", "Ola"]
    assert all("org_id" not in one["url"] for one in sent(phone, "pull"))
    assert sent(phone, "summary")[0]["body"] == "{}"
    app.contact_get({"id": str(found[0]["id"]), "live": True})
    app.settle()
    [event] = app.of_type("contact")
    assert event["contact"]["phone"] == "99"
    app.go_offline()
    note(app)
    assert app.summary_get()["queued"]["activities"] == 1
    assert app.summary_get()["summary"]["activities"] == 0
    phone.close()
    phone.network.up = True
    app = phone.start()
    drain(app)
    app.settle()
    assert app.summary_get()["summary"]["activities"] == 1
    assert app.summary_get()["queued"]["activities"] == 0
    status = app.sync_status()
    assert status["contacts"] is not None
    assert status["contacts"]["as_of_ms"] is not None
    assert status["summary"] is not None


@pytest.mark.parametrize("missing", ["contacts", "summary", "both"])
def test_HST_5_without_contacts_or_summary_the_rest_works(
    sign_in: MakeUser, directory: DirectoryFixtures, missing: str
) -> None:
    names = ["contacts", "summary"] if missing == "both" else [missing]
    user = sign_in(contacts=1, tables=dict.fromkeys(names))
    app = user.app
    item = app.register()
    drain(app)
    app.settle()
    assert stored(directory, user.person) == [item]
    status = app.sync_status()
    for name, purpose in (("contacts", "pull"), ("summary", "summary")):
        assert (cast(Any, status)[name] is None) == (name in names), name
        assert (sent(user.phone, purpose) == []) == (name in names), name
    assert app.org_list()["orgs"] != []


def test_HST_5_items_without_an_organisation_are_salvaged(
    loner: tuple[Phone, App, Person], personal: DirectoryFixtures
) -> None:
    phone, app, person = loner
    app.go_offline()
    ids = {note(app, f"note {number} {'x' * 500}") for number in range(20)}
    phone.close()
    database = phone.folder / "holdfast.db"
    database.write_bytes(bytes(4096) + database.read_bytes()[4096:])
    app = phone.start(online=False)
    app.settle()
    app.go_online()
    if app.screen["screen"] != "home":
        app.sign_in(person)
    drain(app)
    [event] = app.of_type("storage_recovered")
    assert event["carried"] == len(ids)
    assert set(notes(personal, person)) == ids


def version(user: SignedIn, **backend: Any) -> App:  # noqa: ANN401
    """Start the app's next version, with these sections."""
    for name in ("queue", "memberships", "contacts", "summary"):
        user.phone.config["backend"].pop(name, None)
    user.phone.config["backend"].update(backend)
    return user.restart()


def test_HST_5_a_section_goes_and_comes_back_and_nothing_is_lost(
    sign_in: MakeUser, personal: DirectoryFixtures
) -> None:
    user = sign_in(contacts=2)
    activity = user.offline().register()
    user.phone.config["routes"] = {**cast(Any, user.phone.config["routes"]), **USER}
    user.phone.network.up = False
    app = version(user, memberships=None, contacts=None, summary=None)
    app.go_offline()
    assert app.screen["org"] is None
    assert item_of(app, activity)["org_id"] == user.org.id
    app = version(user, **NOTHING)
    app.go_offline()
    first = note(app, "first")
    assert app.session_lock()["screen"] == "unlock"
    assert app.touch()["screen"] == "home"
    activities = {"activity": {"table": "activities"}}
    app = version(user, queue={**NOTES, **activities})
    assert app.screen["screen"] == "home"
    assert cast(Any, app.screen["org"])["id"] == user.org.id
    assert item_of(app, first)["org_id"] is None
    user.phone.network.up = True
    app.go_online()
    drain(app)
    app.settle()
    assert notes(personal, user.person) == {first: "first"}
    assert stored(personal, user.person) == [activity]
    assert app.contact_search({"query": ""})["total"] == 2


def test_HST_5_an_item_that_waits_for_an_organisation_is_released_without(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    item = user.offline().register()
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    user.app.reconnect()
    assert item_of(user.app, item)["state"] == "waiting"
    user.phone.config["routes"] = {**cast(Any, user.phone.config["routes"]), **USER}
    app = version(user, memberships=None, contacts=None, summary=None)
    for _ in range(3):
        user.phone.pass_time(600)
        app.settle()
    # Then the server decides: it refuses the only item, which is not blamed for that,
    assert item_of(app, item)["state"] == "waiting"
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    for _ in range(3):
        user.phone.pass_time(3600)
        app.settle()
    assert stored(directory, user.person) == [item]


def test_HST_5_an_app_without_organisations_has_one_role(phones: MakePhone) -> None:
    error = error_of(phones(tables=NOTHING).open)
    assert (error.code, error.field) == ("request.missing_field", "/routes/user")
    phone = phones(tables=NOTHING)
    del phone.config["routes"]
    assert phone.start().screen["screen"] == "sign_in"


def test_HST_5_texts_are_english_unless_the_configuration_says_otherwise(phones: MakePhone) -> None:
    plain, english = phones(), phones(locale="en")
    del plain.config["locale"]
    told = [phone.start().screen["message"] for phone in (plain, english)]
    assert told[0] == told[1]
