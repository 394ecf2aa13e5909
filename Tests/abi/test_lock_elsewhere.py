"""A handle that was in is out after another one locked or logged out (LCK-1, LCK-5).

Older files stand in place of the folder's own at the handle's next call, so that it cannot read
from them what has happened: the key store alone can tell.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED, KEY_OK
from patience import patience, until_asleep

from support import children, history, tamper
from support.directory_fixtures import DirectoryFixtures
from support.elsewhere import ENDS, FIRST, child, ended_by_another_process, holder, said, tell
from support.errors import error_of
from support.phone import TOKEN_S, App
from support.sizes import crossed
from support.users import MakePhone, MakeUser, SignedIn
from support.waking import another, readable

ERASE = ("erase", "session")
#: How the host waits, and what it calls first, for each end that is fast.
FAST = [
    ("session_lock", "session_resume", "in the library"),
    ("session_logout", "session_foreground", "at the descriptor"),
    ("session_lock", "poll", "not at all"),
    ("session_logout", "session_status", "in the library"),
]


@pytest.mark.parametrize(
    ("end", "first", "waits"),
    crossed(
        ENDS,
        FIRST,
        ["in the library", "at the descriptor", "not at all"],
        fast=lambda *case: case in FAST,
    ),
)
def test_LCK_1_a_lock_by_another_process_closes_a_handle(
    sign_in: MakeUser, end: str, first: str, waits: str
) -> None:
    # Given a handle in which the user is in
    user = sign_in(contacts=1)
    user.app.register()
    if waits == "in the library":
        user.app.next(1)
    elif waits == "at the descriptor":
        user.app.wake_fd()
    user.app.session_status()
    before = history.read(user.phone.folder)
    # When another process ends the session, and the files are older ones when the handle looks
    with ended_by_another_process(user, end):
        history.put(user.phone.folder, before)
        FIRST[first](user.app)
        # Then
        history.assert_closed(user.app, user.phone)


@pytest.mark.slow
def test_LCK_1_a_host_that_waits_alone_is_woken_by_the_lock_of_a_newcomer(
    sign_in: MakeUser,
) -> None:
    # Given a handle without a network whose host waits, and no other process on the folder
    user = sign_in(contacts=1)
    user.app.go_offline()
    user.app.settle()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(user.app.next, int(120_000 * children.PATIENCE))
        # When a process opens the folder and locks
        with ended_by_another_process(user, "session_lock"):
            began = time.monotonic()
            # Then the host is woken long before it would be
            assert waiting.result()["screen"]["screen"] == "unlock"
            assert time.monotonic() - began < 60 * children.PATIENCE
            history.assert_closed(user.app, user.phone)


def test_LCK_1_a_host_that_asks_for_the_descriptor_is_woken_by_an_earlier_lock(
    sign_in: MakeUser,
) -> None:
    # Given a handle without a network that has nothing to do
    user = sign_in(contacts=1)
    user.app.register()
    user.app.go_offline()
    user.app.settle()
    # When another process locks, and the host begins to wait
    with ended_by_another_process(user, "session_lock"):
        # Then it is woken
        assert readable(user.app.wake_fd())
        history.assert_closed(user.app, user.phone)


def unlock_and_lock(app: App) -> None:
    app.touch()
    assert app.session_status()["state"] == "active"
    app.session_lock()


@pytest.mark.parametrize(
    ("where", "end"),
    [
        ("this process", "session_lock"),
        ("this process", "session_logout"),
        ("this process", "unlock and lock"),
        ("another process", "session_lock"),
        ("another process", "session_logout"),
    ],
)
def test_LCK_1_a_lock_reaches_a_handle_that_holds_the_session_in_memory_only(
    sign_in: MakeUser, where: str, end: str
) -> None:
    """In the background, with `at_once`, the key store has no key that a lock could erase."""
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    with history.start(user.phone, user.phone.folder) as other:
        # Given a handle in the background
        assert other.session_resume()["screen"] in {"home", "wait"}
        assert other.session_status()["state"] == "active"
        other.session_background()
        assert "session" not in user.phone.keychain.names()
        before = history.read(user.phone.folder)
        # When another one locks or logs out, and older files are back
        if where == "another process":
            with ended_by_another_process(user, end):
                history.put(user.phone.folder, before)
        else:
            {**ENDS, "unlock and lock": unlock_and_lock}[end](user.app)
            history.put(user.phone.folder, before)
        # Then it does not come back
        assert other.session_foreground()["screen"] in {"unlock", "sign_in"}
        assert "session" not in user.phone.keychain.names()
        history.assert_closed(other, user.phone)


def test_LCK_1_a_screen_that_was_not_taken_before_the_lock_is_not_shown_after_it(
    user: SignedIn,
) -> None:
    # Given a screen that the host does not take: it was suspended in the background
    user.app.session_background()
    user.app.settle()
    user.app.network_report({"online": False})
    # When it goes on after the time to lock
    user.phone.pass_time(3600)
    # Then the first screen that it gets is the lock
    assert user.app.next(0)["screen"]["screen"] == "unlock"


def test_LCK_1_a_handle_comes_back_from_the_background_beside_others(sign_in: MakeUser) -> None:
    """What another handle does besides locking leaves the session in memory."""
    # Given a handle in the background, without biometrics
    user = sign_in(policy={"lock_on_background": "at_once", "biometric": "off"})
    user.app.session_background()
    # When other handles open the folder, change it and close
    with history.start(user.phone, user.phone.folder) as other:
        other.session_resume()
        other.network_report({"online": False})
        other.session_background()
    # Then
    assert user.app.session_foreground()["screen"] == "home"
    assert "session" in user.phone.keychain.names()


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("end", ENDS)
def test_LCK_1_a_failed_sign_in_revives_no_locked_session(
    sign_in: MakeUser, directory: DirectoryFixtures, end: str, first: str
) -> None:
    user = sign_in(contacts=1)
    with history.start(user.phone, user.phone.folder) as other:
        assert other.session_resume()["screen"] in {"home", "wait"}
        # Given a sign-in over the session: the key store saves `session` and does not show it, and
        # does not save the key of the repair
        keychain = user.phone.keychain
        keychain.answer("save", "session", KEY_OK, *[KEY_FAILED] * 9)

        def hide(call: str, name: str) -> None:
            if (call, name) == ("save", "session"):
                keychain.answer("load", "session", *[KEY_FAILED] * 9)

        keychain.watch = hide
        with pytest.raises(HoldfastError, match="key store"):
            other.session_adopt({"session": directory.session(user.person)})
        keychain.watch = lambda _call, _name: None
        keychain.forget_script()
        before = history.read(user.phone.folder)
        # When another handle ends the session, and older files are back
        ENDS[end](user.app)
        history.put(user.phone.folder, before)
        FIRST[first](other)  # type: ignore[arg-type]
        # Then
        history.assert_closed(other, user.phone)
        assert "session" not in user.phone.keychain.names()


def test_LCK_1_a_lock_takes_the_key_though_older_files_have_no_session(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given files from before the sign-in and after it
    phone = phones()
    app = phone.start()
    empty = history.read(phone.folder)
    org = directory.organisation(contacts=1)
    app.session_adopt({"session": directory.session(directory.person(org))})
    app.settle()
    assert "session" in phone.keychain.names()
    later = history.read(phone.folder)
    # When the user locks while the earlier ones are in place
    history.put(phone.folder, empty)
    app.session_lock()
    # Then the key is gone, and the later ones do not open
    assert "session" not in phone.keychain.names()
    history.put(phone.folder, later)
    history.assert_closed(app, phone)


@pytest.mark.parametrize("where", ["this process", "another process"])
def test_LCK_1_a_lock_elsewhere_wakes_a_host_that_waits(user: SignedIn, where: str) -> None:
    user.app.settle()
    assert not readable(user.app.wake_fd())
    if where == "another process":
        with ended_by_another_process(user, "session_lock"):
            user.app.session_status()
            assert readable(user.app.wake_fd())
            user.app.settle()
    else:
        with history.start(user.phone, user.phone.folder) as other:
            other.session_lock()
            user.app.session_status()
            assert readable(user.app.wake_fd())
            user.app.settle()
    assert user.app.screen["screen"] == "unlock"


@pytest.mark.parametrize("killed", ["before the key is erased", "after it"])
def test_LCK_1_a_lock_counts_though_its_process_is_killed(sign_in: MakeUser, killed: str) -> None:
    # Given a process in which the user is in
    user = sign_in(contacts=1)
    with child("stays_in.py", user, "poll") as process:
        assert said(process) == "in"
        # When another one is killed while it locks
        with child("locks_and_dies.py", user) as locker:
            assert said(locker) == "erasing"
            if killed == "after it":
                tell(locker)
                assert said(locker) == "erased"
            os.kill(locker.pid, signal.SIGKILL)
            assert locker.wait(60 * children.PATIENCE) == -signal.SIGKILL
        tell(process)
        # Then the first one is closed, and the key is gone
        assert said(process) == "closed"
        assert "session" not in user.phone.keychain.names()


# An erasure that is owed ------------------------------------------------------------------------


def test_LCK_1_a_key_that_is_owed_is_not_confused_with_a_later_one(sign_in: MakeUser) -> None:
    """Another handle unlocks meanwhile: its key stays."""
    user = sign_in(contacts=1)
    with history.start(user.phone, user.phone.folder) as other:
        user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
        other.session_lock()
        user.phone.keychain.forget_script()
        # When the user unlocks in another handle before the first one's next call
        user.phone.keychain.present_finger()
        assert user.app.unlock("success")["screen"] in {"home", "wait"}
        # Then the first one leaves the new key alone
        other.session_status()
        assert "erase" not in other.session_status()["owed"]
        assert "session" in user.phone.keychain.names()
        assert user.app.session_status()["state"] == "active"


def test_LCK_1_a_lock_that_meets_a_sign_in_erases_none_of_its_keys(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    session = directory.session(user.person)
    with another(user.phone) as second:
        user.app.session_background()
        user.phone.pass_time(360)
        second.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
        returns = threading.Thread(target=user.app.session_foreground)

        def hook(call: str, name: str) -> None:
            # The sign-in has the file's write lock while it saves its keys.
            if (call, name) == ("save", "session") and not returns.ident:
                returns.start()
                until_asleep(returns)

        user.phone.keychain.watch = hook
        second.session_adopt({"session": session})
        returns.join(patience(60))
        user.phone.keychain.watch = lambda _call, _name: None
    user.app.settle()
    assert user.app.screen["screen"] == "home"
    assert user.restart().screen["screen"] == "home"


@pytest.mark.slow
def test_LCK_1_a_handle_that_met_a_busy_file_erases_a_key_that_is_owed(user: SignedIn) -> None:
    # Given a handle whose call has waited in vain for another process's lock
    database = sqlite3.connect(user.phone.folder / "holdfast.db", isolation_level=None)
    with contextlib.closing(database):
        database.execute("BEGIN IMMEDIATE")
        assert error_of(user.app.register).code == "storage.busy"
        database.execute("ROLLBACK")
    # When another handle locks, and the key store refuses to erase
    user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
    with history.start(user.phone, user.phone.folder) as other:
        other.session_lock()
        user.phone.keychain.forget_script()
        # Then the next call of the first asks it again
        user.app.session_status()
        assert "session" not in user.phone.keychain.names()


@pytest.mark.slow
@pytest.mark.parametrize("comes_back", [True, False])
def test_LCK_1_a_lock_that_meets_a_busy_file_closes_the_other_handles_afterwards(
    user: SignedIn, *, comes_back: bool
) -> None:
    with another(user.phone) as other:
        # Given a lock of the user that another process's write keeps out of the file
        assert other.session_status()["state"] == "active"
        busy = holder(user.phone.folder / "holdfast.db")
        assert error_of(user.app.session_lock).code == "storage.busy"
        assert user.app.session_status()["state"] == "locked"
        busy.communicate()
        if comes_back:
            other.session_adopt({"session": user.phone.session(user.person)})
        # When the handle makes its next call
        user.app.session_status()
        # Then the others are locked, but not somebody who has signed in since
        assert other.session_status()["state"] == ("active" if comes_back else "locked")


def test_LCK_1_a_handle_that_does_not_poll_erases_a_key_that_is_owed(user: SignedIn) -> None:
    with history.start(user.phone, user.phone.folder) as other:
        user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
        other.session_lock()
        user.app.session_status()
    assert "session" in user.phone.keychain.names()
    user.phone.keychain.forget_script()
    user.app.session_status()
    assert "session" not in user.phone.keychain.names()


def test_LCK_5_who_unlocks_after_a_lock_that_is_owed_comes_back(sign_in: MakeUser) -> None:
    # Given a lock by another handle, whose key store does not erase the key
    user = sign_in(policy={"lock_on_background": "at_once"})
    with history.start(user.phone, user.phone.folder) as other:
        user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
        other.session_lock()
        user.phone.keychain.forget_script()
        # When the user unlocks, leaves and returns
        user.phone.keychain.present_finger()
        assert user.app.unlock("success")["screen"] in {"home", "wait"}
        user.app.settle()
        for _ in range(3):
            user.app.session_background()
            assert user.app.session_foreground()["screen"] == "home"
        # Then no finger was asked for
        assert user.app.session_status()["state"] == "active"


# The background ---------------------------------------------------------------------------------


@pytest.mark.parametrize("first", crossed(FIRST, fast=lambda first: first == "poll"))
def test_LCK_5_a_worker_is_out_when_the_app_goes_to_the_background(
    sign_in: MakeUser, first: str
) -> None:
    """With `at_once` the session is open in the app's process only, and not in a worker's."""
    # Given a second process in which the user is in
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    with child("stays_in.py", user, first) as worker:
        assert said(worker) == "in"
        # When the app leaves the screen
        user.app.session_background()
        tell(worker)
        # Then the worker is out, and the app comes back
        assert said(worker) == "closed"
        assert user.app.session_foreground()["screen"] in {"home", "wait"}


@pytest.mark.parametrize("waits", [False, True])
def test_LCK_5_a_worker_that_asks_for_a_route_locks_nobody_out(user: SignedIn, waits: bool) -> None:
    """A start with an expired token locks, and nobody starts the app in a worker."""
    # Given an app on the screen, whose access token has run out
    user.phone.pass_time(TOKEN_S + 60)
    with history.start(user.phone, user.phone.folder) as worker:
        # When a worker asks
        user.phone.keychain.unlocked_since_boot = not waits
        screen = worker.route_check({"route": user.home})["screen"]["screen"]
        assert screen == ("wait" if waits else "unlock")
        user.phone.keychain.unlocked_since_boot = True
        worker.take()
        # Then it learns that it may not, and the app goes on
        assert set(history.refused(worker)) == {"session.locked"}
    assert "session" in user.phone.keychain.names()
    user.app.settle()
    assert user.app.screen["screen"] == "home"


# Ends that are late -----------------------------------------------------------------------------


def while_loading(user: SignedIn, act: Callable[[], object]) -> None:
    """Once the key store has read `session`, and before it answers, this happens elsewhere."""
    keychain, load = user.phone.keychain, user.phone.keychain.load

    def loaded(name: str) -> bytes | None:
        key = load(name)
        if name == "session":
            keychain.load = load  # type: ignore[method-assign]
            thread = threading.Thread(target=act)
            thread.start()
            thread.join(patience(60))
        return key

    keychain.load = loaded  # type: ignore[method-assign]


@pytest.mark.parametrize("end", ["a lock that is due", "an unreadable session"])
def test_SES_4_an_end_that_is_late_spares_the_session_that_was_stored_meanwhile(
    user: SignedIn, end: str
) -> None:
    # Given a handle that has stored something in this call, and finds a session that is to end
    with history.start(user.phone, user.phone.folder) as late:
        if end == "a lock that is due":
            user.app.session_lock()
            assert late.session_resume()["screen"] == "unlock"
            user.app.touch()
            user.app.session_background()
            user.phone.pass_time(3600)
            late.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
        else:
            tokens = tamper.stored(user.phone.folder)
            user.phone.open()
            tamper.write(user.phone.folder, tamper.flipped(tokens, len(tokens) - 1))
        app = user.phone.app
        assert app is not None
        session = user.phone.session(user.person)
        # When its user signs in in another handle
        while_loading(user, lambda: app.session_adopt({"session": session}))
        late.session_background()
    # Then they are in
    app.settle()
    assert app.screen["screen"] == "home"
    assert user.phone.keychain.names() == {"device", "session", "biometric"}
    assert user.restart().screen["screen"] == "home"


# Nobody is kept busy ----------------------------------------------------------------------------


def turns(user: SignedIn) -> int:
    """How often a host's loop turns in a while. It looks at no result."""
    count = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end and count < 40:
        with contextlib.suppress(HoldfastError):
            user.app.poll()
        with contextlib.suppress(HoldfastError):
            user.app.next(500)
        count += 1
    return count


def test_LCK_5_a_folder_that_was_removed_keeps_no_host_busy(user: SignedIn) -> None:
    user.app.settle()
    user.app.next(1)
    shutil.rmtree(user.phone.folder)
    turns(user)
    asked = user.phone.keychain.calls["load", "session"]
    assert turns(user) < 10
    assert user.phone.keychain.calls["load", "session"] - asked < 40
    assert not readable(user.app.wake_fd())
