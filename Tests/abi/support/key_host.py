"""Hosts with the key store `host`, which answer key requests when the test says so."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from holdfast import AsyncHoldfast, Holdfast, HoldfastError
from holdfast.key_requests import serve

from . import secrecy
from .directory_fixtures import DirectoryFixtures, Person
from .keychain import KeyChain
from .phone import Phone
from .users import MakePhone

HOST = {"keystore": {"kind": "host"}}
ITEM = {
    "kind": "activity",
    "payload": {"type": "visit", "minutes": 5},
    "occurred_at_ms": 1_795_000_000_000,
}

Request = dict[str, Any]


class Host:
    """A host that answers HTTP at once, and key requests when the test says so."""

    def __init__(self, phone: Phone) -> None:
        self.phone = phone
        self.app = Holdfast(phone.config, library=phone.library)
        self.asked: list[Request] = []
        self.shown: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.clock()

    def clock(self) -> None:
        now: Any = {"now_ms": self.phone.now_ms, "monotonic_ms": self.phone.monotonic_ms}
        self.app.clock_set(now)

    def pass_time(self, seconds: float) -> None:
        self.phone.now_ms += round(seconds * 1000)
        self.phone.monotonic_ms += round(seconds * 1000)
        self.clock()

    def call(self, name: str, request: Any = None) -> tuple[str, str]:  # noqa: ANN401
        """Make a call that answers with a decision."""
        reply = getattr(self.app, name)(request) if request else getattr(self.app, name)()
        self.shown = reply.get("decision", reply)
        return self.screen

    @property
    def screen(self) -> tuple[str, str]:
        return self.shown["screen"], self.shown["reason"]

    @property
    def banners(self) -> list[str]:
        return [banner["code"] for banner in self.shown["banners"]]

    def poll(self) -> list[Request]:
        """Poll, send the requests, draw the decisions; returns the new key requests."""
        polled: Any = self.app.poll({"only_new": True})
        for event in polled["events"]:
            self.events.append(event)
            if event["type"] == "decision":
                self.shown = event["decision"]
        for request in polled["requests"]:
            answer = self.phone.network(request)
            self.app.complete({"id": request["id"], **answer})  # type: ignore[arg-type]
        self.asked += polled["key_requests"]
        return list(polled["key_requests"])

    def settle(self, limit: int = 60) -> None:
        """Poll and answer until there is nothing to do."""
        for _ in range(limit):
            before = len(self.events), len(self.phone.network.sent)
            asked = self.poll()
            for request in asked:
                self.serve(request)
            if not asked and (len(self.events), len(self.phone.network.sent)) == before:
                return
        raise AssertionError("the library asks without an end")

    def serve(self, request: Request) -> bool:
        """Carry out a key request in the phone's keychain, and pass the outcome on."""
        outcome = serve(self.phone.keychain, request)  # type: ignore[arg-type]
        secrecy.current.add("key", outcome.get("value"))
        return self.app.key_complete(outcome)["accepted"]

    def next(self, operation: str, name: str) -> Request:
        """Poll and answer until this operation is asked for; it stays without an answer."""
        for _ in range(60):
            for request in self.poll():
                if (request["operation"], request["name"]) == (operation, name):
                    return request
                self.serve(request)
        raise AssertionError(f"no {operation} of {name}")

    def answer(self, request: Request, result: str, key: bytes | None = None) -> bool:
        given: Any = {"id": request["id"], "result": result}
        if key is not None:
            given["value"] = base64.b64encode(key).decode()
        return self.app.key_complete(given)["accepted"]

    def start(self, person: Person) -> tuple[str, str]:
        """Pass a session that the host obtained."""
        return self.call("session_start", {"session": self.phone.directory.session(person)})

    def restart(self) -> Host:
        self.app.close()
        self.__init__(self.phone)  # type: ignore[misc]
        return self


MakeHost = Callable[..., Host]


@pytest.fixture
def hosts(phones: MakePhone) -> Iterator[MakeHost]:
    """Makes hosts; `on` puts another one on the folder of an earlier one."""
    made: list[Host] = []

    def make(on: Host | None = None, **options: Any) -> Host:  # noqa: ANN401
        phone = on.phone if on else phones(**{**HOST, **options})
        made.append(Host(phone))
        return made[-1]

    yield make
    for host in made:
        host.app.close()


@pytest.fixture
def member(directory: DirectoryFixtures) -> Person:
    """A member of one organisation."""
    return directory.person(directory.organisation())


@pytest.fixture
def host(hosts: MakeHost, member: Person) -> Host:
    """A signed-in user at home."""
    host = hosts()
    host.call("session_resume")
    host.start(member)
    host.settle()
    assert host.screen[0] == "home"
    return host


def refused(host: Host, name: str, request: Any = None) -> str:  # noqa: ANN401
    with pytest.raises(HoldfastError) as caught:
        getattr(host.app, name)(request or {})
    return str(caught.value.code)


def begin_unlock(host: Host) -> None:
    """A locked session whose user touches the sensor."""
    host.call("session_lock")
    host.settle()
    host.phone.keychain.present_finger()
    assert host.call("session_unlock", {"outcome": "success"}) == ("wait", "keystore_pending")


def told_off(host: Host) -> list[int]:
    """Poll, and return the requests that the library no longer needs."""
    polled: Any = host.app.poll({"only_new": True})
    host.asked += polled["key_requests"]
    for request in polled["key_requests"]:
        host.serve(request)
    return list(polled["key_cancelled"])


class AsyncChain:
    """The phone's keychain behind coroutines."""

    def __init__(self, keychain: KeyChain) -> None:
        self.keychain = keychain
        self.prompts: list[str] = []

    async def load(self, name: str, prompt: str | None) -> bytes | None:
        await asyncio.sleep(0)
        if prompt is not None:
            self.prompts.append(prompt)
        return self.keychain.load(name)

    async def save(self, name: str, key: bytes, protection: int) -> None:
        await asyncio.sleep(0)
        self.keychain.save(name, key, protection)

    async def erase(self, name: str) -> None:
        await asyncio.sleep(0)
        self.keychain.erase(name)


async def screens(app: AsyncHoldfast, wanted: str) -> dict[str, Any]:
    """The first decision from the events with this screen."""
    async for event in app.events():
        if event["type"] == "decision" and event["decision"]["screen"] == wanted:
            return dict(event["decision"])
    raise AssertionError(f"no decision {wanted}")
