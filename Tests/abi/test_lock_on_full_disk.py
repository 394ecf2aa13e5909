"""The disk takes nothing while the user leaves, comes back or locks (LCK-5, ATK-16).

What a call does in memory and in the key store must fit what the file
has, also when the commit fails.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED, KEY_NOT_FOUND

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.phone import TOKEN_S
from support.queue import add
from support.users import MakePhone, MakeUser, SignedIn
from support.waking import another

AT_ONCE = {"lock_on_background": "at_once"}


def let_files_grow(is_allowed: bool) -> None:
    """Whether the files of this process take another byte."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if is_allowed else 0, hard))


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    let_files_grow(False)
    try:
        yield
    finally:
        let_files_grow(True)


def fill_disk_once_saved(user: SignedIn) -> None:
    """The keychain saves `session`, and then the file does not take the row."""
    saved = []

    def watch(call: str, name: str) -> None:
        if name != "session":
            return
        if call == "save":
            saved.append(name)
        elif call == "load" and saved:
            let_files_grow(False)

    user.phone.keychain.watch = watch


@pytest.mark.parametrize("biometric", ["preferred", "off"])
def test_LCK_5_a_return_that_the_disk_does_not_take_leaves_the_session_in_memory(
    sign_in: MakeUser, biometric: str
) -> None:
    user = sign_in(contacts=1, policy={**AT_ONCE, "biometric": biometric})
    user.app.session_background()
    fill_disk_once_saved(user)
    try:
        assert user.app.session_foreground()["screen"] == "home"
    finally:
        let_files_grow(True)
        user.phone.keychain.watch = lambda _call, _name: None
    assert "session" in user.phone.keychain.names()
    refreshes = user.phone.network.count("refresh")
    user.app.wait(TOKEN_S + 60)
    assert user.phone.network.count("refresh") > refreshes
    assert user.app.session_status()["state"] == "active"
    user.app.session_background()
    assert user.app.session_foreground()["screen"] == "home"
    assert user.restart().screen["screen"] == "home"


@pytest.mark.parametrize("biometric", ["preferred", "off"])
def test_LCK_5_a_host_that_says_twice_that_it_leaves_comes_back(
    sign_in: MakeUser, biometric: str
) -> None:
    user = sign_in(policy={**AT_ONCE, "biometric": biometric})
    user.app.session_background()
    user.app.session_background()
    assert user.app.session_foreground()["screen"] == "home"
    assert user.app.session_status()["state"] == "active"
    assert user.restart().screen["screen"] == "home"


def test_LCK_5_the_key_goes_though_the_disk_does_not_take_the_time(sign_in: MakeUser) -> None:
    user = sign_in(policy=AT_ONCE)
    # The keychain's file is not on the full disk
    keychain, write = user.phone.keychain, user.phone.keychain._write

    def write_elsewhere(entries: dict[str, dict[str, object]]) -> None:
        let_files_grow(True)
        write(entries)
        let_files_grow(False)

    keychain._write = write_elsewhere  # type: ignore[method-assign]
    with full_disk(), pytest.raises(HoldfastError) as caught:
        user.app.session_background()
    keychain._write = write  # type: ignore[method-assign]
    assert caught.value.code.startswith("storage.")
    assert "session" not in user.phone.keychain.names()
    assert user.app.session_foreground()["screen"] == "home"
    assert "session" in user.phone.keychain.names()
    assert user.restart().screen["screen"] == "home"


def test_LCK_5_a_key_store_that_keeps_the_key_changes_no_error(sign_in: MakeUser) -> None:
    """The host learns of the disk, and `session_status` of the erasure that is owed."""
    user = sign_in(policy=AT_ONCE)
    user.phone.keychain.answer("erase", "session", KEY_FAILED)
    with full_disk(), pytest.raises(HoldfastError) as caught:
        user.app.session_background()
    assert caught.value.code.startswith("storage.")
    user.app.session_status()
    assert "session" not in user.phone.keychain.names()


@pytest.mark.parametrize("biometric", ["preferred", "off"])
@pytest.mark.parametrize("trouble", ["the folder is away", "a link is in the file's place"])
def test_ATK_16_the_user_s_lock_holds_though_the_files_cannot_be_read(
    sign_in: MakeUser, trouble: str, biometric: str
) -> None:
    user = sign_in(policy={"biometric": biometric})
    folder = user.phone.folder
    place = folder if trouble == "the folder is away" else folder / "holdfast.db"
    elsewhere = place.with_name("elsewhere")
    place.rename(elsewhere)
    if place != folder:
        place.symlink_to(elsewhere)
    assert error_of(user.app.session_lock).code.startswith("storage.")
    assert "session" not in user.phone.keychain.names()
    if place != folder:
        place.unlink()
    elsewhere.rename(place)
    assert user.app.session_status()["state"] == "locked"
    for restarts in (False, True):
        app = user.restart() if restarts else user.app
        app.wait(60)
        # No file says that the user has locked: without another key the session's is missing
        code, screen = "session.locked", "unlock"
        if biometric == "off":
            code, screen = "keystore.key_lost", "sign_in"
        assert error_of(app.session_token).code == code
        assert app.screen["screen"] == screen


@pytest.mark.parametrize("way", ["unlock", "sign_in"])
def test_LCK_5_an_erasure_that_no_file_has_taken_spares_a_later_key(
    user: SignedIn, way: str
) -> None:
    with another(user.phone) as other:
        # Given a lock that neither the disk nor the key store takes
        user.phone.keychain.answer("erase", "session", *[KEY_FAILED] * 9)
        with full_disk(), pytest.raises(HoldfastError):
            other.session_lock()
        user.phone.keychain.forget_script()
        # When the user gets a new key in another handle
        if way == "unlock":
            user.app.session_lock()
            user.app.touch()
        else:
            user.app.session_adopt({"session": user.phone.session(user.person)})
        # Then the first one leaves it alone
        other.session_status()
        assert "session" in user.phone.keychain.names()
        assert other.session_status()["owed"] == []
    assert user.app.session_status()["state"] == "active"
    assert user.restart().screen["screen"] == "home"


@pytest.mark.parametrize("discard", [False, True])
def test_KEEP_4_a_logout_that_the_disk_does_not_take_leaves_the_session_to_be_revoked(
    user: SignedIn, discard: bool
) -> None:
    user.app.network_report({"online": False})
    user.app.register(minutes=1)
    request = {"unsent": "discard", "confirm_unsent": 1} if discard else {"unsent": "keep"}
    with full_disk():
        for _ in range(2):
            assert error_of(user.app.session_logout, request).code.startswith("storage.")
    assert "session" in user.phone.keychain.names()
    assert user.app.session_logout(request)["unsent"] == 1
    assert "session" not in user.phone.keychain.names()
    user.app.reconnect()
    assert user.phone.network.count("revoke") == 1


def test_ATK_16_a_device_key_of_which_the_disk_took_no_proof_is_proved_later(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    # Given a first start that makes the device key, and the disk takes nothing after that
    phone = phones()
    keychain, write = phone.keychain, phone.keychain._write

    def save_and_fill(entries: dict[str, dict[str, object]]) -> None:
        write(entries)
        let_files_grow(False)

    keychain._write = save_and_fill  # type: ignore[method-assign]
    app = phone.open()
    try:
        assert error_of(app.session_resume).code == "storage.full"
    finally:
        let_files_grow(True)
        keychain._write = write  # type: ignore[method-assign]
    # When there is room again, and a user registers something
    app.sign_in(directory.person(directory.organisation()))
    app.go_offline()
    item = add(app)
    phone.close()
    # Then a key store that finds nothing for a while is asked again, and gets no other key
    saves = keychain.calls["save", "device"]
    keychain.answer("load", "device", *[KEY_NOT_FOUND] * 50)
    app = phone.start(online=False)
    app.settle()
    assert app.screen["screen"] == "wait"
    assert keychain.calls["save", "device"] == saves
    keychain.forget_script()
    app.wait(60)
    assert app.queue_get({"id": item})["state"] == "pending"
