"""Small faults of the rules that no other test saw. Each test fails when its rule is left out."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from support import attacker, contact_data, tamper
from support.contact_data import pull
from support.damage import restart_after
from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.held import return_to_foreground, taken
from support.network import moved_session
from support.phone import TOKEN_S, Phone
from support.queue import (
    BAD_MINUTES,
    BOTH,
    UPLOADS,
    add,
    code_of,
    drain,
    item_of,
    stored,
    user_of,
)
from support.sign_in import begin, browse, finish
from support.users import MakePhone, MakeUser, SignedIn
from support.workers import finish_worker, start_worker

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest


def moved(phone: Phone, session: dict[str, Any]) -> Any:  # noqa: ANN401
    """The session with its end moved to the phone's time."""
    return json.loads(moved_session(json.dumps(session), phone.ahead_ms() / 1000) or "")


def start_as(user: SignedIn, person: Person) -> None:
    """Another user's session takes the place of the stored one, without a logout."""
    user.app.session_start({"session": moved(user.phone, user.phone.directory.session(person))})
    user.app.settle()


# Uploads ------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("end", ["killed", "closed"])
def test_an_upload_whose_process_ended_counts_as_an_attempt(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str, end: str
) -> None:
    # Given an item that the server has stored, and a process that ends before the answer comes
    user = user_of(sign_in, upload)
    user.app.go_offline()
    item = add(user.app, minutes=30)
    if end == "killed":
        user.phone.close()
        directory.control.delay(UPLOADS[upload], after_ms=60_000, method="POST")
        worker = start_worker(user.phone, 0, 1)
        while not stored(directory, user.person):
            time.sleep(0.01)
            assert worker.poll() is None
        worker.kill()
        finish_worker(worker)
        directory.control.clear_faults()
    else:
        user.app.go_online()
        request = taken(user, "upload")
        user.phone.network(request)
        user.phone.close()
    assert stored(directory, user.person) == [item]
    # When the app starts again
    app = user.restart(online=False)
    # Then the item has been tried once
    assert item_of(app, item)["attempts"] == 1
    # and an edit is not taken for what the server has
    app.queue_edit({"id": item, "payload": {"type": "visit", "minutes": 45}})
    app.go_online()
    done = drain(app)
    assert (done["sent"], done["parked"]) == (0, 1)
    assert code_of(app, item) == "unknown_outcome"
    assert [row["minutes"] for row in directory.activities(user.person)] == [30]


@BOTH
def test_items_that_wait_for_a_time_are_held_with_their_organisation(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    # Given an item that waits for a time, since the server's table is missing
    user = user_of(sign_in, upload)
    app = user.app
    missing = {"code": "PGRST205", "message": "Could not find the table"}
    directory.control.respond(UPLOADS[upload], 404, body=missing, method="POST")
    item = add(app)
    app.settle()
    assert code_of(app, item) == "schema_not_ready"
    # When the membership ends
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    return_to_foreground(user)
    # Then the item waits for the organisation,
    assert code_of(app, item) == "waiting_organisation"
    # and nothing is sent when its time has come
    user.phone.network.forget()
    user.phone.pass_time(600)
    app.settle()
    assert user.phone.network.count("upload") == 0
    assert code_of(app, item) == "waiting_organisation"
    # but when the membership is back
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    return_to_foreground(user)
    drain(app)
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("linked", ["before", "while held"])
def test_released_items_still_wait_for_the_items_that_they_depend_on(
    sign_in: MakeUser, directory: DirectoryFixtures, linked: str
) -> None:
    # Given an item that the server refuses and one that follows it, held with the organisation
    user = sign_in()
    app = user.app
    app.go_offline()
    parent = add(app, minutes=BAD_MINUTES)
    child = add(app, minutes=6, **({"follows": parent} if linked == "before" else {}))
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    app.go_online()
    app.settle()
    assert code_of(app, parent) == "waiting_organisation"
    if linked == "while held":
        assert code_of(app, child) == "waiting_organisation"
        payload: Any = {"type": "visit", "minutes": 6, "follows": parent}
        app.queue_edit({"id": child, "payload": payload})
    # When the membership is back
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    user.phone.network.forget()
    return_to_foreground(user)
    # Then the second still waits for the first, and is not sent without it
    assert item_of(app, parent)["state"] == "parked"
    assert item_of(app, child)["state"] == "waiting"
    posts = [r for r in user.phone.network.sent if r["purpose"] == "upload"]
    assert posts
    assert not [request for request in posts if f'"id":"{child}"' in (request["body"] or "")]
    # but after it
    app.queue_edit({"id": parent, "payload": {"type": "visit", "minutes": 5}})
    app.settle()
    assert stored(directory, user.person) == sorted([parent, child])


def test_a_membership_that_vanishes_and_is_not_the_chosen_one_is_over(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a user who has chosen one of two organisations, with an item and contacts of the other
    first, second = directory.organisation(contacts=3), directory.organisation(contacts=300)
    person = directory.person(first, second)
    phone = phones()
    app = phone.start()
    app.sign_in(person, second)
    user = SignedIn(phone, app, person, second, "peer_mentor")
    app.settle()
    of_second = contact_data.sealed(phone.folder)
    assert len(of_second) > 300
    app.go_offline()
    item = add(app)
    app.org_select({"org_id": first.id})
    # (The server takes no uploads, so that only the list of memberships can tell.)
    directory.control.respond("/rest/v1/activities", 503, times=-1)
    app.go_online()
    app.settle()
    assert contact_data.left_on_disk(phone.folder, of_second) == len(of_second)
    assert item_of(app, item)["state"] == "pending"
    # When the membership of the other one is deleted
    directory.control.sql(
        "delete from memberships where user_id = %s and org_id = %s", person.id, second.id
    )
    return_to_foreground(user)
    # Then its cache is off the disk, and its items are held; the chosen one stays
    assert contact_data.left_on_disk(phone.folder, of_second) == 0
    assert code_of(app, item) == "waiting_organisation"
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 3


def test_items_held_for_their_organisation_are_held_after_a_salvage(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an item that is held since the membership ended
    user = sign_in()
    user.app.go_offline()
    item = add(user.app)
    directory.control.set_membership(user.person.id, user.org.id, status="ended")
    user.app.go_online()
    user.app.settle()
    assert code_of(user.app, item) == "waiting_organisation"
    # When the header of the file is destroyed
    app = restart_after(user)
    # Then it is still held,
    assert code_of(app, item) == "waiting_organisation"
    # and sent only when the membership is back
    user.phone.network.forget()
    app.go_online()
    if app.screen["screen"] == "sign_in":
        app.sign_in(user.person)
    app.settle()
    assert user.phone.network.count("upload") == 0
    assert code_of(app, item) == "waiting_organisation"
    directory.control.set_membership(user.person.id, user.org.id, status="active")
    return_to_foreground(user)
    drain(app)
    assert stored(directory, user.person) == [item]


# The session --------------------------------------------------------------------------------------


def test_a_summary_of_the_user_before_is_not_shown(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a user with figures, and a summary on its way to them
    user = sign_in()
    user.app.register(minutes=40)
    drain(user.app)
    user.app.settle()
    user.app.sync_now()
    request = taken(user, "summary")
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    assert json.loads(answer["body"])["activities"] == 1
    # When another user of the same organisation signs in before it arrives
    start_as(user, directory.person(user.org))
    before = user.app.summary_get()
    user.app.complete(answer)
    # Then the figures are not shown to them, and their own arrive
    assert user.app.summary_get() == before
    user.app.settle()
    figures = user.app.summary_get()["summary"]
    assert figures is not None
    assert figures["activities"] == 0


def test_coming_online_makes_the_memberships_cached_until_the_server_answers(
    sign_in: MakeUser,
) -> None:
    # Given memberships that the server has confirmed
    user = sign_in()
    app = user.app
    assert app.org_list()["freshness"] == "confirmed"
    # When the network goes and comes
    app.go_offline()
    app.go_online()
    # Then they are cached
    assert app.org_list()["freshness"] == "cached"
    request = taken(user, "guard")
    assert app.org_list()["freshness"] == "cached"
    # until the server answers
    answer: Any = {"id": request["id"], **user.phone.network(request)}
    app.complete(answer)
    assert app.org_list()["freshness"] == "confirmed"


def test_a_refresh_that_brings_another_user_s_tokens_is_refused(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a server that answers a refresh with the session of another user
    user = sign_in()
    other = directory.person(user.org)
    network = user.phone.network

    def exchange(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] != "refresh":
            return answer
        text = json.dumps(moved(user.phone, directory.session(other)))
        return {**answer, "body": text}  # type: ignore[return-value,typeddict-item]

    network.alter.append(exchange)
    before = user.app.session_status()
    user.phone.pass_time(TOKEN_S - 30)
    user.app.settle()
    assert network.count("refresh") == 1
    # Then the user stays, and the refresh stays owed
    after = user.app.session_status()
    assert after["user_id"] == before["user_id"] == user.person.id
    assert (after["generation"], after["expires_ms"]) == (
        before["generation"],
        before["expires_ms"],
    )
    assert "refresh" in after["owed"]
    assert user.app.of_type("session_ended") == []
    # and what is registered is sent as the user
    network.alter.remove(exchange)
    item = user.app.register()
    user.phone.pass_time(600)
    drain(user.app)
    assert user.app.session_status()["owed"] == []
    assert stored(directory, user.person) == [item]
    assert directory.activities(other) == []


@pytest.mark.parametrize("part", ["query", "fragment"])
def test_an_error_callback_ends_no_sign_in(
    phone: Phone, directory: DirectoryFixtures, part: str
) -> None:
    # Given a sign-in in the browser
    person = directory.person(directory.organisation())
    directory.control.sign_in_as(person.email)
    app = phone.start()
    begun = begin(app)
    right = browse(begun["url"])
    # When another app calls back with an error
    mark = "?" if part == "query" else "#"
    callback = f"app.example://signed-in{mark}error=access_denied&error_code=access_denied"
    # Then the user is told,
    assert app.sign_in_complete({"callback_url": callback})["reason"] == "sign_in_cancelled"
    # and the right callback still works
    finish(app, right)
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("what", ["refresh", "sign_in"])
def test_a_pause_of_the_auth_service_ends_with_a_logout(
    sign_in: MakeUser, directory: DirectoryFixtures, what: str
) -> None:
    # Given an auth service that asks for a pause of ten minutes
    user = sign_in()
    app = user.app
    busy = {"code": "over_request_rate_limit", "msg": "busy"}
    directory.control.respond("/auth/v1/token", 503, body=busy, retry_after_s=600)
    if what == "refresh":
        user.phone.pass_time(TOKEN_S - 30)
    else:
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    app.settle()
    assert directory.control.faults()[0]["hits"] == 1
    # When the user logs out and signs in with a password
    app.session_logout()
    app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    app.settle()
    # Then they are at home at once
    assert app.screen["screen"] == "home"


def test_a_pause_of_the_auth_service_ends_with_another_user_s_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given an auth service that asked for a pause of an hour when the token was refreshed
    user = sign_in()
    busy = {"code": "over_request_rate_limit", "msg": "busy"}
    directory.control.respond("/auth/v1/token", 503, body=busy, retry_after_s=7200)
    user.phone.pass_time(TOKEN_S - 30)
    user.app.settle()
    assert directory.control.faults()[0]["hits"] == 1
    # When another user signs in without a logout before, and that token is due
    other = directory.person(user.org)
    start_as(user, other)
    refreshes = user.phone.network.count("refresh")
    user.phone.pass_time(TOKEN_S - 30)
    user.app.settle()
    # Then it is refreshed at once
    assert user.phone.network.count("refresh") == refreshes + 1
    assert user.app.session_status()["owed"] == []
    assert user.app.session_status()["user_id"] == other.id


# The cache ----------------------------------------------------------------------------------------


def test_a_live_contact_that_moved_to_another_organisation_is_gone(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given a contact that moves to another organisation of the user before the answer
    user = sign_in()
    contact = directory.contact(user.org, "Prøve", phone="+47 000 00 002")
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")
    pull(user, after_s=60)
    asked = user.app.contact_get({"id": contact, "live": True})
    directory.control.sql("update contacts set org_id = %s where id = %s", second.id, contact)
    user.app.settle()
    # Then this organisation no longer shows it
    [event] = user.app.of_type("contact")
    assert event["request"] == asked["request"]
    assert (event["contact"], event["message"]["code"]) == (None, "contact_gone")


def test_a_clock_that_is_moved_back_does_not_put_the_reconcile_off(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given cached contacts
    user = sign_in()
    ids = [directory.contact(user.org, name) for name in ("Kari Prøve", "Ola Prøve")]
    pull(user, after_s=60)
    assert set(contact_data.cached(user.app)) == set(ids)
    # When the clock is moved back by ten hours, and a row is deleted without a mark
    user.phone.set_wall_clock(-10 * 3600)
    directory.control.sql("delete from contacts where id = %s", ids[0])
    # Then it goes with the next pull
    [event] = pull(user, after_s=60)
    assert event["removed"] == 1
    assert set(contact_data.cached(user.app)) == {ids[1]}


def test_the_cache_is_erased_when_the_user_changes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given the cached contacts of a user
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    assert contact_data.left_on_disk(user.phone.folder, blobs) == len(blobs) > 300
    # When another user signs in without a logout before
    person = directory.person(directory.organisation())
    user.app.session_start({"session": moved(user.phone, directory.session(person))})
    # Then nothing of it is on the disk
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0
    user.app.settle()
    assert user.app.contact_search({"query": ""})["total"] == 0


def test_the_cache_stays_when_the_same_user_signs_in_again(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    start_as(user, user.person)
    user.app.go_offline()
    assert contact_data.left_on_disk(user.phone.folder, blobs) >= 300
    assert user.app.contact_search({"query": ""})["total"] == 300


def test_other_columns_leave_no_bytes_of_the_rows_before(sign_in: MakeUser) -> None:
    # Given cached contacts
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    rows = attacker.rows(user.phone.folder / "cache.db", "SELECT sealed FROM contact")
    assert len(rows) == 300
    # When the next version of the app caches fewer columns
    contacts = {"table": "contacts", "columns": ["id", "org_id", "name", "updated_at"]}
    user.phone.config["backend"]["contacts"] = contacts
    user.restart()
    user.app.settle()
    # Then no byte of the rows with the others is on the disk
    [first, *_] = user.app.contact_search({"query": ""})["contacts"]
    assert set(first) <= {"id", "org_id", "name", "updated_at"}
    assert contact_data.left_on_disk(user.phone.folder, [row for (row,) in rows]) == 0
    assert contact_data.left_on_disk(user.phone.folder, blobs) < len(blobs)


def test_two_swapped_rows_of_the_cache_do_not_open(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given three cached contacts, of which two sealed rows are swapped while the app is closed
    user = sign_in()
    names = {directory.contact(user.org, name): name for name in ("Kari", "Ola", "Per")}
    pull(user, after_s=60)
    assert {one["name"] for one in user.app.contact_search({"query": ""})["contacts"]} == {
        "Kari",
        "Ola",
        "Per",
    }
    user.phone.close()
    path = user.phone.folder / "cache.db"
    tamper.swap(path, "contact", "sealed")
    # When the app starts
    app = user.restart(online=False)
    # Then no contact is shown with the content of another one
    shown = {one["id"]: one["name"] for one in app.contact_search({"query": ""})["contacts"]}
    assert len(shown) == 1
    assert shown.items() <= names.items()


@pytest.mark.parametrize("sends", ["asked", "everything"])
def test_CAC_2_no_withheld_column_is_on_the_disk(
    sign_in: MakeUser, directory: DirectoryFixtures, sends: str
) -> None:
    # Given a contact with withheld columns, and a server that may send them unasked
    user = sign_in()
    secret = {"phone": "+47 471 11 222", "address": "Kirkeveien 4711", "national_id": "01019912345"}
    contact = directory.contact(user.org, "Ragna Prøve", **secret)

    def everything(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] != "pull" or "status" not in answer:
            return answer
        rows = json.loads(answer["body"] or "null")
        if not isinstance(rows, list):
            return answer
        return {**answer, "body": json.dumps([{**row, **secret} for row in rows])}

    if sends == "everything":
        user.phone.network.alter.append(everything)
    pull(user, after_s=60)
    # When the app also reads it live
    user.app.contact_get({"id": contact, "live": True})
    user.app.settle()
    [event] = user.app.of_type("contact")
    assert event["contact"]["phone"] == secret["phone"]
    # Then whoever has the key finds the cached columns, and none of these
    key = user.phone.keychain.stored("session")
    for running in (True, False):
        if not running:
            user.phone.close()
        opened = attacker.decrypted(user.phone.folder, key)["contacts"]
        assert "Ragna Prøve".encode() in opened
        for value in secret.values():
            assert value.encode() not in opened
    # and they are in no file
    for path in user.phone.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [value for value in secret.values() if value.encode() in data]
