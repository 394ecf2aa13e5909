"""Lists of rows in responses: one unusable row costs itself, and a cut list proves no end."""

from __future__ import annotations

import base64
import functools
import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.contact_data import DAY_S, change_behind_the_cursor, pull, pulled
from support.directory_fixtures import PASSWORD, DirectoryFixtures, Organisation, Person
from support.held import hold, return_to_foreground, total, unlock
from support.phone import App
from support.users import MakePhone, MakeUser, SignedIn, signed_in

#: A number that neither 64 bits nor a double hold, and nesting that no reader here follows.
HUGE = "12345678901234567000"
DEEP = "[" * 65 + "]" * 65

Change = Callable[[str], str]


def altered(
    user: SignedIn | App, purpose: str, change: Change, *, keeps_total: bool = True
) -> None:
    """Change the text of the server's answers to requests of this purpose."""

    def alter(request: HttpRequest, real: Answer) -> Answer:
        if request["purpose"] != purpose or "status" not in real or real["status"] >= 300:
            return real
        headers = {
            name: value
            for name, value in real["headers"].items()
            if keeps_total or name.lower() != "content-range"
        }
        return {**real, "headers": headers, "body": change(real["body"] or "")}

    user.phone.network.alter.append(alter)


def listed(app: App) -> set[str]:
    return {org["org_id"] for org in app.org_list()["orgs"]}


def problem(app: App, purpose: str) -> tuple[str, str | None] | None:
    """The code and the column of the problem with requests of this purpose."""
    found = [p for p in app.sync_status()["problems"] if p["purpose"] == purpose]
    assert len(found) <= 1, found
    return (found[0]["code"], found[0]["column"]) if found else None


# Memberships --------------------------------------------------------------------------------------


def membership(**changes: Any) -> str:  # noqa: ANN401
    """A row of a membership, with these values instead; ... removes the member."""
    row = {
        "org_id": str(uuid.uuid4()),
        "role": "peer_mentor",
        "status": "active",
        "updated_at": "2026-01-01T00:00:00+00:00",
        "organizations": {"name": "Andre", "status": "active"},
        **changes,
    }
    return json.dumps({name: value for name, value in row.items() if value is not ...})


#: A row that cannot be used, and the column that `problems` names.
UNUSABLE: dict[str, tuple[str, str | None]] = {
    "role null": (membership(role=None), "role"),
    "no role": (membership(role=...), "role"),
    "number as role": (membership(role=7), "role"),
    "status null": (membership(status=None), "status"),
    "truth as status": (membership(status=True), "status"),
    "bigint as id": (membership(org_id=7), "org_id"),
    "huge number as id": (
        membership().replace('"org_id": "', f'"org_id": {HUGE}, "x": "'),
        "org_id",
    ),
    "text as id": (membership(org_id="oslo"), "org_id"),
    "id null": (membership(org_id=None), "org_id"),
    "list as organisation": (membership(organizations=[]), "organizations"),
    "text as organisation": (membership(organizations="Oslo"), "organizations"),
    "no object": ("7", None),
    "null": ("null", None),
}

#: A row that can be used, whatever else is in it.
USABLE = {
    "huge number": membership().replace('{"org_id"', f'{{"x": {HUGE}, "org_id"'),
    "beyond a double": membership().replace('{"org_id"', '{"x": [1e400, -2e308], "org_id"'),
    "nested": membership().replace('{"org_id"', f'{{"x": {DEEP}, "org_id"'),
    "many values": membership(x={"y": [{}] * 10_000}),
    "organisation null": membership(organizations=None),
}


def with_row(row: str) -> Change:
    return lambda body: f"{body.rstrip()[:-1]},{row}]" if body.strip() != "[]" else f"[{row}]"


def test_FIX_7_an_unusable_membership_costs_itself(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation(contacts=2)
    for name, (row, column) in UNUSABLE.items():
        app = phones().start()
        altered(app, "guard", with_row(row))
        app.sign_in(directory.person(org))
        assert app.screen["screen"] == "home", name
        assert listed(app) == {org.id}, name
        assert problem(app, "guard") == ("unusable_row", column), name
        app.phone.network.alter.clear()
        return_to_foreground(SignedIn(app.phone, app, Person("", ""), org, ""))
        assert problem(app, "guard") is None, name
        app.phone.close()


def test_FIX_7_what_is_not_needed_of_a_membership_is_not_judged(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    for name, row in USABLE.items():
        app = phones().start()
        altered(app, "guard", with_row(row))
        app.sign_in(directory.person(org), org)
        assert len(listed(app)) == 2, name
        assert problem(app, "guard") is None, name
        app.phone.close()


def test_FIX_7_a_list_with_an_unusable_row_proves_no_end(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=3)
    app = user.app
    for name, (row, _) in UNUSABLE.items():
        for body in (f"[{row}]", f"[{row},{membership()}]"):
            altered(user, "guard", functools.partial(instead, body))
            return_to_foreground(user)
            assert app.screen["screen"] == "home", (name, body)
            assert user.org.id in listed(app), (name, body)
            assert total(app) == 3
            problems = {problem["code"] for problem in app.sync_status()["problems"]}
            assert problems == {"unusable_row"}, name
            user.phone.network.alter.clear()
            app.wait(400)
    assert app.of_type("org_access_changed") == []
    directory.control.sql("delete from memberships where user_id = %s", user.person.id)
    return_to_foreground(user)
    app.wait(400)
    assert [event["reason"] for event in app.of_type("org_access_changed")] == [
        "membership_revoked"
    ]


def test_FIX_7_an_unlisted_membership_does_not_stay_confirmed(sign_in: MakeUser) -> None:
    """A list that never proves an end keeps no membership longer than no list at all."""
    policy = {"session_window_s": 100 * DAY_S, "offline_limit_s": 14 * DAY_S, "biometric": "off"}
    user = sign_in(contacts=2, policy=policy)
    row, _ = UNUSABLE["role null"]
    altered(user, "guard", lambda real: f"[{row},{membership()}]")
    for _ in range(13):
        user.phone.pass_time(DAY_S)
        return_to_foreground(user)
    assert user.app.screen["screen"] == "home"
    for _ in range(2):
        user.phone.pass_time(DAY_S)
        return_to_foreground(user)
    assert user.app.screen["screen"] == "wait"


def instead(body: str, real: str) -> str:
    """Another body."""
    return body


def member_of(directory: DirectoryFixtures, count: int) -> tuple[list[Organisation], Person]:
    """A member of so many organisations, in the order of their ids."""
    orgs = sorted((directory.organisation() for _ in range(count)), key=lambda org: org.id)
    return orgs, directory.person(*orgs)


@pytest.mark.parametrize("keeps_total", [True, False])
def test_FIX_10_memberships_are_read_in_pages(
    phones: MakePhone, directory: DirectoryFixtures, keeps_total: bool
) -> None:
    orgs, person = member_of(directory, 5)
    app = phones().start()
    altered(app, "guard", lambda body: body, keeps_total=keeps_total)
    user = SignedIn(app.phone, app, person, orgs[-1], "peer_mentor")
    for most in (1, 2, 4, 5, 6):
        directory.control.set(max_rows=most)
        if most == 1:
            app.sign_in(person, orgs[-1])
        app.phone.network.forget()
        return_to_foreground(user)
        assert listed(app) == {org.id for org in orgs}, most
        assert app.screen["org"] == {
            "id": orgs[-1].id, "name": orgs[-1].name, "role": "peer_mentor",
        }, most  # fmt: skip
        assert problem(app, "guard") is None
        pages = -(-5 // most)
        assert app.phone.network.count("guard") == pages + (not keeps_total), most
    assert app.of_type("org_access_changed") == []
    directory.control.set(max_rows=2)
    directory.control.set_membership(person.id, orgs[3].id, status="ended")
    new = directory.organisation()
    directory.control.set_membership(person.id, new.id, role="peer_mentor")
    directory.control.sql("delete from memberships where org_id = %s", orgs[2].id)
    return_to_foreground(user)
    states = {org["org_id"]: org["status"] for org in app.org_list()["orgs"]}
    assert states == {
        orgs[0].id: "active", orgs[1].id: "active", orgs[3].id: "revoked", orgs[4].id: "active",
        new.id: "active",
    }  # fmt: skip


def test_FIX_10_a_membership_at_the_edge_of_a_page_is_the_active_one(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """Rows of one organisation that two pages share: the active one comes first."""
    orgs, person = member_of(directory, 2)
    app = phones().start()
    rows = [membership(org_id=org.id, status=s) for org in orgs for s in ("active", "ended")]

    def cut(request: HttpRequest, real: Answer) -> Answer:
        if request["purpose"] != "guard":
            return real
        assert "order=org_id.asc,status.asc" in request["url"]
        left = [row for row in rows if f"gt.{json.loads(row)['org_id']}" not in request["url"]]
        return {**real, "headers": {}, "body": f"[{left[0]}]" if len(left) == 4 else "[]"}

    app.phone.network.alter.append(cut)
    app.sign_in(person)
    assert {org["status"] for org in app.org_list()["orgs"]} == {"active"}


@pytest.mark.parametrize("told", ["5", "*", "x", "99999999999", "-1", ""])
def test_FIX_10_a_page_that_repeats_proves_no_end(
    phones: MakePhone, directory: DirectoryFixtures, told: str
) -> None:
    orgs, person = member_of(directory, 5)
    user = signed_in(phones, person, orgs[-1])
    app = user.app

    def repeat(request: HttpRequest, real: Answer) -> Answer:
        if request["purpose"] != "guard" or "status" not in real:
            return real
        rows = ",".join(membership(org_id=org.id) for org in orgs[:3])
        return {**real, "headers": {"content-range": f"0-2/{told}"}, "body": f"[{rows}]"}

    app.phone.network.alter.append(repeat)
    app.phone.network.forget()
    return_to_foreground(user)
    assert app.screen["org"] is not None
    assert app.screen["org"]["id"] == orgs[-1].id
    assert listed(app) == {org.id for org in orgs}
    assert app.of_type("org_access_changed") == []
    assert problem(app, "guard") == ("loop", None)
    assert app.phone.network.count("guard") == 2


def counted_but_empty(request: HttpRequest, real: Answer) -> Answer:
    """An empty page, of which the server says that there are rows."""
    is_list = request["method"] == "GET" and "status" in real and request["purpose"] != "upload"
    if not is_list or not (real["body"] or "").startswith("["):
        return real
    return {**real, "headers": {"content-range": "*/1"}, "body": "[]"}


def test_FIX_10_an_empty_page_of_a_list_that_has_rows_proves_no_end(sign_in: MakeUser) -> None:
    user = sign_in(contacts=3, policy={"session_window_s": 30 * DAY_S})
    pull(user)
    user.phone.pass_time(2 * DAY_S)
    user.phone.network.alter.append(counted_but_empty)
    return_to_foreground(user)
    user.app.sync()
    assert user.app.of_type("org_access_changed") == []
    assert user.app.screen["screen"] == "home"
    assert total(user.app) == 3
    assert problem(user.app, "guard") == ("loop", None)
    assert problem(user.app, "pull") == ("loop", None)


# Objects ------------------------------------------------------------------------------------------

#: What may be in a part of an answer that nobody needs.
ODD = {
    "huge number": HUGE,
    "negative": "-" + HUGE,
    "beyond a double": "1e400",
    "in a list": f'[1, {HUGE}, "a", 2e308]',
    "nested": DEEP,
    "nested and huge": '{"a":' * 70 + HUGE + "}" * 70,
    "many values": json.dumps([{}] * 9_000),
    "NUL": r'"a\u0000b"',
    "half of a pair": r'["\uD83D\uDE00", "\uDE00\ud83d", "\ud83dx"]',
    "a NUL in a name": r'{"\u0000": "\\u0000"}',
    "a quoted bracket": json.dumps(["]}" * 3, {"a\\": '"}'}]) + "",
}


def add_metadata(value: str) -> Change:
    """The answer of the auth service, with a value in the user's metadata."""

    def change(body: str) -> str:
        name = '"user_metadata":' if '"user_metadata":' in body else '"user_metadata": '
        before, _, after = body.partition(name)
        assert after, body
        _, end = json.JSONDecoder().raw_decode(after.lstrip())
        return f'{before}"user_metadata":{{"x":{value}}}{after.lstrip()[end:]}'

    return change


def test_FIX_8_numbers_and_nesting_that_nobody_needs_stop_no_sign_in(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    for name, value in ODD.items():
        app = phones(policy={"biometric": "off"}).start()
        user = SignedIn(app.phone, app, directory.person(org), org, "peer_mentor")
        for purpose in ("sign_in", "refresh", "validate"):
            altered(user, purpose, add_metadata(value))
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
        app.settle()
        assert app.screen["screen"] == "home", name
        app.phone.pass_time(3_600)
        app.phone.network.forget()
        app.settle()
        assert app.phone.network.count("refresh") == 1, name
        app = user.restart()
        app.settle()
        assert app.session_status()["owed"] == [], name
        assert app.sync_status()["problems"] == [], name
        app.phone.close()


class OtherClaims:
    """A server whose access tokens have another claim, which the client cannot verify."""

    def __init__(self, app: App, value: str) -> None:
        self.http = app.phone.network._http
        self.value = value
        self.real: dict[str, str] = {}
        app.phone.network._http = self  # type: ignore[assignment]

    def __call__(self, request: HttpRequest) -> Answer:
        headers = dict(request["headers"])
        word, _, token = headers.get("Authorization", "").partition(" ")
        if token in self.real:
            headers["Authorization"] = f"{word} {self.real[token]}"
        real = self.http({**request, "headers": headers})
        if "status" not in real or '"access_token"' not in (real["body"] or ""):
            return real
        body = json.loads(real["body"] or "")
        head, claims, signature = body["access_token"].split(".")
        text = base64.urlsafe_b64decode(claims + "==").decode().rstrip()
        odd = f'{text[:-1]},"x":{{"y":{{"z":{self.value}}}}}}}'
        token = f"{head}.{base64.urlsafe_b64encode(odd.encode()).decode().rstrip('=')}.{signature}"
        self.real[token] = body["access_token"]
        return {**real, "body": json.dumps({**body, "access_token": token})}


def test_FIX_8_claims_that_nobody_needs_stop_no_sign_in(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    org = directory.organisation()
    for name, value in ODD.items():
        if name == "many values":
            continue  # of a token of 16 kB
        app = phones(policy={"biometric": "off"}).start()
        OtherClaims(app, value)
        app.sign_in_complete({"email": directory.person(org).email, "password": PASSWORD})
        app.settle()
        assert app.screen["screen"] == "home", name
        app.wait(3_600)
        assert app.session_status()["state"] == "active", name
        assert app.screen["screen"] == "home", name
        app.phone.close()


# Contacts -----------------------------------------------------------------------------------------


def replaced_row(number: int, value: str) -> Change:
    """The answer, in which one row has another value as `relation`."""

    def change(body: str) -> str:
        rows = json.loads(body)
        texts = [json.dumps(row) for row in rows]
        for place, row in enumerate(rows):
            if str(row.get("name", "")) == f"Kontakt {number}":
                texts[place] = json.dumps({**row, "relation": "@"}).replace('"@"', value)
        return f"[{','.join(texts)}]"

    return change


def contacts_of(directory: DirectoryFixtures, org: Organisation, count: int) -> None:
    """Contacts with the names `Kontakt n`, in this order, with times far apart."""
    with directory.times_as_given():
        directory.control.sql(
            "insert into contacts (org_id, name, updated_at) select %s, 'Kontakt ' || n, "
            "now() - interval '2 days' + n * interval '1 minute' from generate_series(1, %s) as n",
            org.id, count,
        )  # fmt: skip


def lose_the_cache(user: SignedIn) -> None:
    """Start the app without its cache."""
    user.phone.close()
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    user.restart()
    unlock(user)


@pytest.mark.parametrize("place", [1, 30, 60])
def test_FIX_9_a_contact_that_cannot_be_read_costs_itself(
    user: SignedIn, directory: DirectoryFixtures, place: int
) -> None:
    contacts_of(directory, user.org, 60)
    for name, value in ODD.items():
        if name in ("many values", "a quoted bracket", "huge number", "negative"):
            continue
        altered(user, "pull", replaced_row(place, value))
        user.phone.pass_time(DAY_S)
        lose_the_cache(user)
        user.app.settle()
        [told] = pull(user)[-1:]
        assert told["problem"] is None, name
        assert total(user.app) == 59, name
        assert problem(user.app, "pull") == ("unusable_row", None), name
        status: Any = user.app.sync_status()["contacts"]
        assert status["as_of_ms"] == user.phone.now_ms, name
        user.phone.network.alter.clear()
        pull(user, after_s=DAY_S)
        assert total(user.app) == 60, name
        assert problem(user.app, "pull") is None, name


@pytest.mark.parametrize("value", [HUGE, "-" + HUGE, "10000000000000000000000"])
def test_FIX_9_a_whole_number_beyond_64_bits_is_read_as_a_real_one(
    user: SignedIn, directory: DirectoryFixtures, value: str
) -> None:
    contacts_of(directory, user.org, 3)
    altered(user, "pull", replaced_row(1, value))
    [told] = pull(user)
    assert (told["rows"], told["skipped"], told["problem"]) == (3, 0, None)
    shown = user.app.contact_search({"query": ""})["contacts"]
    assert float(value) in [contact.get("relation") for contact in shown]


def test_FIX_9_a_page_may_have_any_number_of_values(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    contacts_of(directory, user.org, 500)
    many = json.dumps([0] * 2_500)
    altered(user, "pull", lambda body: body.replace('"name"', f'"x":{many},"name"'))
    [told] = pull(user)
    assert (told["rows"], told["skipped"], told["problem"]) == (500, 0, None)
    assert total(user.app) == 500


@pytest.mark.parametrize("refusal", ["refused", "timeout", "no body", "statement timeout"])
def test_FIX_9_a_page_that_is_too_large_is_asked_for_in_smaller_pages(
    user: SignedIn, directory: DirectoryFixtures, refusal: str
) -> None:
    contacts_of(directory, user.org, 600)

    def limit(request: HttpRequest, real: Answer) -> Answer:
        if request["purpose"] != "pull" or "status" not in real or real["status"] >= 300:
            return real
        if len(json.loads(real["body"] or "[]")) <= 90:
            return real
        if refusal == "no body":
            return {**real, "body": None}
        if refusal == "statement timeout":
            return {**real, "status": 500, "body": '{"code":"57014","message":"canceling"}'}
        return {"error": refusal}

    user.phone.network.alter.append(limit)
    user.phone.network.forget()
    pull(user)
    for _ in range(40):
        user.app.wait(60)
        if total(user.app) == 600 and pulled():
            break
    assert total(user.app) == 600
    assert pulled()[-1]["problem"] is None
    assert user.phone.network.count("pull") < 40
    contacts_of(directory, user.org, 1)
    lose_the_cache(user)
    for _ in range(30):
        user.phone.pass_time(300)
        user.restart()
        unlock(user)
        user.app.settle()
        if total(user.app) == 601:
            break
    assert total(user.app) == 601


@pytest.mark.parametrize(
    ("there", "sent", "column"), [("+00:00", "", "updated_at"), ('"name"', '"navn"', "name")]
)
def test_FIX_12_contacts_whose_times_have_no_zone_or_that_have_no_name_are_named(
    user: SignedIn, directory: DirectoryFixtures, there: str, sent: str, column: str
) -> None:
    contacts_of(directory, user.org, 40)
    altered(user, "pull", lambda body: body.replace(there, sent))
    lose_the_cache(user)
    for _ in range(3):
        user.app.settle()
        [told] = pull(user, after_s=1_000)
        assert (told["rows"], told["problem"]) == (0, "unusable_row")
        assert problem(user.app, "pull") == ("unusable_row", column)
        status: Any = user.app.sync_status()["contacts"]
        assert (status["as_of_ms"], status["problem"]) == (None, "unusable_row")
        reply = user.app.contact_search({"query": ""})
        assert (reply["total"], reply["as_of_ms"]) == (0, None)
        assert "nothing_cached_yet" in {banner["code"] for banner in reply["banners"]}
    user.phone.network.alter.clear()
    [told] = pull(user, after_s=1_000)
    assert (told["rows"], told["problem"]) == (40, None)
    assert problem(user.app, "pull") is None


# Reconciles that are interrupted ------------------------------------------------------------------


def first_ids(directory: DirectoryFixtures, org: Organisation, count: int) -> list[str]:
    query = "select id from contacts where org_id = %s order by id limit %s"
    return [str(row["id"]) for row in directory.control.sql(query, org.id, count)]


@pytest.mark.parametrize("how", ["killed", "asleep", "minutes"])
def test_FIX_18_a_reconcile_of_hours_ago_is_begun_anew(
    sign_in: MakeUser, directory: DirectoryFixtures, how: str
) -> None:
    user = sign_in(policy={"session_window_s": 30 * DAY_S, "offline_limit_s": 30 * DAY_S})
    contacts_of(directory, user.org, 90)
    directory.control.set(max_rows=30)
    pull(user)
    user.phone.pass_time(DAY_S)
    began = user.phone.now_ms
    user.app.sync_now()
    position = first_ids(directory, user.org, 30)[-1]
    late = hold(user.app, lambda url: f"id=gt.{position}" in url)
    gone = first_ids(directory, user.org, 5)
    directory.control.sql("delete from contacts where id = any(%s::uuid[])", gone)
    user.phone.pass_time(300 if how == "minutes" else 3 * 3_600)
    if how == "killed":
        user.restart()
        unlock(user)
        user.app.settle()
    else:
        user.app.complete({"id": late["id"], "error": "timeout"})
    user.phone.pass_time(600)
    user.app.sync()
    status: Any = user.app.sync_status()["contacts"]
    if how != "minutes":
        assert total(user.app) == 85
        assert status["reconciled_ms"] > began
        return
    assert total(user.app) == 90
    assert status["reconciled_ms"] == began


def test_FIX_10_missing_rows_that_are_counted_and_not_sent_are_asked_for_again(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"session_window_s": 30 * DAY_S, "offline_limit_s": 30 * DAY_S})
    contacts_of(directory, user.org, 3)
    pull(user)
    change_behind_the_cursor(directory, user.org.id)
    user.phone.pass_time(DAY_S)

    def empty(request: HttpRequest, real: Answer) -> Answer:
        return counted_but_empty(request, real) if "id=in." in request["url"] else real

    user.phone.network.alter.append(empty)
    user.app.sync()
    assert problem(user.app, "pull") == ("loop", None)
    user.phone.network.alter.remove(empty)
    pull(user, after_s=600)
    contacts = user.app.contact_search({"query": "Kontakt", "limit": 200})["contacts"]
    assert len(contacts) == 3
    assert all(str(contact["name"]).endswith(" Ny") for contact in contacts)


@pytest.mark.parametrize(
    ("rows", "kept"), [(500, 0), (500, 1), (500, 2), (150, 0), (150, 1), (150, 2)]
)
def test_TST_6_a_process_that_ends_between_missing_rows_loses_none(
    sign_in: MakeUser, directory: DirectoryFixtures, rows: int, kept: int
) -> None:
    directory.control.set(max_rows=rows)
    user = sign_in(policy={"session_window_s": 30 * DAY_S, "offline_limit_s": 30 * DAY_S})
    contacts_of(directory, user.org, 250)
    pull(user)
    change_behind_the_cursor(directory, user.org.id)
    user.phone.pass_time(DAY_S)
    user.app.sync_now()
    seen = 0

    def wanted(url: str) -> bool:
        nonlocal seen
        seen += "id=in." in url
        return seen == kept + 1

    hold(user.app, wanted)
    user.restart()
    unlock(user)
    user.app.settle()
    pull(user, after_s=600)
    names = {
        str(contact["name"])
        for start in ("Kontakt 1", "Kontakt 2", "Kontakt")
        for contact in user.app.contact_search({"query": start, "limit": 200})["contacts"]
    }
    assert {name for name in names if not name.endswith(" Ny")} == set()
    assert total(user.app) == 250
    late = [r["url"] for r in user.phone.network.sent if "id=in." in r["url"]]
    assert late != []
