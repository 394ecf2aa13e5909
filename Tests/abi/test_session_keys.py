"""Key store failures: keys that are withheld, lost, replaced or not stored."""

from __future__ import annotations

import contextlib
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_CANCELLED, KEY_FAILED, KEY_NOT_ENROLLED, KEY_UNAVAILABLE

from support import tamper
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.missing import aside, until_lost
from support.phone import TOKEN_S, FilePhone
from support.screens import seen
from support.users import MakePhone, MakeUser, SignedIn


@pytest.mark.parametrize("claims", [1, 3])
def test_SES_10_an_unlock_without_the_key_opens_nothing(sign_in: MakeUser, claims: int) -> None:
    user = sign_in(contacts=1)
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart()
    for _ in range(claims):
        screen = app.unlock("success")
        assert seen(screen) == ("sign_in", "biometric_failed")
        assert app.session_status()["state"] == "locked"
        assert error_of(app.contact_search, {"query": ""}).code == "session.locked"
    app.settle()
    assert user.phone.network.sent == []
    # and the device key alone reveals nothing: its wrap is erased
    assert tamper.read(user.phone.folder, "wrap_session") is None
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"


def test_SES_9_a_changed_enrolment_loses_the_key(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    queued = user.offline().register()
    user.phone.keychain.change_enrolment()
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart(online=False)
    screen = app.touch()
    assert seen(screen) == ("sign_in", "key_lost")
    app.go_online()
    app.sign_in(user.person)
    if not app.of_type("sync_completed"):
        app.settle_until("sync_completed")
    assert [str(row["id"]) for row in directory.activities(user.person)] == [queued]
    assert user.phone.keychain.names() == {"device", "session", "biometric"}
    app.session_lock()
    assert app.touch()["screen"] == "home"


def test_SES_11_files_of_another_device_are_set_aside(user: SignedIn) -> None:
    user.phone.close()
    size = (user.phone.folder / "holdfast.db").stat().st_size
    user.phone.keychain.erase("device")
    user.phone.keychain.erase("biometric")
    app = user.restart()
    until_lost(app)
    assert aside(user.phone) == []
    app.sign_in(user.person)
    assert app.screen["screen"] == "home"
    assert [(user.phone.folder / name).stat().st_size for name in aside(user.phone)] == [size]
    assert seen(user.restart().screen) == ("home", None)


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("device", KEY_FAILED),
        ("device", KEY_CANCELLED),
        ("device", KEY_UNAVAILABLE),
        ("session", KEY_FAILED),
    ],
)
def test_RES_7_an_unavailable_key_store_clears_nothing(
    user: SignedIn, key: str, answer: int
) -> None:
    user.phone.close()
    user.phone.keychain.answer("load", key, answer, answer)
    app = user.restart()
    assert seen(app.screen) == ("wait", "keystore_failed")
    with pytest.raises(HoldfastError):
        app.queue_list()
    assert tamper.stored(user.phone.folder)
    app.session_resume()
    screen = app.session_resume()
    assert seen(screen) == ("home", None)


@pytest.mark.parametrize("answer", [KEY_NOT_ENROLLED, KEY_UNAVAILABLE])
def test_KEEP_2_a_phone_without_biometrics_can_sign_in(
    phones: MakePhone, directory: DirectoryFixtures, answer: int
) -> None:
    phone = phones(policy={"biometric": "preferred"})
    phone.keychain.answer("save", "biometric", answer)
    person = directory.person(directory.organisation())
    app = phone.start()
    app.sign_in(person)
    assert app.screen["screen"] == "home"
    assert phone.keychain.names() == {"device", "session"}
    app = phone.start()
    assert seen(app.screen) == ("home", None)


@pytest.mark.parametrize("other_user", [False, True])
@pytest.mark.parametrize(
    ("policy", "lost"), [("required", False), ("required", True), ("off", False), ("off", True)]
)
def test_KEEP_1_a_sign_in_whose_key_is_not_saved_leaves_the_open_session_usable(
    sign_in: MakeUser, directory: DirectoryFixtures, policy: str, lost: bool, other_user: bool
) -> None:
    # Given an open session with an item, and a key store that does not save the next one's key;
    # `lost`: it has no session key at all then
    user = sign_in(policy={"biometric": policy})
    app, keychain = user.app, user.phone.keychain
    app.go_offline()
    queued = app.register()
    person = directory.person(user.org) if other_user else user.person
    keychain.answer("save", "session", KEY_FAILED)

    def forget(call: str, key: str) -> None:
        if lost and (call, key) == ("save", "session"):
            keychain.erase("session")
            keychain.watch = lambda _call, _name: None

    keychain.watch = forget
    assert (
        error_of(app.session_adopt, {"session": directory.session(person)}).code
        == "keystore.failed"
    )
    assert app.session_status()["state"] == "active"
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert app.session_status()["user_id"] == user.person.id
    assert [item["id"] for item in app.queue_list()["items"]] == [queued]
    if policy == "required":
        app.session_lock()
        assert app.touch()["screen"] == "home"
        assert user.restart(online=False).screen["screen"] == "home"
    user.app.go_online()
    user.app.session_adopt({"session": directory.session(person)})
    user.app.settle()
    assert user.app.screen["screen"] == "home"
    assert user.app.session_status()["user_id"] == person.id


def test_KEEP_1_a_key_store_that_is_broken_for_a_while_costs_no_session(sign_in: MakeUser) -> None:
    user = sign_in(policy={"biometric": "off"})
    keychain = user.phone.keychain
    keychain.answer("save", "session", *[KEY_FAILED] * 3)
    session = user.phone.directory.session(user.person)
    erased = []

    def forget(call: str, key: str) -> None:
        if (call, key) == ("save", "session") and not erased:
            erased.append(key)
            keychain.erase("session")

    keychain.watch = forget
    with pytest.raises(HoldfastError):
        user.app.session_adopt({"session": session})
    assert user.app.session_status()["state"] == "active"
    assert "session" not in keychain.names()
    user.app.session_status()
    assert "session" in keychain.names()
    assert user.restart().screen["screen"] == "home"


def test_KEEP_1_a_sign_in_whose_key_is_not_saved_leaves_a_locked_session_to_the_finger(
    user: SignedIn,
) -> None:
    user.app.session_lock()
    user.phone.keychain.answer("save", "session", KEY_FAILED)
    with pytest.raises(HoldfastError):
        user.app.session_adopt({"session": user.phone.directory.session(user.person)})
    user.phone.keychain.answer("save", "session", KEY_FAILED)
    assert error_of(user.app.touch).code == "keystore.failed"
    assert user.restart().screen["screen"] == "unlock"
    assert user.app.touch()["screen"] == "home"


def limit_file_size(size: int) -> None:
    """Let writes beyond this offset fail, as on a disk that has no more room for a file."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))


@contextlib.contextmanager
def unlimited_at_the_end() -> Iterator[None]:
    """Writes beyond the limit fail instead of ending the process; lift the limit at the end."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_KEEP_1_a_key_file_that_cannot_be_written_stays_as_it_is(
    user: SignedIn, tmp_path: Path
) -> None:
    policy = {"biometric": "off"}
    kiosk = FilePhone(tmp_path / "kiosk", user.phone.library, user.phone.backend, policy=policy)
    kiosk.start().sign_in(user.person)
    assert kiosk.app is not None
    session = kiosk.directory.session(user.person)
    with unlimited_at_the_end(), pytest.raises(HoldfastError) as caught:
        limit_file_size(0)
        kiosk.app.session_adopt({"session": session})
    assert caught.value.code == "keystore.failed"
    assert kiosk.start().screen["screen"] == "home"
    kiosk.close()


@pytest.mark.parametrize("is_locked", [False, True])
def test_KEEP_1_a_sign_in_that_the_disk_refuses_leaves_the_session_from_before(
    user: SignedIn, is_locked: bool
) -> None:
    if is_locked:
        user.app.session_lock()
    refused = []

    def refuse(call: str, key: str) -> None:
        if call == "save" and not refused:
            refused.append(key)
            limit_file_size(4096)

    user.phone.keychain.watch = refuse
    session = user.phone.directory.session(user.person)
    with unlimited_at_the_end(), pytest.raises(HoldfastError) as caught:
        user.app.session_adopt({"session": session})
    assert caught.value.code.startswith("storage."), caught.value
    assert refused
    assert user.app.session_status()["state"] == ("locked" if is_locked else "active")
    assert user.restart().screen["screen"] == ("unlock" if is_locked else "home")
    user.app.session_lock()
    assert user.app.touch()["screen"] == "home"
    assert user.restart().screen["screen"] == "home"


@pytest.mark.parametrize("loss", ["erased", "replaced"])
@pytest.mark.parametrize("step", ["unlock", "sign_in", "return"])
def test_TST_8_a_store_that_lost_the_device_key_gets_it_back_with_the_next_key(
    sign_in: MakeUser, loss: str, step: str
) -> None:
    """Otherwise nobody would notice before the next start, which has no key of the files."""
    user = sign_in(policy={"lock_on_background": "at_once"})
    app, keychain = user.app, user.phone.keychain
    if step == "unlock":
        app.session_lock()
    elif step == "return":
        app.session_background()
    device = keychain.stored("device")
    if loss == "erased":
        keychain.erase("device")
    else:
        keychain.replace("device", bytes(range(32)))
    with contextlib.suppress(HoldfastError):
        match step:
            case "unlock":
                app.touch()
            case "sign_in":
                app.session_adopt({"session": user.phone.session(user.person)})
            case _:
                app.session_foreground()
    assert keychain.stored("device") == device
    app = user.restart()
    if app.screen["screen"] == "unlock":
        app.touch()
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("background", ["after_timeout", "at_once"])
@pytest.mark.parametrize("way", ["sign_in", "unlock"])
@pytest.mark.parametrize("arrival", ["session_foreground", "session_resume"])
def test_TST_9_who_comes_in_after_a_lock_in_the_background_stays_in(
    sign_in: MakeUser, background: str, way: str, arrival: str
) -> None:
    """The time in the background ends with the sign-in, and locks nobody out afterwards."""
    user = sign_in(policy={"lock_on_background": background})
    app = user.app
    app.session_background()
    app.session_lock()
    user.phone.pass_time(600)
    if way == "sign_in":
        app.session_adopt({"session": user.phone.session(user.person)})
    else:
        app.touch()
    app.settle()
    assert app.screen["screen"] == "home"
    assert getattr(app, arrival)()["screen"] == "home"
    app.settle()
    app.session_foreground()
    assert app.screen["screen"] == "home"
    assert user.restart().screen["screen"] == "home"
