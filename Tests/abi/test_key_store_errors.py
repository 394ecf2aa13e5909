"""An error of the key store says which key, which operation, and what the store answered.

Issue 16: `keystore.failed` alone left a developer to guess. `detail` has `key`, `operation` and
`answer`, and a line of the log, of level 1, says the same. Neither holds a secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import HoldfastError, Library
from holdfast.keystore import (
    KEY_CANCELLED,
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKED,
    KEY_UNAVAILABLE,
)

from support import secrecy, tamper
from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.errors import error_of
from support.liar import with_liar
from support.loop import Host
from support.phone import App, Phone
from support.screens import seen, why
from support.users import MakePhone, SignedIn

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest

Lines = list[tuple[int, str]]
ITEM = {
    "kind": "activity",
    "payload": {"type": "visit", "minutes": 5},
    "occurred_at_ms": 1_795_000_000_000,
}


@pytest.fixture
def lines(library: Library) -> Iterator[Lines]:
    """The lines of the log up to level 1."""
    heard: Lines = []
    secrecy.listen(library)

    def hear(level: int, line: str) -> None:
        secrecy.current.line(level, line)
        heard.append((level, line))

    library.set_log(1, hear)
    yield heard
    library.set_log(0, None)


def told(lines: Lines, *words: str) -> Lines:
    """The lines about the key store that hold all of these words."""
    about = [(level, line) for level, line in lines if line.startswith("key store, ")]
    return [(level, line) for level, line in about if all(word in line for word in words)]


def cause(app: App) -> str | None:
    """Why the sign-in failed that the app shows."""
    assert app.screen["message"] is not None
    return app.screen["message"].get("cause")


def failure(app: Any, name: str, request: Any) -> HoldfastError:  # noqa: ANN401
    return error_of(app.raw, name, request)


def new_session(phone: Phone) -> Any:  # noqa: ANN401
    directory = phone.directory
    return {"session": directory.session(directory.person(directory.organisation()))}


@pytest.mark.parametrize(
    ("call", "name", "answer", "word"),
    [
        ("load", "device", KEY_FAILED, "failed"),
        ("load", "device", KEY_LOCKED, "locked"),
        ("load", "device", KEY_CANCELLED, "cancelled"),
        ("load", "device", 77, "failed"),
        ("save", "device", KEY_LOCKED, "locked"),
        ("save", "device", KEY_FAILED, "failed"),
        ("save", "device", KEY_UNAVAILABLE, "unavailable"),
        ("save", "session", KEY_FAILED, "failed"),
        ("save", "session", KEY_INVALIDATED, "invalidated"),
    ],
)
def test_API_3_KEEP_1_an_error_names_key_operation_and_answer_and_nothing_is_stored(
    phones: MakePhone, lines: Lines, call: str, name: str, answer: int, word: str
) -> None:
    phone = phones()
    app = phone.open()
    session = new_session(phone)
    phone.keychain.answer(call, name, answer)
    error = failure(app, "session_adopt", session)
    assert error.code == ("keystore.locked" if answer == KEY_LOCKED else "keystore.failed")
    assert (error.status, error.retryable) == (5, True)
    assert error.detail == {"key": name, "operation": call, "answer": word}
    assert name in error.message
    assert word in error.message
    assert [level for level, _ in told(lines, call, name, word)] == [1], lines
    assert tamper.read(phone.folder) is None
    assert app.session_status()["state"] == "signed_out"
    app.session_adopt(session)
    app.settle()
    assert app.screen["screen"] == "home"
    assert len(told(lines)) == 1


@pytest.mark.parametrize("since", ["the first call", "the sign-in"])
@pytest.mark.parametrize(
    ("lie", "key", "answer"),
    [
        ("forgets", "session", "not_found"),
        ("changes", "session", "other_key"),
        ("shortens", "session", "wrong_length"),
        ("mixes", "device", "other_key"),
    ],
)
def test_API_3_LCK_7_nothing_is_acknowledged_on_a_key_that_does_not_come_back(
    phones: MakePhone, lines: Lines, lie: str, key: str, answer: str, since: str
) -> None:
    phone = phones()
    keychain = with_liar(phone)
    app = phone.open()
    if since == "the sign-in":
        app.session_resume()
        device = keychain.load("device")
    keychain.lie = lie
    session = new_session(phone)
    error = failure(app, "session_adopt", session)
    assert error.code == "keystore.failed"
    if since == "the sign-in":
        assert error.detail == {"key": key, "operation": "read_back", "answer": answer}
        assert told(lines, "read_back", key, answer)
        # A store that knows one key only loses no device key.
        assert lie != "mixes" or keychain.load("device") == device
    assert tamper.read(phone.folder) is None
    keychain.lie = ""
    if lie == "mixes":
        return
    app.session_adopt(session)
    app.settle()
    assert app.screen["screen"] == "home"


def test_API_3_the_log_says_which_key_is_not_erased(user: SignedIn, lines: Lines) -> None:
    keychain = with_liar(user.phone)
    app = user.restart()
    keychain.lie = "keeps"
    app.session_lock()
    for _ in range(3):
        app.session_status()
    assert [level for level, _ in told(lines, "erase", "session", "still_there")] == [1], lines
    # It is said anew when it happens again after a success
    keychain.lie = ""
    app.session_status()
    app.touch()
    keychain.lie = "keeps"
    app.session_lock()
    assert len(told(lines, "erase", "session", "still_there")) == 2


@pytest.mark.parametrize("loss", ["not_found", "other_key"])
def test_API_3_a_lost_device_key_says_what_the_store_has(
    user: SignedIn, lines: Lines, loss: str
) -> None:
    user.phone.close()
    if loss == "not_found":
        user.phone.keychain.erase("device")
    else:
        user.phone.keychain.replace("device", bytes(32))
    app = user.phone.open()
    for code in ("keystore.failed", "keystore.key_lost"):
        error = failure(app, "queue_add", ITEM)
        assert error.code == code
        assert error.detail == {"key": "device", "operation": "load", "answer": loss}
        user.phone.pass_time(10)


def test_API_3_a_damaged_key_file_is_named(phones: MakePhone, lines: Lines) -> None:
    """The built-in store: a key file of a wrong length counts as no answer for a while."""
    phone = phones(keystore={"kind": "file"}, policy={"biometric": "preferred"})
    phone.keychain = None  # type: ignore[assignment]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Phone, "key_store", property(lambda _phone: None))
        phone.start()
        phone.close()
        (phone.folder / "keys" / "device.key").write_bytes(b"short")
        error = failure(phone.open(), "queue_add", ITEM)
        phone.close()
    assert error.code == "keystore.failed"
    assert error.detail == {"key": "device", "operation": "load", "answer": "damaged"}
    assert told(lines, "load", "device", "damaged")


# A sign-in ------------------------------------------------------------------------------------


def exchange(app: Any, person: Person) -> None:  # noqa: ANN401
    """Sign in with the password; the answer of the server finds the key store failing."""
    request = {"email": person.email, "password": PASSWORD}
    assert why(app.sign_in_complete(request)) == "signing_in"
    app.settle()


@pytest.mark.parametrize(
    ("call", "name", "answer", "word"),
    [
        ("save", "session", KEY_FAILED, "failed"),
        ("save", "session", KEY_LOCKED, "locked"),
        ("load", "session", KEY_FAILED, "failed"),
    ],
)
def test_API_3_a_key_store_that_fails_ends_a_sign_in_at_once(
    phones: MakePhone,
    directory: DirectoryFixtures,
    lines: Lines,
    call: str,
    name: str,
    answer: int,
    word: str,
) -> None:
    phone = phones()
    person = directory.person(directory.organisation())
    app = phone.start()
    phone.keychain.answer(call, name, *[answer] * 100)
    exchange(app, person)
    assert seen(app.screen) == ("sign_in", "sign_in_failed")
    assert cause(app) == "key_store"
    assert told(lines, name, word), lines
    assert phone.network.count("sign_in") == 1
    app.settle()
    assert directory.control.sessions(person.id) == []
    assert app.session_status()["state"] == "signed_out"
    assert app.session_status()["owed"] == []
    for _ in range(8):
        app.wait(15)
    assert phone.network.count("sign_in") == 1
    assert app.screen["screen"] == "sign_in"
    phone.keychain.forget_script()
    exchange(app, person)
    assert app.screen["screen"] == "home"
    assert len(directory.control.sessions(person.id)) == 1


@pytest.mark.parametrize("is_locked", [False, True])
def test_API_3_a_sign_in_over_a_session_leaves_it_usable(
    user: SignedIn, directory: DirectoryFixtures, is_locked: bool
) -> None:
    app, keychain = user.app, user.phone.keychain
    if is_locked:
        app.session_lock()
    [before] = directory.control.sessions(user.person.id)
    keychain.answer("save", "session", KEY_FAILED)
    exchange(app, user.person)
    assert seen(app.screen) == ("sign_in", "sign_in_failed")
    assert cause(app) == "key_store"
    assert app.screen["can_unlock"] == is_locked
    assert app.session_status()["state"] == ("locked" if is_locked else "active")
    assert user.phone.network.count("sign_in") == 1
    assert directory.control.sessions(user.person.id) == [before]
    app = user.restart()
    if is_locked:
        assert app.screen["screen"] == "unlock"
        app.touch()
        app.settle()
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("loss", ["answers", "offline"])
def test_API_3_a_session_is_signed_out_when_the_key_store_answers_nothing(
    user: SignedIn, directory: DirectoryFixtures, loss: str
) -> None:
    """The device key, which seals an order to sign out, cannot be loaded either."""
    phone, app = user.phone, user.app
    other = directory.person(user.org)
    # Given another handle that changes something, so that this one asks the store again
    with Host(phone.config, phone.keychain, library=phone.library) as second:
        second.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
        second.session_resume()

        def fail(request: HttpRequest, answer: Answer) -> Answer:
            if request["purpose"] == "sign_in":
                second.session_background()
                for call in ("load", "save", "erase"):
                    for name in ("device", "session", "biometric"):
                        phone.keychain.answer(call, name, *[KEY_FAILED] * 200)
            return answer

        phone.network.alter.append(fail)
        if loss == "offline":
            phone.network.instead.append(
                lambda request: {"error": "offline"} if request["purpose"] == "revoke" else None
            )
        exchange(app, other)
        assert phone.network.count("sign_in") == 1
        assert phone.network.count("revoke") == 1
        assert len(directory.control.sessions(other.id)) == (loss == "offline")
        for _ in range(8):
            phone.pass_time(15)
            app.settle()
        assert phone.network.count("sign_in") == 1
        assert phone.network.count("revoke") == 1, "a try without the key is not repeated"
        phone.keychain.forget_script()
        phone.network.alter.clear()
        app.session_resume()
        app.settle()
    assert app.screen["screen"] == "home"
    assert app.session_status()["user_id"] == user.person.id
