"""How much stack the calls need: hosts run them on threads of their own."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase

from support.damage import destroy_header
from support.directory_fixtures import DirectoryFixtures
from support.hosted import HostedLibrary
from support.paths import BUILDS
from support.phone import App, FilePhone
from support.queue import add, drain

#: What holdfast.h promises to be enough, in bytes.
PROMISED = 128 * 1024
#: Unoptimised and instrumented code needs more.
OTHER = 32 * PROMISED


def room(flavour: str) -> int:
    """The stack that the calls get."""
    return OTHER if flavour == "debug" or "HOLDFAST_SANITIZER" in os.environ else PROMISED


@pytest.fixture
def hosted_on_stack(host_program: Path, flavour: str) -> Iterator[HostedLibrary]:
    """The library in its own process, on a thread with the stack that is promised."""
    library = HostedLibrary(host_program, BUILDS[flavour], room(flavour))
    yield library
    library.end()


def deep(depth: int) -> str:
    """An object in an object, and so on."""
    return '{"a":' * depth + "1" + "}" * depth


def refuse_deep_requests(library: HostedLibrary) -> None:
    """Requests as deep as allowed, and much deeper."""
    for depth in (1, 64, 65, 100_000):
        for name in ("queue_add", "session_adopt", "complete", "route_check"):
            for request in (deep(depth), f'{{"payload":{deep(depth)},"kind":"activity"}}'):
                assert library.call(name, None, request.encode())[0] != 0 or depth == 1
        assert library.call("queue_add", None, ("[" * depth).encode())[0] != 0


def answer_deeply(phone: FilePhone, app: App) -> None:
    """Every answer of the server is as deep as one that the library reads, or much deeper."""
    for depth in (64, 65, 100_000):
        for body in (deep(depth), f"[{deep(depth)}]", "[" * depth + "]" * depth):

            def instead(_request: HttpRequest, body: str = body) -> Answer:
                return {
                    "status": 200,
                    "headers": {"content-type": "application/json"},
                    "body": body,
                }

            phone.network.instead.append(instead)
            app.session_background()
            phone.pass_time(1000)
            app.session_foreground()
            for _ in range(8):
                app.step()
            phone.network.instead.remove(instead)


@pytest.mark.both_flavours
def test_FIX_17_every_call_works_on_the_stack_that_is_promised(
    hosted_on_stack: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    flavour: str,
) -> None:
    library = hosted_on_stack
    phone = FilePhone(tmp_path / "phone", library, backend, policy={"biometric": "off"})
    (tmp_path / "phone").mkdir()
    links = [tmp_path / f"link{number}" for number in range(5)]
    for link, target in zip(links, [*links[1:], tmp_path / "phone"], strict=True):
        link.symlink_to(target)
    phone.config["data_dir"] = str(links[0])
    person = directory.person(directory.organisation(contacts=50))
    used = {}
    app = phone.start()
    app.sign_in(person)
    used["sign-in"] = library.stack_used()
    app.contact_search({"query": "a"})
    app.summary_get()
    app.session_token()
    app.go_offline()
    for number in range(100):
        add(app, minutes=1 + number % 60, note="\u00e6\u1ec7" * 200)
    refuse_deep_requests(library)
    used["requests"] = library.stack_used()
    app.queue_list({"limit": 500})
    app.queue_export({})
    app.queue_explain({})
    used["queue"] = library.stack_used()
    app.go_online()
    drain(app)
    used["sync"] = library.stack_used()
    app.go_offline()
    items = [add(app, minutes=5) for _ in range(50)]
    phone.close()
    with contextlib.closing(sqlite3.connect(phone.folder / "holdfast.db")) as database:
        assert database.execute("SELECT count(*) FROM queue").fetchone() == (50,)
    destroy_header(phone.folder)
    app = phone.start(online=False)
    assert [found["id"] for found in app.queue_list()["items"]] == items
    app.session_logout({"unsent": "discard", "confirm_unsent": len(items)})
    used["recovery"] = library.stack_used()
    app.go_online()
    app.sign_in(person)
    answer_deeply(phone, app)
    used["answers"] = library.stack_used()
    phone.close()
    print(f"{flavour}: {used}")
    assert library.live() == 0
    assert used["answers"] < room(flavour) / 2, used
