"""A key store whose methods are coroutines, and the prompt before `session_unlock`."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from fake_library import PATIENCE_S, FakeLibrary, opened, run, until
from holdfast import AsyncHoldfast, BusyError, ClosedError, KeyStoreAnswer
from holdfast.keystore import (
    KEY_CANCELLED,
    KEY_FAILED,
    KEY_INVALIDATED,
    KEY_LOCKED,
    KEY_LOCKOUT,
    KEY_LOCKOUT_PERMANENT,
    KEY_NOT_ENROLLED,
    KEY_NOT_FOUND,
    KEY_OK,
    KEY_UNAVAILABLE,
    PROTECT_DEVICE,
)

Replied = tuple[int, bytes]

KEY = bytes(range(32))


class Prompting:
    """A key store that shows a prompt until somebody sets `answer`, or takes it back."""

    def __init__(self) -> None:
        self.keys: dict[str, bytes] = {"biometric": KEY}
        self.prompts: list[str] = []
        self.loads: list[str] = []
        self.on_screen = self.most = 0
        self.answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        if prompt is None:
            self.loads.append(name)
            if name == "biometric" and name in self.keys:
                raise KeyStoreAnswer(KEY_CANCELLED)
            return self.keys.get(name)
        self.prompts.append(prompt)
        self.on_screen += 1
        self.most = max(self.most, self.on_screen)
        try:
            return await asyncio.shield(self.answer)
        finally:
            await asyncio.sleep(0)  # the dialog takes its time
            self.on_screen -= 1

    async def save(self, name: str, key: bytes, protection: int) -> None:
        self.keys[name] = key

    async def erase(self, name: str) -> None:
        self.keys.pop(name, None)


class Locked(FakeLibrary):
    """Asks for keys as the library does: "biometric" at an unlock, "session" at a lock."""

    def load(self, name: bytes) -> tuple[int, bytes]:
        room, length = (ctypes.c_uint8 * 32)(), ctypes.c_size_t()
        given = self.keystore.load(None, name, room, 32, ctypes.pointer(length))
        return given, bytes(room)[: length.value]

    def session_unlock(self, given: dict[str, Any]) -> Replied:
        answer, key = self.load(b"biometric") if given["outcome"] == "success" else (None, b"")
        return 0, json.dumps(given | {"answer": answer, "key": key.hex()}).encode()

    def session_lock(self, _: object) -> Replied:
        answers = [self.keystore.erase(None, b"session"), self.load(b"session")[0]]
        return 0, json.dumps({"answers": answers}).encode()

    def session_resume(self, _: object) -> Replied:
        data = (ctypes.c_uint8 * 32)(*KEY)
        saved = self.keystore.save(None, b"device", data, 32, PROTECT_DEVICE)
        return 0, json.dumps({"answers": [saved, *self.load(b"device")[:1]]}).encode()


def story(
    tell: Callable[[AsyncHoldfast, Prompting], Awaitable[None]],
    change: Callable[[Prompting], None] = lambda _: None,
) -> None:
    async def main() -> None:
        store = Prompting()
        change(store)
        async with opened(Locked(), keystore=store) as app:
            await tell(app, store)

    run(main())


def unlock(app: AsyncHoldfast) -> asyncio.Task[dict[str, Any]]:
    return asyncio.create_task(cast(Any, app.session_unlock({"outcome": "success"})))


async def shown(app: AsyncHoldfast, store: Prompting) -> asyncio.Task[dict[str, Any]]:
    """An unlock whose prompt is on the screen."""
    before = len(store.prompts)
    unlocking = unlock(app)
    await until(lambda: len(store.prompts) > before)
    return unlocking


REFUSED = {"outcome": "cancelled", "answer": None, "key": ""}
OPEN = {"outcome": "success", "answer": KEY_OK, "key": KEY.hex()}


def test_the_loop_carries_out_what_a_call_asks_of_the_key_store() -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        store.keys["session"] = KEY
        assert cast(Any, await app.session_resume()) == {"answers": [KEY_OK, KEY_OK]}
        assert cast(Any, await app.session_lock()) == {"answers": [KEY_OK, KEY_NOT_FOUND]}
        assert store.keys == {"biometric": KEY, "device": KEY}

    story(tell)


def test_the_prompt_comes_before_the_call_and_its_key_serves_this_call_alone() -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        unlocking = await shown(app, store)
        # Other calls do not wait for the user
        assert cast(Any, await app.session_resume())["answers"] == [KEY_OK, KEY_OK]
        store.answer.set_result(KEY)
        assert await unlocking == OPEN
        assert store.prompts == ["Open up"]
        # The same load in another call shows no prompt, and has no key
        handle = app._handle()
        given = await asyncio.to_thread(handle._call, "session_unlock", {"outcome": "success"})
        assert given == {"outcome": "success", "answer": KEY_CANCELLED, "key": ""}
        # An outcome of the app's own shows none either
        other = await app.session_unlock({"outcome": "lockout"})
        assert cast(Any, other) == REFUSED | {"outcome": "lockout"}
        assert len(store.prompts) == 1

    story(tell)


@pytest.mark.parametrize(
    ("refusal", "outcome"),
    [
        (None, "invalidated"),
        (KEY_NOT_FOUND, "invalidated"),
        (KEY_CANCELLED, "cancelled"),
        (KEY_FAILED, "failed"),
        (KEY_LOCKOUT, "lockout"),
        (KEY_LOCKOUT_PERMANENT, "lockout_permanent"),
        (KEY_NOT_ENROLLED, "not_enrolled"),
        (KEY_INVALIDATED, "invalidated"),
        (KEY_UNAVAILABLE, "unavailable"),
    ],
)
def test_what_the_prompt_refuses_is_the_outcome(refusal: int | None, outcome: str) -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        if refusal is None:
            store.answer.set_result(None)
        else:
            store.answer.set_exception(KeyStoreAnswer(refusal))
        assert await unlock(app) == REFUSED | {"outcome": outcome}
        assert store.loads == []

    story(tell)


def test_a_prompt_that_raises_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        store.answer.set_exception(ZeroDivisionError("no dialog"))
        assert await unlock(app) == REFUSED | {"outcome": "failed"}

    story(tell)
    assert "no dialog" in caplog.text


def test_the_library_hears_from_the_key_store_that_it_is_locked() -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        store.answer.set_exception(KeyStoreAnswer(KEY_LOCKED))
        assert await unlock(app) == {"outcome": "success", "answer": KEY_CANCELLED, "key": ""}
        assert store.loads == ["biometric"]

    story(tell)


@pytest.mark.parametrize("call", ["session_lock", "session_logout", "session_unlock"])
def test_a_prompt_is_withdrawn(call: str) -> None:
    """A lock, a logout or an outcome of the app's own does not wait for the user."""

    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        unlocking = await shown(app, store)
        request = [{"outcome": "failed"}] if call == "session_unlock" else []
        await getattr(app, call)(*request)
        assert await unlocking == REFUSED
        assert store.on_screen == 0

    story(tell)


@pytest.mark.parametrize("steps", range(8))
def test_a_lock_at_the_moment_of_the_answer_comes_after_the_unlock_or_withdraws_it(
    steps: int,
) -> None:
    order: list[str] = []

    class Noting(Locked):
        def session_unlock(self, given: dict[str, Any]) -> Replied:
            order.append(given["outcome"])
            return super().session_unlock(given)

        def session_lock(self, given: object) -> Replied:
            order.append("lock")
            return super().session_lock(given)

    async def main() -> None:
        store = Prompting()
        async with opened(Noting(), keystore=store) as app:
            unlocking = await shown(app, store)
            store.answer.set_result(KEY)
            for _ in range(steps):
                await asyncio.sleep(0)
            await app.session_lock()
            await unlocking

    run(main())
    # Never a session that opens behind the lock
    assert order in (["success", "lock"], ["lock", "cancelled"])


def test_a_prompt_that_ignores_its_withdrawal_opens_nothing() -> None:
    class Stubborn(Prompting):
        async def load(self, name: str, prompt: str | None) -> bytes | None:
            try:
                return await super().load(name, prompt)
            except asyncio.CancelledError:
                return KEY

    async def main() -> None:
        store = Stubborn()
        async with opened(Locked(), keystore=store) as app:
            unlocking = await shown(app, store)
            await app.session_lock()
            assert await unlocking == REFUSED

    run(main())


def test_the_last_of_several_unlocks_has_the_only_prompt() -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        unlocking = [await shown(app, store)]
        unlocking += [unlock(app), unlock(app)]
        await until(lambda: len(store.prompts) == 2)
        store.answer.set_result(KEY)
        assert [await one for one in unlocking] == [REFUSED, REFUSED, OPEN]
        assert (store.most, len(store.prompts)) == (1, 2)

    story(tell)


def test_an_unlock_that_the_app_gives_up_takes_its_prompt_back() -> None:
    async def tell(app: AsyncHoldfast, store: Prompting) -> None:
        unlocking = await shown(app, store)
        unlocking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unlocking
        await until(lambda: store.on_screen == 0)
        # And the next one shows its own
        again = await shown(app, store)
        store.answer.set_result(KEY)
        assert await again == OPEN

    story(tell)


def test_closing_takes_the_prompt_back() -> None:
    async def main() -> None:
        store = Prompting()
        async with opened(Locked(), keystore=store) as app:
            unlocking = await shown(app, store)
        assert store.on_screen == 0
        # The outcome may reach the library before it is closed
        with contextlib.suppress(ClosedError):
            assert await unlocking == REFUSED
        # Afterwards no prompt is shown
        with pytest.raises(ClosedError):
            await app.session_unlock({"outcome": "success"})
        assert len(store.prompts) == 1

    run(main())


def test_a_key_store_that_calls_the_library_is_refused() -> None:
    """The call waits for the key store, so each would wait for the other."""
    refused: list[str] = []

    class Calling(Prompting):
        app: AsyncHoldfast

        async def erase(self, name: str) -> None:
            with pytest.raises(BusyError) as raised:
                await self.app.session_status()
            refused.append(raised.value.code)

    async def main() -> None:
        store = Calling()
        async with opened(Locked(), keystore=store) as store.app:
            assert cast(Any, await store.app.session_lock())["answers"][0] == KEY_OK

    run(main())
    assert refused == ["handle.reentered"]


def test_a_coroutine_without_an_end_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.async_keystore.PATIENCE_S", 0.05)
    cancelled = False

    class Hanging(Prompting):
        async def erase(self, name: str) -> None:
            nonlocal cancelled
            try:
                await asyncio.sleep(PATIENCE_S)
            except asyncio.CancelledError:
                cancelled = True
                raise

    async def main() -> None:
        async with opened(Locked(), keystore=Hanging()) as app:
            assert cast(Any, await app.session_lock()) == {"answers": [KEY_FAILED, KEY_NOT_FOUND]}
            # What was given up does not take effect later
            await until(lambda: cancelled)

    run(main())
