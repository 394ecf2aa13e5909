"""Python's `AsyncHoldfast` with a keychain whose methods are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from holdfast import AsyncHoldfast, KeyStoreAnswer
from holdfast.keystore import KEY_CANCELLED, KEY_LOCKOUT
from holdfast.types import Decision

from support.directory_fixtures import DirectoryFixtures
from support.keychain import KeyChain
from support.screens import why
from support.users import MakePhone


class AsyncChain:
    """A phone's keychain with coroutines; its prompt waits for the user while `waits`."""

    def __init__(self, keychain: KeyChain) -> None:
        self.keychain = keychain
        self.prompts: list[str] = []
        self.shown = asyncio.Event()
        self.waits = False
        self.on_screen = self.most = 0

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        await asyncio.sleep(0)
        if prompt is None:
            if name == "biometric" and name in self.keychain.names():
                raise KeyStoreAnswer(KEY_CANCELLED)
            return self.keychain.load(name)
        self.prompts.append(prompt)
        self.on_screen += 1
        self.most = max(self.most, self.on_screen)
        self.shown.set()
        try:
            if self.waits:
                await asyncio.Event().wait()
            return self.keychain.load(name)
        finally:
            await asyncio.sleep(0)
            self.on_screen -= 1

    async def save(self, name: str, key: bytes, protection: int) -> None:
        await asyncio.sleep(0)
        self.keychain.save(name, key, protection)

    async def erase(self, name: str) -> None:
        await asyncio.sleep(0)
        self.keychain.erase(name)


async def shown(app: AsyncHoldfast) -> Decision:
    """The next screen that does not ask to wait."""
    async for thing in app:
        if "screen" in thing and thing["screen"]["screen"] != "wait":
            return thing["screen"]
    raise AssertionError("closed")


Locked = Callable[[Callable[[AsyncHoldfast, AsyncChain], Awaitable[None]]], None]


@pytest.fixture
def locked(phones: MakePhone, directory: DirectoryFixtures) -> Locked:
    """Tells a story that begins with a member who has locked."""
    phone = phones(clock="system")
    member = directory.person(directory.organisation())

    def tell(story: Callable[[AsyncHoldfast, AsyncChain], Awaitable[None]]) -> None:
        async def main() -> None:
            chain = AsyncChain(phone.keychain)
            arguments: Any = {"transport": phone.network, "library": phone.library}
            async with AsyncHoldfast(phone.config, chain, **arguments) as app:
                session: Any = {"session": phone.directory.session(member)}
                await app.session_adopt(session)
                assert (await shown(app))["screen"] == "home"
                assert phone.keychain.names() == {"device", "session", "biometric"}
                await app.session_lock()
                assert (await shown(app))["screen"] == "unlock"
                assert phone.keychain.names() == {"device", "biometric"}
                await story(app, chain)

        asyncio.run(asyncio.wait_for(main(), 60))

    return tell


def test_API_3_asyncio_serves_the_key_store(locked: Locked) -> None:
    async def story(app: AsyncHoldfast, chain: AsyncChain) -> None:
        # What the prompt refuses is its outcome
        chain.keychain.answer("load", "biometric", KEY_LOCKOUT)
        await app.session_unlock()
        refused = await shown(app)
        assert (why(refused), refused["can_unlock"]) == ("biometric_lockout", True)
        # The finger opens the session: it is shown one prompt, and used once
        chain.keychain.present_finger()
        await app.session_unlock()
        assert (await shown(app))["screen"] == "home"
        assert chain.prompts == [app.opened["unlock_prompt"]] * 2
        # A logout erases the keys, and looks for them without a prompt
        await app.session_logout()
        assert (await shown(app))["screen"] == "sign_in"
        assert "erase" not in (await app.session_status())["owed"]
        assert chain.keychain.names() == {"device"}
        assert len(chain.prompts) == 2

    locked(story)


def test_KEYS_7_asyncio_takes_a_prompt_back(locked: Locked) -> None:
    async def story(app: AsyncHoldfast, chain: AsyncChain) -> None:
        chain.waits = True
        unlocking = asyncio.ensure_future(app.session_unlock())
        await chain.shown.wait()
        chain.keychain.present_finger()
        await app.session_lock()
        await unlocking
        while (withdrawn := await shown(app))["message"]["code"] != "biometric_cancelled":
            assert withdrawn["screen"] == "unlock"
        assert withdrawn["can_unlock"]
        assert (await app.session_status())["state"] == "locked"
        chain.shown.clear()
        unlocking = asyncio.ensure_future(app.session_unlock())
        await chain.shown.wait()
        chain.waits = False
        await app.session_unlock()
        await unlocking
        while (await shown(app))["screen"] != "home":
            assert (chain.most, len(chain.prompts)) == (1, 3)
        assert (await app.queue_list())["items"] == []

    locked(story)
