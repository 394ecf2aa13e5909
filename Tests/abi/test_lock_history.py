"""A lock and a logout hold against everything that was ever on the disk (LCK-1 to LCK-5, LCK-7).

The attacker has a copy of the data folder after every call, and the keys that are left in the key
store. The process is alive or killed: closing would empty the log.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from holdfast.keystore import KEY_FAILED, KEY_LOCKED

from support import children, damage, history, tamper
from support.directory_fixtures import DirectoryFixtures
from support.elsewhere import ENDS
from support.errors import error_of
from support.history import History
from support.phone import TOKEN_S, App, FilePhone
from support.screens import seen, why
from support.sizes import crossed, sampled
from support.users import MakePhone, MakeUser, SignedIn


def work(user: SignedIn, app: App) -> None:
    """An hour of a day: look, register, leave, return, refresh."""
    app.contact_search({"query": ""})
    app.register()
    app.session_background()
    user.phone.pass_time(60)
    app.session_foreground()
    user.phone.pass_time(TOKEN_S)
    app.settle()
    assert app.screen["screen"] == "home", app.screen


def day(user: SignedIn) -> History:
    """Work, a lock, an unlock, work; a restart, which empties the log into the main file; work."""
    past = History(user.app)
    work(user, user.app)
    user.app.session_lock()
    user.app.touch()
    user.app.settle()
    work(user, user.app)
    user.phone.close()
    past.copy()
    past.watch(user.restart())
    user.app.settle()
    work(user, user.app)
    return past


def file_user(user: SignedIn, folder: Path) -> SignedIn:
    """The same person on a phone with the built-in key store."""
    phone = FilePhone(folder, user.phone.library, user.phone.backend)
    app = phone.start()
    app.sign_in(user.person)
    return SignedIn(phone, app, user.person, user.org, user.role)


def assert_none_opens(user: SignedIn, everything: list[history.Files], folder: Path) -> None:
    """Put each of these in this folder, and start an app on it: nobody gets in."""
    for files in everything:
        history.put(folder, files)
        with history.start(user.phone, folder) as app:
            history.assert_closed(app, user.phone)


@pytest.fixture(params=["functions", "files"])
def user(request: pytest.FixtureRequest, sign_in: MakeUser, tmp_path: Path) -> SignedIn:
    """A user at home, with each kind of key store."""
    made = sign_in(contacts=2)
    if request.param == "functions":
        return made
    other = file_user(made, tmp_path / "files")
    request.addfinalizer(other.phone.close)
    return other


@pytest.mark.parametrize("end", sampled(ENDS, 2))
def test_LCK_1_no_copy_opens_with_the_keys_that_are_left(user: SignedIn, end: str) -> None:
    past = day(user)
    assert history.opened(past.copies[-1], history.keys_left(user.phone)) == ["wrap_session"]
    ENDS[end](user.app)
    left = history.keys_left(user.phone)
    assert len(left) == 1
    copies = [*past.copies, *past.prefixes()]
    assert len(copies) > 20
    assert [history.opened(files, left) for files in copies] == [[]] * len(copies)


@pytest.mark.parametrize(
    ("user", "end"),
    crossed(
        ["functions", "files"],
        ENDS,
        fast=lambda store, end: (store == "files") == (end == "session_logout"),
    ),
    indirect=["user"],
)
def test_LCK_1_no_copy_mixture_or_prefix_lets_anybody_in(
    user: SignedIn, end: str, tmp_path: Path
) -> None:
    past = day(user)
    ENDS[end](user.app)
    # Given the process killed: the copies, their mixtures, and their logs cut at a commit
    folder = tmp_path / "put"
    if "keystore" in user.phone.config:
        folder.mkdir(mode=0o700)
        shutil.copytree(user.phone.folder / "keys", folder / "keys")
        (folder / "keys" / "biometric.key").unlink(missing_ok=True)
    past.end()
    everything = [*past.copies, *past.mixtures(), *past.prefixes()]
    assert_none_opens(user, everything, folder)
    for files in everything:
        history.put_under(user.app, files)
        history.assert_closed(user.app, user.phone)


@pytest.mark.parametrize("copy", ["just before", "before the token was refreshed"])
@pytest.mark.parametrize("end", ENDS)
def test_LCK_1_no_older_copy_lets_in_a_handle_that_was_in_before(
    sign_in: MakeUser, end: str, copy: str
) -> None:
    user = sign_in(contacts=1)
    user.app.register()
    before = history.read(user.phone.folder)
    generation = user.app.session_status()["generation"]
    # The token is refreshed a minute before its end, so that the older copy is valid as well.
    user.app.wait(TOKEN_S - 30)
    assert user.app.session_status()["generation"] > generation
    with history.start(user.phone, user.phone.folder) as other:
        assert other.session_resume()["screen"] in {"home", "wait"}
        assert other.session_status()["state"] == "active"
        if copy == "just before":
            before = history.read(user.phone.folder)
        ENDS[end](user.app)
        history.put(user.phone.folder, before)
        history.assert_closed(other, user.phone)


@pytest.mark.parametrize("first", ["session_resume", "session_background"])
@pytest.mark.parametrize("end", ENDS)
def test_LCK_1_a_key_store_that_does_not_answer_lets_nobody_in(
    sign_in: MakeUser, end: str, first: str
) -> None:
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    before = history.read(user.phone.folder)
    with history.start(user.phone, user.phone.folder) as other:
        assert other.session_resume()["screen"] in {"home", "wait"}
        ENDS[end](user.app)
        history.put(user.phone.folder, before)
        user.phone.keychain.answer("load", "session", KEY_FAILED)
        shown = getattr(other, first)()
        assert shown["screen"] not in {"home", "select_org"}
        user.phone.keychain.forget_script()
        other.session_foreground()
        history.assert_closed(other, user.phone)


@pytest.mark.parametrize("end", ENDS)
def test_LCK_1_a_handle_that_only_polls_hands_out_no_token_after_the_lock(
    sign_in: MakeUser, end: str
) -> None:
    user = sign_in()
    with history.start(user.phone, user.phone.folder) as other:
        other.session_resume()
        user.offline().register()
        before = history.read(user.phone.folder)
        ENDS[end](user.app)
        history.put(user.phone.folder, before)
        assert set(history.bearers(other, user.phone.backend.anon_key)) <= {"revoke"}


def test_LCK_1_a_lock_holds_without_biometrics(sign_in: MakeUser, tmp_path: Path) -> None:
    user = sign_in(policy={"biometric": "off"})
    past = History(user.app)
    user.app.register()
    screen = user.app.session_lock()
    assert seen(screen) == ("sign_in", "biometric_off")
    past.end()
    assert_none_opens(user, [*past.copies, *past.prefixes()], tmp_path / "put")
    user.app.sign_in(user.person)
    assert user.app.screen["screen"] == "home"


def test_LCK_1_the_file_store_overwrites_the_session_key(sign_in: MakeUser, tmp_path: Path) -> None:
    user = file_user(sign_in(), tmp_path / "files")
    key = user.phone.folder / "keys" / "session.key"
    os.link(key, tmp_path / "link")
    assert any((tmp_path / "link").read_bytes())
    user.app.session_lock()
    assert not key.exists()
    assert not any((tmp_path / "link").read_bytes())
    user.app.touch()
    with key.open("rb") as second:
        user.app.sign_in(user.person)
        assert not any(second.read()), "a new key replaces an overwritten one"
    user.phone.close()


# LCK-2: crashes, and a silent key store --------------------------------------------------------

OPERATIONS = {
    "session_lock": "{}",
    "session_lock+session_unlock": "{}",
    "session_logout": '{"unsent":"keep"}',
}
POINTS = ["load session", "save session", "erase session", "erase biometric", "load biometric"]


#: In `make test` a process dies at every sixth file change of one operation.
DEATHS = [
    ("session_lock", 6),
    *(pytest.param(each, 1, marks=pytest.mark.slow) for each in OPERATIONS),
]


@pytest.mark.parametrize(("operations", "stride"), DEATHS)
def test_LCK_2_a_process_that_dies_at_any_step_leaves_a_lock(
    sign_in: MakeUser, killer: Path, operations: str, stride: int
) -> None:
    user = sign_in()
    past = History(user.app)
    user.app.register()
    user.phone.close()
    kept = {path: path.read_bytes() for path in user.phone.folder.iterdir() if path.is_file()}
    keys = user.phone.keychain.path.read_bytes()
    died = 0
    for point in [*POINTS, *map(str, range(1, 40, stride))]:
        for path in user.phone.folder.iterdir():
            path.unlink()
        for path, content in kept.items():
            path.write_bytes(content)
        user.phone.keychain.path.write_bytes(keys)
        ended = children.run(
            "die_during.py",
            user.phone.spec(),
            operations,
            OPERATIONS[operations],
            point,
            env={"LD_PRELOAD": str(killer)},
        )
        died += ended.killed
        if not ended.killed:
            ended.check()
            if point.isdigit():
                break
        with history.start(user.phone, user.phone.folder) as app:
            screen = app.session_resume()["screen"]
            if screen == "home":
                assert "session" in user.phone.keychain.names(), point
            else:
                history.assert_closed(app, user.phone)
            app.session_lock()
            history.assert_closed(app, user.phone)
        assert history.opened(past.copies[0], history.keys_left(user.phone)) == []
    assert died > (3 if stride == 1 else 1), "the operation was not interrupted"


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("answer", [KEY_FAILED, KEY_LOCKED])
def test_LCK_2_an_erasure_that_the_key_store_owes_is_asked_for_again(
    sign_in: MakeUser, end: str, answer: int
) -> None:
    user = sign_in(contacts=1)
    user.phone.keychain.answer("erase", "session", answer, answer)
    ENDS[end](user.app)
    assert user.app.screen["screen"] == ("unlock" if end == "session_lock" else "sign_in")
    assert [banner["code"] for banner in user.app.screen["banners"]] == ["erasure_owed"]
    assert tamper.read(user.phone.folder, "wrap_session") is None
    assert "session" in user.phone.keychain.names()
    user.phone.keychain.answer("erase", "session", answer)
    assert "erase" in user.app.session_status()["owed"]
    assert user.app.session_status()["owed"] in ([], ["revoke"])
    assert "session" not in user.phone.keychain.names()
    assert set(history.refused(user.app)) <= {"session.locked", "session.none"}


def test_LCK_2_an_owed_erasure_outlives_the_process(sign_in: MakeUser) -> None:
    user = sign_in()
    user.phone.keychain.answer("erase", "session", *[KEY_FAILED] * 2)
    user.app.session_lock()
    app = user.restart()
    assert app.screen["screen"] == "unlock"
    assert "session" not in user.phone.keychain.names()
    app.touch()
    assert "session" in user.phone.keychain.names()
    app.session_status()
    assert "session" in user.phone.keychain.names(), "a paid debt erased the next key"


def test_LCK_2_an_owed_erasure_outlives_a_damaged_file(sign_in: MakeUser) -> None:
    user = sign_in()
    user.phone.keychain.answer("erase", "session", *[KEY_FAILED] * 99)
    user.app.session_lock()
    user.phone.close()
    damage.destroy_header(user.phone.folder)
    user.phone.keychain.forget_script()
    app = user.restart()
    app.settle()
    assert app.screen["screen"] == "unlock"
    assert "session" not in user.phone.keychain.names()


# LCK-3: the file is not trusted ----------------------------------------------------------------

PLANTS = {
    "a trigger": "CREATE TRIGGER t AFTER UPDATE ON session BEGIN UPDATE session SET "
    "wrap_session = OLD.wrap_session, locked = 0; END",
    "a view": "CREATE VIEW v AS SELECT * FROM session",
    "an index": "CREATE INDEX i ON queue(created_ms)",
    "a column": "ALTER TABLE session ADD COLUMN more",
    "a table": "CREATE TABLE more(x)",
    "a missing index": "DROP INDEX queue_held",
}


@pytest.mark.parametrize("plant", PLANTS)
def test_LCK_3_a_planted_schema_is_damage(sign_in: MakeUser, plant: str) -> None:
    user = sign_in()
    queued = user.offline().register()
    user.phone.close()
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        database.execute(PLANTS[plant])
    app = user.restart(online=False)
    assert app.opened["recovered"]
    assert [item["id"] for item in app.queue_list()["items"]] == [queued]
    app.session_lock()
    history.assert_closed(app, user.phone)
    user.phone.close()
    assert user.restart(online=False).screen["screen"] == "unlock"


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize("table", ["session", "notice", "revocation", "queue"])
def test_LCK_3_a_column_planted_under_an_open_app_costs_nobody_the_session(
    sign_in: MakeUser, table: str, locked: bool
) -> None:
    user = sign_in()
    app = user.offline()
    queued = app.register()
    path = user.phone.folder / "holdfast.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(f"ALTER TABLE {table} ADD COLUMN more")
        database.execute(f"ALTER TABLE {table} ADD COLUMN evil BLOB DEFAULT x'00'")
        database.execute(PLANTS["a trigger"])
    if locked:
        app.session_lock()
    else:
        app.session_background()
        app.session_foreground()
        app.register()
    app.settle()
    told = app.of_type("storage_recovered")
    user.phone.close()
    app = user.restart(online=False)
    assert told or app.opened["recovered"]
    if locked:
        assert app.screen["screen"] == "unlock"
        app.touch()
    assert app.screen["screen"] == "home"
    [event] = told or app.of_type("storage_recovered") or [*app.settle()][:1]
    assert event["session"] is True
    assert queued in [item["id"] for item in app.queue_list()["items"]]
    with contextlib.closing(sqlite3.connect(path)) as database:
        [(planted,)] = database.execute(
            "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' OR sql LIKE '%evil%'"
        )
    assert planted == 0
    app.session_lock()
    history.assert_closed(app, user.phone)


def test_LCK_3_a_trigger_planted_under_an_open_app_does_not_undo_a_lock(sign_in: MakeUser) -> None:
    user = sign_in()
    path = user.phone.folder / "holdfast.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(PLANTS["a trigger"])
        user.app.session_lock()
    assert tamper.read(user.phone.folder, "wrap_session") is None
    history.assert_closed(user.app, user.phone)


def test_LCK_3_a_changed_schema_of_the_cache_is_damage(sign_in: MakeUser) -> None:
    user = sign_in(contacts=2)
    user.phone.close()
    with contextlib.closing(sqlite3.connect(user.phone.folder / "cache.db")) as database:
        database.execute("CREATE TRIGGER t AFTER DELETE ON contact BEGIN SELECT 1; END")
    app = user.restart()
    assert app.contact_search({"query": ""})["total"] == 0
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 2


def test_LCK_3_a_contact_that_was_moved_to_another_organisation_does_not_open(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(contacts=2), directory.organisation(contacts=3)
    phone, person = phones(), directory.person(first, second)
    app = phone.start()
    app.sign_in(person, first)
    assert app.contact_search({"query": ""})["total"] == 2
    app.org_select({"org_id": second.id})
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 3
    phone.close()
    with contextlib.closing(sqlite3.connect(phone.folder / "cache.db")) as database, database:
        orgs = [row[0] for row in database.execute("SELECT DISTINCT org FROM contact")]
        for one, other in (orgs, orgs[::-1]):
            database.execute("UPDATE OR IGNORE contact SET org = ? WHERE org = ?", (one, other))
            break
    app = phone.start(online=False)
    assert app.contact_search({"query": ""})["total"] in (0, 3)


def test_LCK_3_a_link_in_place_of_the_file_is_refused(sign_in: MakeUser, tmp_path: Path) -> None:
    user = sign_in()
    user.phone.close()
    moved = tmp_path / "moved.db"
    (user.phone.folder / "holdfast.db").rename(moved)
    (user.phone.folder / "holdfast.db").symlink_to(moved)
    before = moved.read_bytes()
    assert error_of(user.phone.open).code == "storage.not_private"
    assert moved.read_bytes() == before


# LCK-4: files that were set aside --------------------------------------------------------------


@pytest.mark.parametrize("end", ENDS)
def test_LCK_4_a_file_that_was_set_aside_opens_nothing(sign_in: MakeUser, end: str) -> None:
    user = sign_in()
    user.phone.close()
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        database.execute(PLANTS["a table"])
    app = user.restart()
    assert app.screen["screen"] == "home"
    [aside] = user.phone.folder.glob("holdfast.db.damaged-*[0-9]")
    ENDS[end](app)
    user.phone.close()
    with contextlib.closing(sqlite3.connect(aside)) as database:
        database.execute("DROP TABLE more")
    assert_none_opens(user, [{"holdfast.db": aside.read_bytes()}], user.phone.folder)


# LCK-5: nobody is in by default ----------------------------------------------------------------


def test_LCK_5_a_new_handle_shows_nothing_before_somebody_came(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=2)
    queued = user.offline().register()
    user.phone.network.up = True
    app = user.phone.open()
    assert set(history.refused(app)) == {"session.locked"}
    status = app.session_status()
    assert (status["state"], status["user_id"]) == ("locked", None)
    assert app.route_check({"route": "/mentor"})["allow"] is False
    app.settle()
    assert [str(row["id"]) for row in directory.activities(user.person)] == [queued]
    assert app.of_type("screen") == []
    assert set(history.refused(app)) == {"session.locked"}
    assert app.session_resume()["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 2


@pytest.mark.parametrize("arrival", ["session_foreground", "session_unlock"])
def test_LCK_5_a_return_or_an_unlock_lets_in(sign_in: MakeUser, arrival: str) -> None:
    user = sign_in()
    if arrival == "session_unlock":
        user.app.session_lock()
    app = user.phone.open()
    screen = app.touch() if arrival == "session_unlock" else app.session_foreground()
    assert screen["screen"] == "home"
    assert app.queue_list()["items"] == []


def test_LCK_5_a_wait_before_anybody_came_ends_and_lets_nobody_in(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = phones()
    person = directory.person(directory.organisation())
    first = phone.start()
    first.session_adopt({"session": directory.session(person)})
    phone.app = None  # stays open
    second = phone.open()
    assert why(second.session_background()) == "guard_pending"
    first.session_lock()
    second.settle()
    [event] = second.of_type("screen")
    assert event["screen"]["screen"] == "unlock"
    assert set(history.refused(second)) == {"session.locked"}
    first.close()


def test_LCK_5_the_window_counts_for_a_handle_that_nobody_resumed(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": 600})
    user.phone.pass_time(601)
    app = user.phone.open()
    assert set(history.refused(app)) == {"session.locked"}
    assert app.route_check({"route": "/mentor"})["screen"]["screen"] == "unlock"


def test_LCK_5_a_second_report_of_the_background_does_not_restart_the_time(
    sign_in: MakeUser,
) -> None:
    user = sign_in()
    user.app.session_background()
    user.phone.pass_time(200)
    app = user.phone.open()
    app.session_background()
    user.phone.pass_time(200)
    assert why(app.session_foreground()) == "background_timeout"


# The background --------------------------------------------------------------------------------


def test_LCK_1_at_once_leaves_a_locked_folder_in_the_background(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    past = History(user.app)
    user.app.register()
    user.app.session_background()
    # Then the session key is gone: whoever kills the process has a locked folder
    assert user.phone.keychain.names() == {"device", "biometric"}
    past.end()
    assert_none_opens(user, [*past.copies, *past.prefixes()], tmp_path / "put")
    user.app.wait(100)
    assert user.app.session_foreground()["screen"] == "home"
    assert user.app.contact_search({"query": ""})["total"] == 1
    assert user.phone.keychain.names() == {"device", "biometric", "session"}
    assert user.restart().screen["screen"] == "home"


def test_LCK_1_at_once_survives_a_refresh_and_a_silent_key_store(sign_in: MakeUser) -> None:
    user = sign_in(policy={"lock_on_background": "at_once", "background_timeout_s": 2 * TOKEN_S})
    user.app.session_background()
    user.app.wait(TOKEN_S)
    assert user.phone.network.count("refresh") == 1
    user.phone.keychain.answer("save", "session", KEY_FAILED)
    assert user.app.session_foreground()["screen"] == "home"
    user.app.queue_list()
    assert "session" in user.phone.keychain.names()
    assert user.restart().screen["screen"] == "home"


@pytest.mark.parametrize("arrival", ["session_resume", "session_foreground"])
@pytest.mark.parametrize("biometric", ["off", "preferred", "required"])
def test_LCK_1_at_once_asks_who_has_no_biometric_key_for_a_sign_in_and_loses_no_session(
    phones: MakePhone, directory: DirectoryFixtures, biometric: str, arrival: str
) -> None:
    # Given a member of two organisations without a biometric key, who leaves the app
    first, second = directory.organisation(contacts=1), directory.organisation()
    person = directory.person(first, second)
    phone = phones(policy={"lock_on_background": "at_once", "biometric": biometric})
    phone.keychain.enrolled = False
    app = phone.start()
    assert app.sign_in(person, first)["screen"] == "home"
    app.session_background()
    # Then the only key that opens the session stays, and a worker may use nothing
    assert "session" in phone.keychain.names()
    with history.start(phone, phone.folder) as worker:
        assert set(history.refused(worker)) == {"session.locked"}
        assert set(history.bearers(worker, phone.backend.anon_key)) == set()
    # When the process is killed, and another one begins
    app = phone.open()
    screen = getattr(app, arrival)()
    # Then a sign-in lets its user in, and nothing else
    reason = "biometric_off" if biometric == "off" else "biometric_not_enrolled"
    for _ in range(2):
        assert seen(screen) == ("sign_in", reason)
        assert set(history.refused(app)) == {"session.locked"}
        app.settle()
        app.session_background()
        screen = app.session_foreground()
    # And what they had chosen is there
    assert app.sign_in(person)["screen"] == "home"
    assert app.screen["org"] is not None
    assert app.screen["org"]["id"] == first.id


@pytest.mark.parametrize("biometric", ["off", "preferred"])
def test_LCK_1_at_once_goes_on_in_the_process_that_left_and_in_no_other(
    phones: MakePhone, directory: DirectoryFixtures, biometric: str
) -> None:
    # Given two processes in which a user without a biometric key is in
    phone = phones(policy={"lock_on_background": "at_once", "biometric": biometric})
    phone.keychain.enrolled = False
    app = phone.start()
    app.sign_in(directory.person(directory.organisation()))
    with history.start(phone, phone.folder) as other:
        assert other.session_resume()["screen"] == "home"
        # When the app leaves the screen
        app.session_background()
        # Then it sends what is queued, and the other one is out until it is back
        assert app.session_status()["state"] == "active"
        assert set(history.refused(other)) == {"session.locked"}
        assert app.session_foreground()["screen"] == "home"
        assert other.session_foreground()["screen"] == "home"


def test_LCK_1_after_the_timeout_a_background_process_can_still_open(sign_in: MakeUser) -> None:
    user = sign_in()
    user.app.session_background()
    assert "session" in user.phone.keychain.names()
    assert user.restart().screen["screen"] == "home"
