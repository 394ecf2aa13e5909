"""A key store that has no key for the files, for a while or for good (FIX-6, SES-11).

"Not found" is no proof: an iPhone before its first unlock says so, and a keychain that is being
restored. Nothing on the disk changes and no key is overwritten, until the user signs in and the
store saves a key of another name.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from holdfast.keystore import KEY_FAILED, KEY_NOT_FOUND

from support import damage, tamper
from support import sign_in as browser
from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.errors import error_of
from support.loop import Host
from support.missing import ALWAYS, NAMES, NEXT, WAIT, aside, lose, until_lost
from support.own_rows import tables
from support.phone import App, FilePhone, Phone
from support.queue import add, stored
from support.screens import shown, why
from support.users import MakePhone, MakeUser, SignedIn


def lose_all(phone: Phone, how: str) -> None:
    """The same as `lose`, and `other_key`: the key of another installation is there."""
    if how == "other_key":
        phone.keychain.real = phone.keychain.stored("device")  # type: ignore[attr-defined]
        phone.keychain.replace("device", bytes(range(32)))
    else:
        lose(phone, how)


def bring_back(phone: Phone) -> None:
    """The keys are there again."""
    phone.keychain.forget_script()
    if hasattr(phone.keychain, "real"):
        phone.keychain.replace("device", phone.keychain.real)


def with_item(user: SignedIn) -> str:
    """The user's item that is not sent yet; the app is closed."""
    item = add(user.offline())
    user.phone.close()
    user.phone.network.up = True
    return item


LOSSES = ["not_found", "not_found_dead", "invalidated", "invalidated_dead", "other_key"]


@pytest.mark.parametrize("how", LOSSES)
@pytest.mark.parametrize("when", ["waiting", "lost", "next_start"])
def test_FIX_6_keys_that_are_missing_for_a_while_cost_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, how: str, when: str
) -> None:
    user = sign_in(contacts=1)
    phone = user.phone
    item = with_item(user)
    tokens = tamper.stored(phone.folder)
    lose_all(phone, how)
    keys = phone.keychain.path.read_bytes()
    app = user.restart(online=False)
    assert shown(app) == WAIT
    if when != "waiting":
        until_lost(app)
        app.session_resume()
        app.session_foreground()
        assert error_of(app.queue_list).code == "keystore.key_lost"
    assert aside(phone) == []
    assert phone.keychain.path.read_bytes() == keys
    assert tamper.stored(phone.folder) == tokens
    bring_back(phone)
    if when == "next_start":
        app = user.restart(online=False)
    else:
        app.settle_until("screen", within_s=30)
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 1
    app.reconnect()
    assert stored(directory, user.person) == [item]
    assert app.of_type("storage_recovered") == []


def test_FIX_6_a_locked_session_is_unlocked_when_its_keys_are_back(user: SignedIn) -> None:
    user.app.session_lock()
    user.phone.close()
    lose(user.phone, "not_found_dead")
    app = user.restart()
    until_lost(app)
    bring_back(user.phone)
    app.settle_until("screen", within_s=30)
    assert app.screen["screen"] == "unlock"
    assert app.touch()["screen"] == "home"


def attempts(user: SignedIn) -> list[tuple[str, Any]]:
    """Each way to begin a sign-in."""
    person = user.person
    return [
        ("sign_in_begin", {"method": "bankid"}),
        ("sign_in_complete", {"email": person.email, "password": PASSWORD}),
        ("session_adopt", {"session": user.phone.session(person)}),
    ]


@pytest.mark.parametrize("store", ["saves nothing", "forgets"])
def test_FIX_6_no_sign_in_begins_anew_on_a_store_that_keeps_nothing(
    user: SignedIn, directory: DirectoryFixtures, store: str
) -> None:
    """One that forgets answers OK to a save, and has nothing afterwards."""
    phone = user.phone
    item = with_item(user)
    if store == "forgets":
        for name in NAMES + NEXT:
            phone.keychain.answer("load", name, *[KEY_NOT_FOUND] * ALWAYS)
    else:
        lose(phone, "not_found_dead")
    keys = phone.keychain.path.read_bytes()
    app = user.restart()
    for is_lost in (False, True) if store == "saves nothing" else (True,):
        if is_lost:
            until_lost(app)
        for name, request in attempts(user):
            if is_lost and name != "session_adopt":
                # Nothing is saved before the server has taken a proof.
                app.raw(name, request)
                app.settle()
                assert app.screen["screen"] == "sign_in"
                continue
            error = error_of(app.raw, name, request)
            assert (error.code, error.retryable) == ("keystore.failed", True), name
    assert aside(phone) == []
    assert (phone.keychain.path.read_bytes() == keys) or store == "forgets"
    bring_back(phone)
    app.session_resume()
    app.reconnect()
    assert shown(app) == ("home", None)
    assert stored(directory, user.person) == [item]


def enter(app: App, how: str, person: Person) -> None:
    """Sign in in this way."""
    match how:
        case "session_adopt":
            app.sign_in(person)
        case "password":
            app.sign_in_complete({"email": person.email, "password": PASSWORD})
            app.settle()
        case "browser":
            app.phone.directory.control.sign_in_as(person.email)
            browser.finish(app, browser.browse(browser.begin(app)["url"]))


@pytest.mark.parametrize("how", ["session_adopt", "password", "browser"])
@pytest.mark.parametrize("loss", ["not_found", "invalidated", "other_key"])
def test_FIX_6_a_sign_in_begins_anew_and_keeps_the_old_file_and_its_key(
    sign_in: MakeUser, directory: DirectoryFixtures, how: str, loss: str
) -> None:
    user = sign_in(contacts=1)
    phone = user.phone
    item = with_item(user)
    lose_all(phone, loss)
    device = phone.keychain.stored("device")
    app = user.restart()
    until_lost(app)
    enter(app, how, user.person)
    assert app.screen["screen"] == "home"
    assert len(aside(phone)) == 1
    assert phone.keychain.stored("device") == device
    assert phone.keychain.names() == {*NAMES, "device_b"}
    [event] = app.of_type("storage_recovered")
    assert (event["unreadable"], event["reason"]) == (True, "storage_key_lost")
    assert [event["file"]] == aside(phone)
    app.contact_search({"query": ""})
    assert shown(user.restart()) == ("home", None)
    user.app.settle()
    assert stored(directory, user.person) == []
    phone.close()
    bring_back(phone)
    app = user.restart()
    app.settle()
    assert shown(app) == ("home", None)
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("how", ["begun", "refused", "offline"])
@pytest.mark.parametrize("is_locked", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
def test_FIX_6_a_sign_in_that_proves_nothing_costs_neither_session_nor_items(
    user: SignedIn, directory: DirectoryFixtures, how: str, *, is_locked: bool, restarts: bool
) -> None:
    item = with_item(user)
    if is_locked:
        user.restart(online=False).session_lock()
        user.phone.close()
        user.phone.network.up = True
    lose(user.phone, "not_found")
    app = user.restart()
    until_lost(app)
    match how:
        case "begun":
            app.sign_in_begin({"method": "bankid"})
        case "refused":
            app.sign_in_complete({"email": user.person.email, "password": "wrong"})
            app.settle()
            assert why(app.screen) == "sign_in_failed"
        case _:
            user.phone.network.up = False
            app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
            app.settle()
            user.phone.network.up = True
    assert aside(user.phone) == []
    assert "device_b" not in user.phone.keychain.names()
    if restarts:
        user.phone.close()
    bring_back(user.phone)
    if restarts:
        app = user.restart()
    else:
        app.settle_until("screen", within_s=30)
    if is_locked:
        assert app.screen["screen"] == "unlock"
        app.touch()
    app.reconnect()
    assert shown(app) == ("home", None)
    assert stored(directory, user.person) == [item]


def test_FIX_6_a_new_key_has_its_proof_although_the_session_is_not_stored(user: SignedIn) -> None:
    lose(user.phone, "not_found")
    app = user.restart()
    until_lost(app)
    user.phone.keychain.answer("save", "session", KEY_FAILED)
    session = {"session": user.phone.session(user.person)}
    assert error_of(app.session_adopt, session).code == "keystore.failed"
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        find = "SELECT count(*) FROM meta WHERE name = 'key_check'"
        assert database.execute(find).fetchone() == (1,)
    app.session_adopt(session)
    app.settle()
    assert shown(user.restart()) == ("home", None)


def test_FIX_6_a_callback_begins_nothing(user: SignedIn) -> None:
    """Any app can send one; without a sign-in that was begun it proves nothing."""
    with_item(user)
    lose(user.phone, "not_found")
    app = user.restart()
    until_lost(app)
    assert (
        error_of(app.sign_in_complete, {"callback_url": "app.example://signed-in?code=1"}).code
        == "sign_in.state_mismatch"
    )
    assert aside(user.phone) == []


def test_FIX_6_each_loss_has_a_key_and_a_file_of_its_own(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    phone = user.phone
    items = []
    for name in ("device", "device_b"):
        items.append(with_item(user))
        phone.keychain.answer("load", name, *[KEY_NOT_FOUND] * ALWAYS)
        app = user.restart()
        until_lost(app)
        app.sign_in(user.person)
        assert app.screen["screen"] == "home"
    keys = {name: phone.keychain.stored(name) for name in ("device", "device_b", "device_c")}
    assert len(set(keys.values())) == 3
    assert len(aside(phone)) == 2
    phone.keychain.forget_script()
    app = user.restart()
    app.settle()
    assert stored(directory, user.person) == sorted(items)
    assert {name: phone.keychain.stored(name) for name in keys} == keys
    # They come back once: what was cancelled or sent afterwards stays so
    app = user.restart()
    assert app.queue_list()["items"] == []


def corrected_twice(
    user: SignedIn, directory: DirectoryFixtures, older: dict[str, Any], theirs: str | None = None
) -> App:
    """An app whose user corrects a row with `older`, and without that correction's key once more.

    Then the key is back. `theirs`: others write this note in between.
    """
    item = add(user.app, minutes=30, note="first")
    user.app.settle()
    user.offline().queue_edit({"id": item, "payload": older})
    user.phone.close()
    user.phone.network.up = True
    lose(user.phone)
    if theirs is not None:
        directory.control.sql("update activities set note = %s where id = %s", theirs, item)
    app = user.restart()
    until_lost(app)
    app.sign_in(user.person)
    app.settle()
    app.go_offline()
    app.queue_edit({"id": item, "payload": {"minutes": 90}})
    user.phone.close()
    bring_back(user.phone)
    user.phone.network.up = True
    app = user.restart()
    app.settle()
    return app


@pytest.mark.parametrize("columns", ["apart", "the same"])
def test_COR_4_corrections_of_a_row_before_and_after_a_lost_key_are_both_made(
    sign_in: MakeUser, directory: DirectoryFixtures, columns: str
) -> None:
    # Given a change in a file whose key was lost, and a later one of the same row; the key is back
    user = sign_in(tables=tables(change={}))
    older: dict[str, Any] = {"note": "older"} if columns == "apart" else {"minutes": 60}
    app = corrected_twice(user, directory, older)
    # Then the row has both, and of one column the later value
    [row] = directory.activities(user.person)
    assert (row["minutes"], row["note"]) == (90, "older" if columns == "apart" else "first")
    assert not app.of_type("item_parked")


def test_COR_6_a_correction_from_before_a_lost_key_overwrites_nobody(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    # Given the same, and others who change what only the older correction changes
    user = sign_in(tables=tables(change={}))
    app = corrected_twice(user, directory, {"note": "older"}, theirs="theirs")
    # Then the user chooses
    [shown] = app.item_list({"kind": "activity"})["items"]
    assert shown["conflict"] is not None
    assert shown["conflict"]["columns"] == [
        {"name": "note", "base": "first", "theirs": "theirs", "mine": "older"}
    ]
    [row] = directory.activities(user.person)
    assert row["note"] == "theirs"


def test_FIX_6_a_damaged_file_is_opened_with_the_key_of_its_name(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.close()
    lose(user.phone, "not_found")
    app = user.restart()
    until_lost(app)
    app.sign_in(user.person)
    app.go_offline()
    item = add(app)
    user.phone.close()
    user.phone.network.up = True
    damage.destroy_header(user.phone.folder)
    app = user.restart()
    assert app.screen["screen"] == "home"
    app.settle()
    assert stored(directory, user.person) == [item]
    assert user.phone.keychain.names() == {*NAMES, "device_b"}


def damaged_without_its_key(user: SignedIn) -> tuple[App, str]:
    """The user's app on a damaged file whose key counts as lost, and the item in that file."""
    item = with_item(user)
    damage.destroy_header(user.phone.folder)
    lose(user.phone, "not_found")
    app = user.restart()
    until_lost(app)
    return app, item


def test_FIX_6_a_damaged_file_waits_for_its_key(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    keys = user.phone.keychain.path.read_bytes()
    app, item = damaged_without_its_key(user)
    assert user.phone.keychain.path.read_bytes() == keys
    bring_back(user.phone)
    app.settle_until("screen", within_s=30)
    assert app.screen["screen"] == "home"
    app.settle()
    assert stored(directory, user.person) == [item]


def test_FIX_6_a_damaged_file_that_waits_for_a_lost_key_costs_no_sign_in(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    # Given a backup whose files do not match, and whose keys did not come with it
    app, item = damaged_without_its_key(user)
    # When its user signs in
    app.sign_in(user.person)
    app.settle()
    # Then they are in
    assert app.screen["screen"] == "home"
    assert not [one for one in user.phone.network.sent if one["purpose"] == "revoke"]
    # When the key is back
    bring_back(user.phone)
    app = user.restart()
    app.settle()
    # Then the item is sent
    assert stored(directory, user.person) == [item]


@pytest.mark.parametrize("restarts", [False, True])
def test_LCK_5_a_key_that_comes_back_in_the_background_lets_nobody_in(
    user: SignedIn, restarts: bool
) -> None:
    # Given a start that waits for the key store, and an app that leaves the screen meanwhile
    user.phone.close()
    lose(user.phone)
    app = user.restart()
    assert shown(app) == WAIT
    app.session_background()
    # When the key is back, and its user comes too late
    bring_back(user.phone)
    app.settle_until("screen", within_s=30)
    assert error_of(app.queue_list).code == "session.locked"
    user.phone.pass_time(360)
    if restarts:
        app = user.restart()
    else:
        app.session_foreground()
    # Then the session is locked
    assert app.screen["screen"] == "unlock"


def test_FIX_6_two_handles_begin_anew_together(user: SignedIn) -> None:
    phone = user.phone
    with_item(user)
    lose(phone, "not_found")
    first = user.restart()
    with Host(phone.config, phone.keychain, library=phone.library) as second:
        clock: Any = {"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms}
        second.clock_set(clock)
        assert why(second.session_resume()) == "keystore_failed"
        until_lost(first)
        clock = {"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms}
        second.clock_set(clock)
        assert why(second.session_resume()) == "key_lost"
        second.session_adopt({"session": phone.session(user.person)})
        device = phone.keychain.stored("device_b")
        first.sign_in(user.person)
        assert first.screen["screen"] == "home"
        assert phone.keychain.stored("device_b") == device
        assert len(aside(phone)) == 1


def test_FIX_6_key_files_that_are_missing_for_a_while_cost_nothing(
    tmp_path: Path, phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """The built-in store, whose folder is on a volume that is mounted later."""
    made = phones()
    person = directory.person(directory.organisation())
    phone = FilePhone(tmp_path / "kiosk", made.library, made.backend, policy={"biometric": "off"})
    app = phone.start()
    app.sign_in(person)
    phone.close()
    (phone.folder / "keys").rename(phone.folder / "elsewhere")
    app = phone.start()
    until_lost(app)
    assert not (phone.folder / "keys").exists()
    (phone.folder / "elsewhere").rename(phone.folder / "keys")
    app.settle_until("screen", within_s=30)
    assert shown(app) == ("home", None)
    phone.close()
