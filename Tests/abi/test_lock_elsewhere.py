"""A handle that was in hears that another one locked, or logged out (LCK-1, LCK-5).

The attacker puts older files back in place before the handle's next call, so that it cannot read
from them what has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED, KEY_OK

from conftest import MakePhone, MakeUser, SignedIn
from support import history
from support.directory_fixtures import DirectoryFixtures
from support.elsewhere import ENDS, FIRST, ended_by_another_process
from support.phone import App
from support.sizes import crossed
from support.waking import readable

#: How the handle waits for news, and what it calls first, for each end that is fast.
HEARD = [
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
        fast=lambda *case: case in HEARD,
    ),
)
def test_LCK_1_a_lock_by_another_process_is_heard(
    sign_in: MakeUser, end: str, first: str, waits: str
) -> None:
    """A handle that read the watch of the folder itself did not count what it read."""
    # Given a handle in which the user is in
    user = sign_in(contacts=1)
    user.app.register()
    if waits == "in the library":
        user.app.wait(0)
    elif waits == "at the descriptor":
        user.app.wake_fd()
    user.app.session_status()
    before = history.all_files(user.phone.folder)
    # When another process ends the session, and the files are older ones when the handle looks
    with ended_by_another_process(user, end):
        history.put_back(user.phone.folder, before)
        FIRST[first](user.app)
        # Then
        history.assert_closed(user.app, user.phone)


def test_LCK_1_a_host_that_asks_for_the_descriptor_is_woken_by_an_earlier_lock(
    sign_in: MakeUser,
) -> None:
    """wake_fd() read what other handles told, and lowered the descriptor although no call had
    looked at it: the host slept with the old screen."""
    # Given a handle without a network that has nothing to do
    user = sign_in(contacts=1)
    user.app.register()
    user.app.go_offline()
    user.app.settle()
    user.app.wake_fd()
    user.app.session_status()
    before = history.all_files(user.phone.folder)
    # When another process locks, the files are older ones again, and the host begins to wait
    with ended_by_another_process(user, "session_lock"):
        history.put_back(user.phone.folder, before)
        # Then it is woken, until a call has looked
        assert readable(user.app.wake_fd())
        history.assert_closed(user.app, user.phone)


def test_LCK_1_a_lock_is_heard_after_the_notice_was_replaced(sign_in: MakeUser) -> None:
    # Given a handle that has seen that somebody replaced the file by which it hears of others
    user = sign_in(contacts=1)
    notice = user.phone.folder / "holdfast.notice"
    notice.unlink()
    notice.touch(mode=0o600)
    assert user.app.session_status()["state"] == "active"
    before = history.all_files(user.phone.folder)
    # When a new process locks
    with ended_by_another_process(user, "session_lock"):
        history.put_back(user.phone.folder, before)
        # Then
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
        before = history.all_files(user.phone.folder)
        # When another one locks or logs out, and older files are back
        if where == "another process":
            with ended_by_another_process(user, end):
                history.put_back(user.phone.folder, before)
        else:
            {**ENDS, "unlock and lock": unlock_and_lock}[end](user.app)
            history.put_back(user.phone.folder, before)
        # Then it does not come back
        assert other.session_foreground()["screen"] in {"unlock", "sign_in"}
        assert "session" not in user.phone.keychain.names()
        history.assert_closed(other, user.phone)


def test_LCK_1_a_handle_comes_back_from_the_background_beside_others(sign_in: MakeUser) -> None:
    """What another handle does besides locking leaves the session in memory."""
    # Given a handle in the background, without biometrics
    user = sign_in(policy={"lock_on_background": "at_once", "biometric": "off"})
    user.app.session_background()
    # When other handles open the folder, change it and close
    with history.start(user.phone, user.phone.folder) as other:
        other.session_resume()
        other.network_set({"online": False})
        other.session_background()
    # Then
    assert user.app.session_foreground()["screen"] == "home"
    assert "session" in user.phone.keychain.names()


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("end", ENDS)
def test_LCK_1_a_failed_sign_in_revives_no_locked_session(
    sign_in: MakeUser, directory: DirectoryFixtures, end: str, first: str
) -> None:
    """The repair after a failed sign-in wrapped the vault by a new key, whatever had happened."""
    user = sign_in(contacts=1)
    with history.start(user.phone, user.phone.folder) as other:
        assert other.session_resume()["screen"] in {"home", "wait"}
        # Given a sign-in over the session: the key store saves `session`, but neither `biometric`
        # nor the key of the repair
        user.phone.keychain.answer("save", "session", KEY_OK, *[KEY_FAILED] * 9)
        user.phone.keychain.answer("save", "biometric", *[KEY_FAILED] * 9)
        with pytest.raises(HoldfastError, match="key store"):
            other.session_start({"session": directory.session(user.person)})
        user.phone.keychain.forget_script()
        before = history.all_files(user.phone.folder)
        # When another handle ends the session, and older files are back
        ENDS[end](user.app)
        history.put_back(user.phone.folder, before)
        FIRST[first](other)  # type: ignore[arg-type]
        # Then
        history.assert_closed(other, user.phone)
        assert "session" not in user.phone.keychain.names()


def rename(notice: Path) -> None:
    notice.rename(notice.with_name("holdfast.notice.away"))


def rename_and_replace(notice: Path) -> None:
    rename(notice)
    notice.touch(mode=0o600)


def link_and_replace(notice: Path) -> None:
    notice.with_name("holdfast.notice.second").hardlink_to(notice)
    notice.unlink()
    notice.touch(mode=0o600)


def folder(notice: Path) -> None:
    notice.unlink()
    notice.mkdir(mode=0o700)


def dangling_link(notice: Path) -> None:
    notice.unlink()
    notice.symlink_to("nowhere")


@pytest.mark.parametrize(
    "part", [rename, rename_and_replace, link_and_replace, folder, dangling_link]
)
def test_LCK_1_a_lock_is_heard_though_the_notice_is_another_file(
    sign_in: MakeUser, part: Callable[[Path], None]
) -> None:
    """A renamed notice parted the processes: each told of its lock by another file."""
    # Given a handle that is in, and a notice that is another file than it has opened
    user = sign_in(contacts=1)
    part(user.phone.folder / "holdfast.notice")
    user.app.session_status()
    before = history.all_files(user.phone.folder)
    # When a new process locks, and older files are back
    with locked_by_new_process(user):
        history.put_back(user.phone.folder, before)
        # Then
        history.assert_closed(user.app, user.phone)


@contextmanager
def locked_by_new_process(user: SignedIn) -> Iterator[None]:
    """A new process locks. It may refuse to open a folder whose notice is no file."""
    notice = user.phone.folder / "holdfast.notice"
    if notice.is_dir():
        notice.rmdir()
    elif notice.is_symlink():
        notice.unlink()
    with ended_by_another_process(user, "session_lock"):
        yield


def test_LCK_1_a_lock_takes_the_key_though_older_files_have_no_session(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """A lock with the files of before the sign-in in place left the key where it was."""
    # Given files from before the sign-in and after it
    phone = phones()
    app = phone.start()
    empty = history.all_files(phone.folder)
    org = directory.organisation(contacts=1)
    app.session_start({"session": directory.session(directory.person(org))})
    app.settle()
    assert "session" in phone.keychain.names()
    later = history.all_files(phone.folder)
    # When the user locks while the earlier ones are in place
    history.put_back(phone.folder, empty)
    app.session_lock()
    # Then the key is gone, and the later ones do not open
    assert "session" not in phone.keychain.names()
    history.put_back(phone.folder, {**later, **{n: b"" for n in empty if n not in later}})
    history.assert_closed(app, phone)


@pytest.mark.parametrize("where", ["this process", "another process"])
def test_LCK_1_a_lock_elsewhere_wakes_a_host_that_waits(sign_in: MakeUser, where: str) -> None:
    """The query of the waiting thread took the news, and the thread slept on."""
    user = sign_in()
    user.app.wait(0)
    user.app.settle()
    assert not readable(user.app.wake_fd())
    if where == "another process":
        with ended_by_another_process(user, "session_lock"):
            user.app.wait(0)
            assert readable(user.app.wake_fd())
            user.app.settle()
    else:
        with history.start(user.phone, user.phone.folder) as other:
            other.session_lock()
            user.app.wait(0)
            assert readable(user.app.wake_fd())
            user.app.settle()
    assert user.app.screen["screen"] == "unlock"
