"""A key store whose methods are coroutines, and its prompt before `session_unlock`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from fake_library import CONFIG, KEY, PATIENCE_S, FakeLibrary, Reply, coroutine, until
from holdfast import AsyncHoldfast, BusyError, ClosedError, KeyStoreAnswer, Library
from holdfast.async_keystore import LoopKeyStore
from holdfast.keystore import KEY_CANCELLED, KEY_FAILED, KEY_LOCKOUT, KEY_NOT_FOUND, KEY_OK

#: What the library gets from the key store within `session_unlock`.
OPEN = [KEY_OK, KEY.hex()]
CANCELLED = [KEY_CANCELLED, ""]


class Prompting:
    """A key store that shows a prompt until somebody sets `answer`, or takes it back."""

    def __init__(self) -> None:
        self.keys: dict[str, bytes] = {"biometric": KEY}
        self.prompts: list[str] = []
        self.on_screen = 0
        self.answer: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        if prompt is None:
            if name == "biometric" and name in self.keys:
                raise KeyStoreAnswer(KEY_CANCELLED)
            return self.keys.get(name)
        self.prompts.append(prompt)
        self.on_screen += 1
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

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def session_unlock(self, given: object) -> Reply:
        assert given is None
        got = self.load(b"biometric")
        self.order.append("open" if got == OPEN else "refused")
        return 0, json.dumps(got).encode()

    def session_lock(self, _: object) -> Reply:
        self.order.append("lock")
        return 0, json.dumps([self.erase(b"session"), self.load(b"session")[0]]).encode()

    def session_resume(self, _: object) -> Reply:
        return 0, json.dumps([self.save(b"device", KEY), self.load(b"device")[0]]).encode()


@contextlib.asynccontextmanager
async def story(
    kind: type[Prompting] = Prompting, library: Locked | None = None
) -> AsyncIterator[tuple[AsyncHoldfast, Prompting]]:
    store, fake = kind(), cast(Library, library or Locked())
    async with AsyncHoldfast(CONFIG, store, library=fake) as app:
        yield app, store


async def shown(app: AsyncHoldfast, store: Prompting) -> asyncio.Future[Any]:
    """An unlock whose prompt is on the screen."""
    before = len(store.prompts)
    unlocking = asyncio.ensure_future(app.session_unlock())
    await until(lambda: len(store.prompts) > before)
    return unlocking


@coroutine
async def test_the_prompt_comes_before_the_call_and_its_key_serves_this_call_alone() -> None:
    async with story() as (app, store):
        unlocking = await shown(app, store)
        # Other calls do not wait for the user, and the loop carries out what they ask for
        store.keys["session"] = KEY
        assert cast(Any, await app.session_resume()) == [KEY_OK, KEY_OK]
        assert store.keys == {"biometric": KEY, "device": KEY, "session": KEY}
        store.answer.set_result(KEY)
        assert await unlocking == OPEN
        assert store.prompts == ["Open up"]
        # The same load in another call shows no prompt, and has no key
        given = await asyncio.to_thread(app._handle()._call, "session_unlock", None)
        assert cast(Any, given) == CANCELLED
        assert cast(Any, await app.session_lock()) == [KEY_OK, KEY_NOT_FOUND]
        assert len(store.prompts) == 1


@pytest.mark.parametrize(
    ("given", "answer"),
    [
        (None, KEY_NOT_FOUND),
        (KeyStoreAnswer(KEY_LOCKOUT), KEY_LOCKOUT),
        (ZeroDivisionError("no dialog"), KEY_FAILED),
    ],
)
@coroutine
async def test_what_the_prompt_refuses_is_the_answer_within_the_call(
    given: Exception | None, answer: int
) -> None:
    async with story() as (app, store):
        if given is None:
            store.answer.set_result(None)
        else:
            store.answer.set_exception(given)
        assert cast(Any, await app.session_unlock()) == [answer, ""]


@pytest.mark.parametrize("call", ["session_lock", "session_logout"])
@coroutine
async def test_a_lock_or_a_logout_takes_the_prompt_back(call: str) -> None:
    async with story() as (app, store):
        unlocking = await shown(app, store)
        await getattr(app, call)()
        assert await unlocking == CANCELLED
        assert store.on_screen == 0


@pytest.mark.parametrize("steps", range(8))
@coroutine
async def test_a_lock_at_the_moment_of_the_answer_comes_after_the_unlock_or_withdraws_it(
    steps: int,
) -> None:
    library = Locked()

    async with story(library=library) as (app, store):
        unlocking = await shown(app, store)
        store.answer.set_result(KEY)
        for _ in range(steps):
            await asyncio.sleep(0)
        await app.session_lock()
        await unlocking
        # Never a session that opens behind the lock
        assert library.order in (["open", "lock"], ["lock", "refused"])


@coroutine
async def test_a_prompt_that_ignores_its_withdrawal_opens_nothing() -> None:
    class Stubborn(Prompting):
        async def load(self, name: str, prompt: str | None) -> bytes | None:
            try:
                return await super().load(name, prompt)
            except asyncio.CancelledError:
                return KEY

    async with story(Stubborn) as (app, store):
        unlocking = await shown(app, store)
        await app.session_lock()
        assert await unlocking == CANCELLED


@coroutine
async def test_an_unlock_that_the_app_gives_up_takes_its_prompt_back() -> None:
    async with story() as (app, store):
        unlocking = await shown(app, store)
        unlocking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unlocking
        await until(lambda: store.on_screen == 0)
        # And the next one shows its own
        again = await shown(app, store)
        store.answer.set_result(KEY)
        assert await again == OPEN


@coroutine
async def test_closing_takes_the_prompt_back() -> None:
    async with story() as (app, store):
        unlocking = await shown(app, store)
        await app.close()
        with contextlib.suppress(ClosedError):
            assert await unlocking == CANCELLED
        assert store.on_screen == 0
        # Afterwards no prompt is shown
        with pytest.raises(ClosedError):
            await app.session_unlock()
        assert len(store.prompts) == 1


@coroutine
async def test_a_key_store_that_calls_the_library_is_refused() -> None:
    """The call waits for the key store, so each would wait for the other."""
    refused: list[str] = []

    class Calling(Prompting):
        app: AsyncHoldfast

        async def erase(self, name: str) -> None:
            with pytest.raises(BusyError) as raised:
                await self.app.session_status()
            refused.append(raised.value.code)

    async with story(Calling) as (app, store):
        cast(Calling, store).app = app
        assert cast(Any, await app.session_lock())[0] == KEY_OK
    assert refused == ["handle.reentered"]


@coroutine
async def test_a_coroutine_without_an_end_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.async_keystore.PATIENCE_S", 0.05)
    cancelled: list[bool] = []

    class Hanging(Prompting):
        async def erase(self, name: str) -> None:
            try:
                await asyncio.sleep(PATIENCE_S)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

    async with story(Hanging) as (app, _):
        assert cast(Any, await app.session_lock()) == [KEY_FAILED, KEY_NOT_FOUND]
        # What was given up does not take effect later
        await until(lambda: cancelled)


@coroutine
async def test_a_released_key_is_for_the_call_of_its_thread_alone() -> None:
    keys = LoopKeyStore(Prompting())
    keys.loop = asyncio.get_running_loop()

    def loaded() -> object:
        try:
            return keys.load("biometric")
        except KeyStoreAnswer as refused:
            return refused.answer

    def both() -> tuple[object, object]:
        with ThreadPoolExecutor(1) as elsewhere:
            return loaded(), elsewhere.submit(loaded).result(PATIENCE_S)

    assert await asyncio.to_thread(keys.call, KEY, both) == (KEY, KEY_CANCELLED)
