"""Key requests come one at a time, and none is lost or kept when it is of no use any more.

Issue 16, point 3, as newcomers used it: a keychain that takes 300 ms, a user who locks while an
unlock is under way, a prompt that stays on the screen, and answers that are wrong.
"""

from __future__ import annotations

import asyncio
import base64
import queue
import select
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from holdfast import AsyncHoldfast, Holdfast, HoldfastError, KeyStoreAnswer, Runner, ThreadTransport
from holdfast.key_requests import serve
from holdfast.keystore import KEY_CANCELLED, KEY_FAILED

from conftest import MakePhone
from support import history
from support.directory_fixtures import Person
from support.key_host import (
    HOST,
    ITEM,
    AsyncChain,
    Host,
    MakeHost,
    Request,
    begin_unlock,
    refused,
    screens,
    told_off,
)
from support.keychain import KeyChain

#: The functions of a key store are what `make test` proves; the mailbox is in CI.
pytestmark = pytest.mark.slow


def driven(host: Host) -> list[Request]:
    """Poll and answer while the descriptor says so, as a driver does; returns what was asked."""
    seen = len(host.asked)
    for _ in range(60):
        if not select.select([host.app.wake_fd()], [], [], 0)[0]:
            return host.asked[seen:]
        for request in host.poll():
            host.serve(request)
    raise AssertionError("the library asks without an end")


# Another handle locks or unlocks --------------------------------------------------------------


@pytest.fixture
def other(host: Host) -> Iterator[Host]:
    """A second handle on the folder, of another app with the same keychain."""
    other = Host(host.phone)
    other.call("session_resume")
    other.settle()
    host.settle()
    yield other
    other.app.close()


def test_KEYS_1_an_answer_from_before_a_lock_opens_nothing(host: Host, other: Host) -> None:
    """Attack 6, 2: the host had read the key before another handle erased it."""
    before = history.read(host.phone.folder)
    host.app.queue_add({"kind": "activity", **ITEM})
    host.settle()
    # Given a handle whose host has read `session` and not answered yet
    other.app.session_status()
    question = other.next("load", "session")
    key = host.phone.keychain.load("session")
    # When the user locks, and older files come back
    host.call("session_lock")
    host.settle()
    assert "session" not in host.phone.keychain.names()
    history.put(host.phone.folder, before)
    other.app.session_status()
    other.answer(question, "ok", key)
    # Then
    with pytest.raises(HoldfastError):
        other.app.session_token()
    other.settle()
    with pytest.raises(HoldfastError):
        other.app.session_token()


def test_KEYS_4_a_refused_erasure_ends_with_an_unlock_by_another_handle(
    host: Host, other: Host
) -> None:
    """The host is not asked for ever for a key that is another one meanwhile."""
    host.phone.keychain.answer("erase", "session", KEY_FAILED)
    host.call("session_lock")
    host.settle()
    other.settle()
    host.phone.keychain.present_finger()
    other.call("session_unlock", {"outcome": "success"})
    other.settle()
    assert other.screen[0] == "home"
    asked = len(host.asked)
    for _ in range(60):
        host.pass_time(1)
        host.settle()
    assert len(host.asked) - asked < 20
    assert host.app.session_status()["owed"].count("erase") == 0
    assert host.call("session_resume")[0] in {"home", "wait"}
    host.settle()
    assert host.screen[0] == "home"


def test_KEYS_4_a_call_goes_on_while_another_handle_changes_keys(host: Host, other: Host) -> None:
    """A handle whose host has refused an erasure gets requests and events all the same."""
    # Given a handle that owes an erasure
    host.phone.keychain.answer("erase", "session", KEY_FAILED)
    host.call("session_lock")
    host.settle()
    other.settle()
    # When the user unlocks in another handle, whose host has not saved the key yet
    host.phone.keychain.present_finger()
    other.call("session_unlock", {"outcome": "success"})
    save = other.next("save", "session")
    # Then the first one's calls go on
    assert host.app.poll({"only_new": True})["requests"] == []
    # and both are in afterwards
    other.serve(save)
    other.settle()
    assert other.screen[0] == "home"
    host.pass_time(3)
    host.call("session_resume")
    host.settle()
    assert host.screen[0] == "home"
    assert "session" in host.phone.keychain.names()


# A lock during an unlock ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "name", "answered_after"),
    [
        ("load", "biometric", True),
        ("save", "session", True),
        ("load", "session", True),
        ("load", "device", True),
        ("load", "device", False),
    ],
)
def test_KEYS_1_a_lock_during_an_unlock_erases_the_key_at_once(
    host: Host, operation: str, name: str, answered_after: bool
) -> None:
    """The key of an unlock that a lock overtook stayed in the keychain until the next poll, which
    came up to 30 s later: nothing asked for its erasure when the last answer was there."""
    begin_unlock(host)
    # Given an unlock that waits for this answer
    asked = host.next(operation, name)
    if not answered_after:
        host.serve(asked)
    # When the user locks, and the answer comes
    assert host.call("session_lock")[0] == "unlock"
    if answered_after:
        host.serve(asked)
    # Then the erasure is asked for at once, and nothing is saved any more
    assert "save" not in [r["operation"] for r in driven(host)]
    assert "session" not in host.phone.keychain.names()
    assert host.screen == ("unlock", "user_locked")
    assert "erase" not in host.app.session_status()["owed"]


def test_KEYS_1_an_abandoned_save_is_not_read_back(host: Host) -> None:
    """After a lock the saved key was read back, and `device` with it, before it was erased."""
    begin_unlock(host)
    save = host.next("save", "session")
    host.call("session_lock")
    host.serve(save)
    assert [(r["operation"], r["name"]) for r in host.poll()] == [("erase", "session")]


def test_KEYS_1_a_save_that_was_not_handed_out_is_not_asked_for(host: Host) -> None:
    """A lock in the moment in which the unlock wants to save: nothing is left to save."""
    begin_unlock(host)
    host.serve(host.next("load", "biometric"))
    host.call("session_lock")
    assert ("save", "session") not in [(r["operation"], r["name"]) for r in host.poll()]
    host.settle()
    assert "session" not in host.phone.keychain.names()


def test_KEYS_1_a_lock_ends_a_sign_in_that_waits(hosts: MakeHost, member: Person) -> None:
    """The session of a `session_start` opened after a `session_lock` that came later."""
    host = hosts()
    host.call("session_resume")
    host.settle()
    host.start(member)
    save = host.next("save", "session")
    assert host.call("session_lock")[0] == "sign_in"
    host.serve(save)
    host.settle()
    assert host.screen[0] == "sign_in"
    assert host.phone.keychain.names() == {"device"}
    assert refused(host, "queue_list") == "session.none"


# Home means that the calls work -----------------------------------------------------------------


@pytest.mark.parametrize("way", ["unlock", "sign-in", "lock and unlock"])
def test_KEYS_2_the_calls_work_when_home_is_shown(
    hosts: MakeHost, member: Person, way: str
) -> None:
    """`home` was shown, `session` was asked for once more, and calls failed: `keystore.pending`."""
    host = hosts()
    host.call("session_resume")
    host.settle()
    host.start(member)
    if way != "sign-in":
        host.settle()
        if way != "unlock":
            host.call("session_lock")
        host.phone.keychain.present_finger()
        if way == "unlock":
            begin_unlock(host)
        host.call("session_unlock", {"outcome": "success"})
    # When the decision `home` is shown
    while host.screen[0] != "home":
        assert select.select([host.app.wake_fd()], [], [], 5)[0]
        asked = host.poll()
        if host.screen[0] != "home":
            for request in asked:
                host.serve(request)
    assert asked == []
    # Then calls work at once, and no key is asked for any more
    assert host.app.queue_list()["items"] == []
    assert host.app.queue_add(ITEM)["id"]  # type: ignore[arg-type]
    seen = len(host.asked)
    host.settle()
    assert host.asked[seen:] == []


# One at a time ----------------------------------------------------------------------------------


def test_KEYS_3_a_second_prompt_waits_for_the_first_one(host: Host) -> None:
    """A lock and another unlock while the prompt was on the screen: two prompts at once."""
    begin_unlock(host)
    first = host.next("load", "biometric")
    host.call("session_lock")
    # Then the host is told, once, that nobody needs that prompt any more
    assert told_off(host) == [first["id"]]
    assert told_off(host) == []
    # When the user asks again, then no second prompt is asked for while the first one is shown
    host.call("session_unlock", {"outcome": "success"})
    seen = len(host.asked)
    for _ in range(3):
        for request in host.poll():
            assert request["name"] != "biometric"
            host.serve(request)
    # When the host has dismissed it, then its answer is taken, and the next prompt follows
    assert host.answer(first, "cancelled")
    second = host.next("load", "biometric")
    assert second["prompt"] and second["id"] != first["id"]
    assert [r["name"] for r in host.asked[seen:]].count("biometric") == 1
    host.phone.keychain.present_finger()
    assert host.serve(second)
    host.settle()
    assert host.screen == ("home", "unlocked")


def test_KEYS_3_the_answer_of_a_cancelled_prompt_opens_nothing(host: Host) -> None:
    """The user touches the sensor for the prompt of an unlock that a lock has ended."""
    begin_unlock(host)
    first = host.next("load", "biometric")
    host.call("session_lock")
    host.call("session_unlock", {"outcome": "success"})
    assert host.serve(first), "its answer is taken"
    assert not host.serve(first), "but not twice"
    host.poll()
    assert host.screen == ("wait", "keystore_pending")
    second = next(r for r in host.asked if r["name"] == "biometric" and r["id"] > first["id"])
    assert host.answer(second, "cancelled")
    host.settle()
    assert host.screen == ("sign_in", "biometric_cancelled")
    assert refused(host, "queue_list") == "session.locked"


def test_KEYS_3_a_cancelled_prompt_without_an_answer_ends_in_the_end(host: Host) -> None:
    """A host that never answers for the prompt that it dismissed."""
    begin_unlock(host)
    first = host.next("load", "biometric")
    host.call("session_lock")
    host.settle()
    host.phone.keychain.present_finger()
    host.call("session_unlock", {"outcome": "success"})
    host.settle()
    assert host.screen == ("wait", "keystore_pending")
    host.pass_time(first["timeout_ms"] / 1000 + 1)
    host.settle()
    assert not host.answer(first, "cancelled")
    assert host.screen[0] in {"home", "unlock"}
    host.call("session_unlock", {"outcome": "success"})
    host.settle()
    assert host.screen[0] == "home"


def test_KEYS_3_no_name_has_two_requests(host: Host, member: Person) -> None:
    """Loads that counted no more were asked for again while the host still worked on the first."""
    host.restart()
    open_requests: dict[int, Any] = {}

    def draw() -> None:
        polled: Any = host.app.poll({"only_new": True})
        for request in polled["requests"]:
            answer = host.phone.network(request)
            host.app.complete({"id": request["id"], **answer})  # type: ignore[arg-type]
        for request in polled["key_requests"]:
            others = [r for r in open_requests.values() if r["name"] == request["name"]]
            # An erasure does not wait for a load that is of no use any more.
            assert not others or request["operation"] == "erase", (request, others)
            open_requests[request["id"]] = request

    def answer_one() -> None:
        if open_requests:
            host.serve(open_requests.pop(next(iter(open_requests))))

    # A user who does everything twice, over a keychain that answers late
    host.phone.keychain.present_finger()
    for name, given in [
        ("session_resume", None),
        ("session_lock", None),
        ("session_unlock", {"outcome": "success"}),
        ("session_lock", None),
        ("session_unlock", {"outcome": "success"}),
        ("session_background", None),
        ("session_foreground", None),
        ("session_lock", None),
        ("session_unlock", {"outcome": "success"}),
        ("session_logout", None),
        ("session_start", {"session": host.phone.directory.session(member)}),
        ("session_lock", None),
    ]:
        host.call(name, given)
        draw()
        answer_one()
        draw()
    while open_requests:
        answer_one()
        draw()
    host.settle()
    assert "session" not in host.phone.keychain.names()


# What is owed is told when it is a trouble ------------------------------------------------------


def test_KEYS_4_a_lock_in_the_ordinary_course_shows_no_banner(host: Host) -> None:
    """The banner `erasure_owed` flashed at every lock, while the request was on its way."""
    for name in ("session_lock", "session_logout"):
        host.events.clear()
        host.call(name)
        assert host.banners == []
        # session_status says it exactly
        assert "erase" in host.app.session_status()["owed"]
        host.settle()
        assert "erase" not in host.app.session_status()["owed"]
        drawn = [event["decision"] for event in host.events if event["type"] == "decision"]
        assert [d["banners"] for d in drawn if d["banners"]] == []


def test_KEYS_4_a_refused_erasure_is_told_at_once(host: Host) -> None:
    host.call("session_lock")
    host.answer(host.next("erase", "session"), "failed")
    host.poll()
    assert host.banners == ["erasure_owed"]
    # and it is tried again without a call of the host
    wake = host.app.poll({"only_new": True})["wake_in_ms"]
    assert wake is not None and wake <= 10_000


def test_KEYS_4_an_erasure_without_an_answer_is_told_after_10_s(host: Host) -> None:
    host.call("session_lock")
    erase = host.next("erase", "session")
    host.pass_time(9.9)
    wake = host.app.poll({"only_new": True})["wake_in_ms"]
    assert host.banners == [] and wake is not None and wake <= 100
    host.pass_time(0.2)
    host.poll()
    assert host.banners == ["erasure_owed"]
    # and goes with the answer
    host.serve(erase)
    host.settle()
    assert host.banners == []


# Wrong answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 16, 31, 33, 64])
@pytest.mark.parametrize("name", ["device", "session"])
def test_KEYS_5_a_key_of_another_length_is_refused(host: Host, length: int, name: str) -> None:
    """It was taken for a failure of the store, and nobody was told what is wrong."""
    host.restart().call("session_resume")
    load = host.next("load", name)
    value = base64.b64encode(bytes(length)).decode()
    with pytest.raises(HoldfastError) as caught:
        host.app.key_complete({"id": load["id"], "result": "ok", "value": value})
    assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/value")
    assert "32" in str(caught.value)
    # The request stays open for a right answer
    assert host.poll() == []
    assert host.screen == ("wait", "keystore_pending")
    assert host.serve(load)
    host.settle()
    assert host.screen[0] == "home"


# Biometrics that are not there ------------------------------------------------------------------


@pytest.mark.parametrize("result", ["unavailable", "not_enrolled"])
def test_KEYS_8_a_read_back_says_nothing_about_biometrics(
    hosts: MakeHost, member: Person, result: str
) -> None:
    """After `biometric` was saved, `device` is looked for. Its refusal counted as 'no biometrics
    here', and the session was stored without them."""
    host = hosts()
    host.call("session_resume")
    host.settle()
    host.start(member)
    save = host.next("save", "biometric")
    host.serve(save)
    [check] = host.poll()
    assert (check["operation"], check["name"]) == ("load", "device")
    host.answer(check, result)
    host.settle()
    # Then the sign-in fails, and says why
    assert host.screen == ("sign_in", "sign_in_failed")
    assert host.shown["message"]["cause"] == "key_store"
    # and the next one has its biometrics
    host.pass_time(11)
    host.start(member)
    host.settle()
    begin_unlock(host)
    host.settle()
    assert host.screen == ("home", "unlocked")


# Python's loop ----------------------------------------------------------------------------------


class PromptingChain(AsyncChain):
    """A keychain whose prompt waits for the user, as long as nobody takes it back."""

    def __init__(self, keychain: KeyChain) -> None:
        super().__init__(keychain)
        self.shown = asyncio.Event()
        self.waits = True
        self.on_screen = self.most = 0

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        if prompt is None:
            return await super().load(name, prompt)
        self.on_screen += 1
        self.most = max(self.most, self.on_screen)
        self.shown.set()
        try:
            if self.waits:
                await asyncio.Event().wait()
            return await super().load(name, prompt)
        finally:
            self.on_screen -= 1


def test_KEYS_7_asyncio_takes_a_prompt_back(phones: MakePhone, member: Person) -> None:
    """The prompt of an unlock that a lock had ended stayed on the screen, and the next one came."""
    phone = phones(clock="system", **HOST)

    async def story() -> None:
        chain = PromptingChain(phone.keychain)
        transport = ThreadTransport(phone.network)
        async with AsyncHoldfast(
            phone.config, chain, transport=transport, library=phone.library
        ) as app:
            await app.session_resume()
            await screens(app, "sign_in")
            await app.session_start({"session": phone.directory.session(member)})  # type: ignore[typeddict-item]
            await screens(app, "home")
            await app.session_lock()
            await app.session_unlock({"outcome": "success"})
            await chain.shown.wait()
            # When the user locks while the prompt is shown, and unlocks again
            await app.session_lock()
            chain.waits = False
            phone.keychain.present_finger()
            await app.session_unlock({"outcome": "success"})
            # Then there is one prompt at a time, and the second one opens the session
            await screens(app, "home")
            assert (chain.most, len(chain.prompts)) == (1, 1)
            assert (await app.queue_list())["items"] == []

    asyncio.run(asyncio.wait_for(story(), 60))


class BlockingChain:
    """A keychain with functions that block; its first prompt waits until somebody takes it back."""

    def __init__(self, keychain: KeyChain) -> None:
        self.keychain = keychain
        self.shown, self.dismissed = threading.Event(), threading.Event()
        self.unlocking = False
        self.save, self.erase = keychain.save, keychain.erase

    def load(self, name: str) -> bytes | None:
        if name == "biometric" and self.unlocking:
            self.shown.set()
            assert self.dismissed.wait(60)
            self.unlocking = False
            raise KeyStoreAnswer(KEY_CANCELLED)
        return self.keychain.load(name)

    def cancel(self, name: str) -> None:
        assert name == "biometric"
        self.dismissed.set()


def test_KEYS_7_the_runner_takes_a_prompt_back(phones: MakePhone, member: Person) -> None:
    """Newcomers' complaint 6: a prompt held up the runner's polls until the user answered it."""
    phone = phones(clock="system", **HOST)
    chain = BlockingChain(phone.keychain)
    events: queue.Queue[Any] = queue.Queue()

    def screen(wanted: str) -> None:
        while events.get(timeout=60).get("decision", {}).get("screen") != wanted:
            pass

    with (
        Holdfast(phone.config, library=phone.library) as app,
        Runner(app, events.put, phone.network, keystore=chain),
    ):
        app.session_resume()
        screen("sign_in")
        app.session_start({"session": phone.directory.session(member)})  # type: ignore[typeddict-item]
        screen("home")
        app.session_lock()
        chain.unlocking = True
        app.session_unlock({"outcome": "success"})
        assert chain.shown.wait(60)
        # When the user locks while the prompt is shown, and unlocks again
        app.session_lock()
        assert chain.dismissed.wait(60)
        phone.keychain.present_finger()
        app.session_unlock({"outcome": "success"})
        screen("home")
        assert app.queue_list()["items"] == []


def test_KEYS_7_asyncio_takes_a_prompt_of_a_thread_back(phones: MakePhone, member: Person) -> None:
    """Only coroutines were cancelled: the prompt of a `KeyStore` stayed on the screen."""
    phone = phones(clock="system", **HOST)
    chain = BlockingChain(phone.keychain)

    async def story() -> None:
        transport = ThreadTransport(phone.network)
        async with AsyncHoldfast(
            phone.config, chain, transport=transport, library=phone.library
        ) as app:
            await app.session_resume()
            await screens(app, "sign_in")
            await app.session_start({"session": phone.directory.session(member)})  # type: ignore[typeddict-item]
            await screens(app, "home")
            await app.session_lock()
            chain.unlocking = True
            await app.session_unlock({"outcome": "success"})
            assert await asyncio.to_thread(chain.shown.wait, 60)
            await app.session_lock()
            assert await asyncio.to_thread(chain.dismissed.wait, 60)
            phone.keychain.present_finger()
            await app.session_unlock({"outcome": "success"})
            await screens(app, "home")
            # And when the handle closes while another prompt is shown
            await app.session_lock()
            chain.shown.clear()
            chain.dismissed.clear()
            chain.unlocking = True
            await app.session_unlock({"outcome": "success"})
            assert await asyncio.to_thread(chain.shown.wait, 60)
        assert chain.dismissed.is_set()

    asyncio.run(asyncio.wait_for(story(), 60))


def test_the_keychain_is_the_phones(host: Host) -> None:
    """The tests above mean something only if the host serves what it was given."""
    assert serve(host.phone.keychain, {"id": 1, "operation": "load", "name": "nothing"}) == {  # type: ignore[typeddict-item]
        "id": 1,
        "result": "not_found",
    }
