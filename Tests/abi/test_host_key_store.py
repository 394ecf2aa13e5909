"""The key store `host`: key requests come out of `poll`, and `key_complete` answers them.

Issue 16, point 3: hosts whose keychains are asynchronous need no native callbacks. Every decision
that needs a key is `wait` until it is there, and nothing is acknowledged before a save is
confirmed. The tests answer late, with each failure, twice, never, out of order, with unknown ids
and with wrong lengths, kill between a request and its answer, and run two handles.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from holdfast import AsyncHoldfast, Holdfast, HoldfastError, Library, Runner, ThreadTransport
from holdfast.key_requests import serve

from conftest import MakePhone
from support import tamper
from support.directory_fixtures import PASSWORD, Person
from support.key_host import HOST, ITEM, AsyncChain, Host, MakeHost, refused, screens
from support.phone import TOKEN_S

# The whole story --------------------------------------------------------------------------------


def test_API_3_a_first_start_waits_for_the_host(hosts: MakeHost) -> None:
    # Given a new folder
    host = hosts()
    assert host.app.opened["keystore"] == "host"
    # When the app starts, then it waits, and calls that need a key can be tried again
    assert host.call("session_resume") == ("wait", "keystore_pending")
    assert refused(host, "queue_add", ITEM) == "keystore.pending"
    # and the poll asks for the device key once
    [load] = host.poll()
    assert (load["operation"], load["name"], load["protection"]) == ("load", "device", "device")
    assert (load["value"], load["prompt"]) == (None, None)
    assert host.poll() == []
    # When there is none, then a new one is saved and read back before anything is shown
    assert host.answer(load, "not_found")
    save = host.next("save", "device")
    assert len(base64.b64decode(save["value"])) == 32
    host.poll()
    assert host.screen == ("wait", "keystore_pending")
    assert host.serve(save)
    host.poll()
    assert host.screen == ("wait", "keystore_pending"), "it was not read back yet"
    host.serve(host.asked[-1])
    host.settle()
    assert host.screen == ("sign_in", "session_missing")
    assert host.phone.keychain.names() == {"device"}


def test_API_3_the_whole_story(host: Host, member: Person) -> None:
    """HST-2."""
    # Given a user at home, with biometrics enrolled
    keychain = host.phone.keychain
    assert keychain.names() == {"device", "session", "biometric"}
    saved = [r for r in host.asked if r["operation"] == "save" and r["name"] == "biometric"]
    assert [r["protection"] for r in saved] == ["biometric"]
    item = host.app.queue_add(ITEM)["id"]  # type: ignore[arg-type]
    host.settle()
    assert host.app.queue_get({"id": item})["state"] == "stored"
    # A restart asks for two keys and goes home. The closed handle's last change may be heard late:
    # then the session key is asked for once more.
    host.restart()
    assert host.call("session_resume") == ("wait", "keystore_pending")
    host.settle()
    assert host.screen[0] == "home"
    asked = dict.fromkeys((r["operation"], r["name"]) for r in host.asked)
    assert list(asked) == [("load", "device"), ("load", "session")]
    # After a lock the status says that the key is still there, until the host has erased it
    assert host.call("session_lock") == ("unlock", "user_locked")
    assert "erase" in host.app.session_status()["owed"]
    host.settle()
    assert host.banners == []
    assert "session" not in keychain.names()
    assert "erase" not in host.app.session_status()["owed"]
    assert refused(host, "queue_list") == "session.locked"
    # An unlock waits for the key behind presence, and asks with the prompt's text
    keychain.present_finger()
    assert host.call("session_unlock", {"outcome": "success"}) == ("wait", "keystore_pending")
    load = host.next("load", "biometric")
    assert (load["protection"], bool(load["prompt"])) == ("biometric", True)
    assert host.screen == ("wait", "keystore_pending")
    host.serve(load)
    host.settle()
    assert host.screen == ("home", "unlocked")
    assert "session" in keychain.names()
    # A long time in the background locks
    host.call("session_background")
    host.pass_time(301)
    assert host.call("session_foreground") == ("unlock", "background_timeout")
    host.settle()
    keychain.present_finger()
    host.call("session_unlock", {"outcome": "success"})
    host.settle()
    assert host.screen[0] == "home"
    # A logout erases both keys
    reply = host.app.session_logout()
    assert reply["decision"]["reason"] == "signed_out"
    host.settle()
    assert keychain.names() == {"device"}
    host.start(member)
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_the_prompt_is_only_asked_for_at_an_unlock(host: Host) -> None:
    host.call("session_lock")
    host.settle()
    host.restart().call("session_resume")
    host.settle()
    host.app.session_logout()
    host.settle()
    loads = [r for r in host.asked if (r["operation"], r["name"]) == ("load", "biometric")]
    # The check after the erasure shows none
    assert [load["prompt"] for load in loads] == [None]


def test_API_3_at_once_in_the_background_erases_and_comes_back(
    hosts: MakeHost, member: Person
) -> None:
    host = hosts(policy={"lock_on_background": "at_once"})
    host.call("session_resume")
    host.start(member)
    host.settle()
    host.call("session_background")
    host.settle()
    assert "session" not in host.phone.keychain.names()
    host.call("session_foreground")
    assert host.screen[0] == "home", "the session is open in this process"
    host.settle()
    assert "session" in host.phone.keychain.names()
    host.restart().call("session_resume")
    host.settle()
    assert host.screen[0] == "home"


# Nothing is acknowledged before a save is confirmed ---------------------------------------------


@pytest.mark.parametrize("name", ["session", "biometric"])
@pytest.mark.parametrize("is_saved", [False, True])
def test_API_3_killed_between_a_save_and_its_answer(
    hosts: MakeHost, member: Person, name: str, is_saved: bool
) -> None:
    """The host dies before it answers, without and with the key in its store."""
    host = hosts()
    host.call("session_resume")
    host.settle()
    assert host.start(member) == ("wait", "keystore_pending")
    save = host.next("save", name)
    if is_saved:
        serve(host.phone.keychain, save)  # type: ignore[arg-type]
    # Nobody was let in, and nothing is stored
    assert host.screen == ("wait", "keystore_pending")
    assert tamper.read(host.phone.folder, "tokens") is None
    host.restart().call("session_resume")
    host.settle()
    assert host.screen == ("sign_in", "session_missing")
    # and the next sign-in works
    host.start(member)
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_an_answer_of_the_server_waits_for_the_keys(hosts: MakeHost, member: Person) -> None:
    """A sign-in with a password: its response is taken, kept, and processed after the save."""
    host = hosts(auth_methods=[{"id": "e", "provider": "email", "flow": "password", "label": "E"}])
    host.call("session_resume")
    host.settle()
    request = {"email": member.email, "password": PASSWORD}
    assert host.call("sign_in_complete", request) == ("wait", "signing_in")
    save = host.next("save", "session")
    assert host.screen == ("wait", "signing_in")
    # Time passes beyond the request's time-out: the response is not lost
    host.pass_time(50)
    host.poll()
    assert host.screen == ("wait", "signing_in")
    host.serve(save)
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_a_refreshed_token_waits_for_the_session_key(hosts: MakeHost, host: Host) -> None:
    """Another handle changed the keys while a refresh was under way: its answer is not lost."""
    host.call("session_lock")
    host.settle()
    host.phone.keychain.present_finger()
    host.call("session_unlock", {"outcome": "success"})
    host.settle()
    host.pass_time(TOKEN_S - 30)
    before = host.phone.directory.refreshes()
    host.settle()
    assert host.phone.directory.refreshes() == before + 1
    host.restart().call("session_resume")
    host.settle()
    assert host.screen[0] == "home"
    assert host.phone.directory.refreshes() == before + 1, "the rotated token was stored"


# Answers of every kind --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("locked", ("wait", "keystore_locked")),
        ("failed", ("wait", "keystore_failed")),
        ("cancelled", ("wait", "keystore_failed")),
        ("lockout", ("wait", "keystore_failed")),
        ("unavailable", ("wait", "keystore_failed")),
    ],
)
@pytest.mark.parametrize("name", ["device", "session"])
def test_API_3_a_refused_load_is_tried_again(
    host: Host, name: str, result: str, shown: tuple[str, str]
) -> None:
    names = host.phone.keychain.names()
    host.restart().call("session_resume")
    assert host.answer(host.next("load", name), result)
    host.settle()
    assert host.screen == shown
    assert host.poll() == [], "it does not ask at once again"
    assert host.phone.keychain.names() == names
    host.pass_time(11)
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_a_resume_asks_again_at_once(host: Host) -> None:
    host.restart().call("session_resume")
    host.answer(host.next("load", "device"), "locked")
    host.settle()
    assert host.call("session_resume") == ("wait", "keystore_pending")
    host.settle()
    assert host.screen[0] == "home"


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ("cancelled", ("sign_in", "biometric_cancelled")),
        ("failed", ("unlock", "biometric_withheld")),
        ("locked", ("unlock", "biometric_withheld")),
        ("lockout", ("sign_in", "biometric_lockout")),
        ("lockout_permanent", ("sign_in", "biometric_lockout_permanent")),
        ("not_enrolled", ("sign_in", "biometric_not_enrolled")),
        ("unavailable", ("sign_in", "biometric_unavailable")),
        ("invalidated", ("sign_in", "key_lost")),
        ("not_found", ("sign_in", "key_lost")),
    ],
)
def test_API_3_the_outcome_of_the_prompt_is_the_answer(
    host: Host, result: str, shown: tuple[str, str]
) -> None:
    host.call("session_lock")
    host.settle()
    host.call("session_unlock", {"outcome": "success"})
    host.answer(host.next("load", "biometric"), result)
    host.settle()
    assert host.screen == shown
    if result in {"cancelled", "failed", "locked", "lockout", "unavailable"}:
        # Another prompt opens the session
        host.phone.keychain.present_finger()
        host.call("session_unlock", {"outcome": "success"})
        host.settle()
        assert host.screen[0] == "home"


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        ("success", ("home", "unlocked")),
        ("cancelled", ("sign_in", "biometric_cancelled")),
        ("lockout", ("sign_in", "biometric_lockout")),
        ("failed", ("sign_in", "biometric_failed")),
    ],
)
def test_API_3_an_unlock_on_a_new_handle_is_asked_once(
    host: Host, outcome: str, shown: tuple[str, str]
) -> None:
    """The outcome was lost while the device key was under way: the user touched it twice."""
    host.call("session_lock")
    host.settle()
    # Given a new handle, and a host that shows its prompt at once
    host.restart()
    host.phone.keychain.present_finger()
    assert host.call("session_unlock", {"outcome": outcome}) == ("wait", "keystore_pending")
    assert refused(host, "queue_list") in {"keystore.pending", "session.locked"}
    # When the keys come, then the unlock goes on
    host.settle()
    assert host.screen == shown
    loads = [r for r in host.asked if r["name"] == "biometric" and r["prompt"]]
    assert len(loads) == (outcome == "success")
    if shown[0] == "home":
        host.restart().call("session_resume")
        host.settle()
        assert host.screen[0] == "home"


def test_API_3_an_unlock_of_an_open_session_on_a_new_handle_lets_in(host: Host) -> None:
    """Nothing is locked: the answer is that of a start."""
    host.restart()
    assert host.call("session_unlock", {"outcome": "success"}) == ("wait", "keystore_pending")
    host.settle()
    assert host.screen[0] == "home"
    assert host.app.queue_list()["items"] == []
    assert "guard" in host.phone.network.purposes()[-3:], "the server confirms it"


def test_API_3_a_late_unlock_opens_nothing_that_another_handle_locked(
    hosts: MakeHost, host: Host
) -> None:
    """The other handle locks again while the new one waits for its keys."""
    host.call("session_lock")
    host.settle()
    other = hosts(on=host)
    host.phone.keychain.present_finger()
    other.call("session_unlock", {"outcome": "success"})
    load = other.next("load", "biometric")
    host.call("session_lock")
    host.settle()
    other.serve(load)
    other.settle()
    assert other.screen[0] == "unlock"
    assert refused(other, "queue_list") == "session.locked"


@pytest.mark.parametrize("result", ["locked", "failed", "unavailable"])
def test_API_3_a_refused_save_ends_the_sign_in_and_keeps_the_session(
    host: Host, member: Person, result: str
) -> None:
    """A sign-in over an open session whose key the host does not save."""
    item = host.app.queue_add(ITEM)["id"]  # type: ignore[arg-type]
    host.start(member)
    assert host.answer(host.next("save", "session"), result)
    host.settle()
    assert host.app.queue_get({"id": item})["state"] in {"pending", "stored"}
    host.restart().call("session_resume")
    host.settle()
    assert host.screen[0] == "home", "the session from before"


@pytest.mark.parametrize("result", ["locked", "failed", "cancelled"])
def test_API_3_a_refused_erasure_stays_owed(host: Host, result: str) -> None:
    host.call("session_lock")
    host.answer(host.next("erase", "session"), result)
    host.settle()
    assert host.screen[0] == "unlock"
    assert host.banners == ["erasure_owed"]
    assert host.poll() == [], "it does not ask at once again"
    host.pass_time(11)
    host.settle()
    assert host.banners == []
    assert "session" not in host.phone.keychain.names()


def test_API_3_an_erasure_is_looked_for(host: Host) -> None:
    """The host says that the key is erased, and still has it."""
    host.call("session_lock")
    host.answer(host.next("erase", "session"), "ok")
    host.settle()
    assert host.banners == ["erasure_owed"]


@pytest.mark.parametrize("kept", ["nothing", "another key"])
def test_API_3_a_save_is_read_back(hosts: MakeHost, member: Person, kept: str) -> None:
    host = hosts()
    host.call("session_resume")
    host.settle()
    host.start(member)
    host.answer(host.next("save", "session"), "ok")
    check = host.next("load", "session")
    if kept == "nothing":
        host.answer(check, "not_found")
    else:
        host.answer(check, "ok", bytes(range(32)))
    host.settle()
    assert host.screen == ("sign_in", "sign_in_failed")
    assert tamper.read(host.phone.folder, "tokens") is None


# Answers that are late, twice, never, out of order, or wrong ------------------------------------


def test_API_3_a_second_answer_and_an_unknown_id_change_nothing(host: Host) -> None:
    host.restart().call("session_resume")
    load = host.next("load", "device")
    assert not host.app.key_complete({"id": load["id"] + 1, "result": "not_found"})["accepted"]
    assert host.serve(load)
    assert not host.app.key_complete({"id": load["id"], "result": "not_found"})["accepted"]
    assert not host.app.key_complete({"id": 0, "result": "ok"})["accepted"]
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_an_operation_without_an_answer_fails_in_the_end(host: Host) -> None:
    host.restart().call("session_resume")
    load = host.next("load", "device")
    host.pass_time(load["timeout_ms"] / 1000 + 1)
    host.poll()
    assert host.screen == ("wait", "keystore_failed")
    # The answer that comes too late is not taken; the next question is answered
    assert not host.serve(load)
    host.pass_time(11)
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_a_save_without_an_answer_lets_nobody_in(hosts: MakeHost, member: Person) -> None:
    host = hosts()
    host.call("session_resume")
    host.settle()
    host.start(member)
    save = host.next("save", "session")
    host.pass_time(save["timeout_ms"] / 1000 + 1)
    host.settle()
    assert host.screen == ("sign_in", "sign_in_failed")
    assert not host.serve(save)
    host.settle()
    assert host.screen[0] == "sign_in"


def test_API_3_answers_out_of_order(host: Host) -> None:
    """A logout asks for two erasures; the host answers the second one first."""
    host.app.session_logout()
    asked = host.poll()
    assert {(r["operation"], r["name"]) for r in asked} == {
        ("erase", "session"),
        ("erase", "biometric"),
    }
    for request in reversed(asked):
        assert host.serve(request)
    host.settle()
    assert host.phone.keychain.names() == {"device"}


def test_API_3_bad_completions_name_the_field(host: Host) -> None:
    host.restart().call("session_resume")
    load = host.next("load", "device")
    for given, code, field in [
        ({"id": load["id"], "result": "ok"}, "request.missing_field", "/value"),
        ({"id": load["id"], "result": "ok", "value": ""}, "request.invalid_value", "/value"),
        ({"id": load["id"], "result": "ok", "value": "***"}, "request.invalid_value", "/value"),
        (
            {"id": load["id"], "result": "failed", "value": "AA=="},
            "request.invalid_value",
            "/value",
        ),
        ({"id": load["id"], "result": "maybe"}, "request.invalid_value", "/result"),
        ({"id": load["id"]}, "request.missing_field", "/result"),
        ({"result": "ok"}, "request.missing_field", "/id"),
        ({"id": load["id"], "result": "failed", "key": ""}, "request.unknown_field", "/key"),
    ]:
        with pytest.raises(HoldfastError) as caught:
            host.app.key_complete(given)  # type: ignore[arg-type]
        assert (caught.value.code, caught.value.field) == (code, field)
    host.serve(load)
    host.settle()
    assert host.screen[0] == "home"


def test_API_3_only_with_the_key_store_host(phones: MakePhone) -> None:
    app = phones().start()
    polled: Any = app.raw("poll", None)
    if app.phone.serves_keys:
        pytest.skip("this run uses the key store host")
    assert "key_requests" not in polled
    with pytest.raises(HoldfastError) as caught:
        app.key_complete({"id": 1, "result": "ok"})
    assert caught.value.code == "config.not_configured"
    with pytest.raises(HoldfastError) as caught:
        Holdfast({**app.phone.config, **HOST}, app.phone.keychain, library=app.phone.library)
    assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/keystore/kind")


# Cancelling -------------------------------------------------------------------------------------


def test_API_3_a_lock_ends_an_unlock_that_waits(host: Host) -> None:
    host.call("session_lock")
    host.settle()
    host.phone.keychain.present_finger()
    host.call("session_unlock", {"outcome": "success"})
    load = host.next("load", "biometric")
    assert host.call("session_lock")[0] == "unlock"
    host.serve(load)
    host.settle()
    assert host.screen == ("unlock", "user_locked")
    assert refused(host, "queue_list") == "session.locked"
    assert "session" not in host.phone.keychain.names()


def test_API_3_a_logout_ends_a_sign_in_that_waits(host: Host, member: Person) -> None:
    host.start(member)
    save = host.next("save", "session")
    host.call("session_logout")
    host.serve(save)
    host.settle()
    assert host.screen == ("sign_in", "signed_out")
    assert host.phone.keychain.names() == {"device"}
    assert tamper.read(host.phone.folder, "tokens") is None


# Several handles --------------------------------------------------------------------------------


def test_API_3_two_new_handles_make_one_device_key(hosts: MakeHost, member: Person) -> None:
    """Both find no key; one of them makes it, and the other waits for that."""
    one = hosts()
    two = hosts(on=one)
    one.call("session_resume")
    two.call("session_resume")
    for host in (one, two):
        host.answer(host.next("load", "device"), "not_found")
    save = one.next("save", "device")
    assert all(r["operation"] == "load" for _ in range(5) for r in two.poll())
    assert two.screen == ("wait", "keystore_pending")
    one.serve(save)
    one.settle()
    assert one.screen == ("sign_in", "session_missing")
    one.start(member)
    one.settle()
    assert one.screen[0] == "home"
    two.pass_time(11)
    two.asked.clear()
    two.call("session_resume")
    two.settle()
    assert two.screen[0] == "home"
    assert {r["operation"] for r in two.asked} <= {"load"}


def test_API_3_another_handle_answers_for_itself(hosts: MakeHost, host: Host) -> None:
    other = hosts(on=host)
    other.call("session_resume")
    load = other.next("load", "device")
    assert not host.app.key_complete({"id": load["id"], "result": "not_found"})["accepted"]
    other.serve(load)
    other.settle()
    assert other.screen[0] == "home"
    # A lock in one handle locks the other one
    host.call("session_lock")
    host.settle()
    other.settle()
    assert other.screen[0] == "unlock"
    assert refused(other, "queue_list") == "session.locked"
    # and so does an unlock open it
    host.phone.keychain.present_finger()
    host.call("session_unlock", {"outcome": "success"})
    host.settle()
    other.settle()
    assert other.screen[0] == "home"


# Migration --------------------------------------------------------------------------------------


def test_API_3_a_folder_of_function_pointers_goes_on(hosts: MakeHost, member: Person) -> None:
    """An app that moves from function pointers to key requests keeps its session, and back."""
    host = hosts()
    pointers = {key: value for key, value in host.phone.config.items() if key != "keystore"}
    host.app.close()
    with Holdfast(pointers, host.phone.keychain, library=host.phone.library) as old:
        old.clock_set({"now_ms": host.phone.now_ms, "monotonic_ms": host.phone.monotonic_ms})
        old.session_resume()
        old.session_start({"session": host.phone.directory.session(member)})
    host.restart().call("session_resume")
    host.settle()
    assert host.screen[0] in {"home", "wait"}
    host.settle()
    assert host.screen[0] == "home"
    host.app.close()
    with Holdfast(pointers, host.phone.keychain, library=host.phone.library) as old:
        old.clock_set({"now_ms": host.phone.now_ms, "monotonic_ms": host.phone.monotonic_ms})
        assert old.session_resume()["screen"] == "home"


# Python's loops ---------------------------------------------------------------------------------


@pytest.mark.parametrize("is_async", [True, False])
def test_API_3_asyncio_serves_the_key_store(
    phones: MakePhone, member: Person, is_async: bool
) -> None:
    phone = phones(clock="system", **HOST)
    chain = AsyncChain(phone.keychain)
    store: Any = chain if is_async else phone.keychain

    async def story() -> None:
        transport = ThreadTransport(phone.network)
        arguments: Any = {"transport": transport, "library": phone.library}
        async with AsyncHoldfast(phone.config, store, **arguments) as app:
            assert (await app.session_resume())["reason"] == "keystore_pending"
            await screens(app, "sign_in")
            session: Any = {"session": phone.directory.session(member)}
            assert (await app.session_start(session))["reason"] == "keystore_pending"
            await screens(app, "home")
            await app.session_lock()
            phone.keychain.present_finger()
            await app.session_unlock({"outcome": "success"})
            await screens(app, "home")
        async with AsyncHoldfast(phone.config, store, **arguments) as app:
            await app.session_resume()
            await screens(app, "home")

    asyncio.run(asyncio.wait_for(story(), 60))
    assert len(chain.prompts) == (1 if is_async else 0)
    assert phone.keychain.names() == {"device", "session", "biometric"}


def test_API_3_the_runner_serves_the_key_store(phones: MakePhone, member: Person) -> None:
    phone = phones(**HOST)
    shown: list[Any] = []
    with Holdfast(phone.config, library=phone.library) as app:
        runner = Runner(app, shown.append, phone.network, keystore=phone.keychain)
        app.session_resume()
        runner.run_until_idle()
        app.session_start({"session": phone.directory.session(member)})
        runner.run_until_idle()
    decisions = [event["decision"] for event in shown if event["type"] == "decision"]
    assert decisions[-1]["screen"] == "home"
    assert phone.keychain.names() == {"device", "session", "biometric"}


@pytest.mark.parametrize("result", ["failed", "locked", "unavailable", "ok but not kept"])
def test_API_3_a_device_key_that_is_not_saved_is_not_asked_for_without_end(
    hosts: MakeHost, result: str
) -> None:
    """A refused save was tried again at once with another key, thousands of times a second."""
    # Given a key store that takes no key
    host = hosts()
    host.call("session_resume")
    asked = 0
    for _ in range(60):
        requests = host.poll()
        for request in requests:
            asked += 1
            if request["operation"] == "load":
                host.answer(request, "not_found")
            else:
                host.answer(request, "ok" if result == "ok but not kept" else result)
        if not requests:
            break
    # Then it is asked for a few times, and the host is told
    assert asked <= 8
    assert host.screen == ("wait", "keystore_locked" if result == "locked" else "keystore_failed")
    # and after a pause, or when somebody asks, it is tried again
    host.pass_time(11)
    host.settle()
    assert host.screen == ("sign_in", "session_missing")


def test_HST_4_an_answer_to_no_key_request_is_a_line_of_the_log(
    host: Host, library: Library
) -> None:
    """Newcomers' finding i: an id that was mistyped or cut to 32 bits was lost without a word."""
    lines: list[str] = []
    library.set_log(1, lambda level, line: lines.append(line))
    wrong: Any = {"id": 4711, "result": "failed"}
    assert host.app.key_complete(wrong) == {"accepted": False}
    assert [line for line in lines if "4711" in line], lines
