"""An answer of n bytes costs at most 8 n of memory, whatever its shape, or is refused unread."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.phone import TOKEN_S, FilePhone
from support.queue import EMPTY, RPC, add, stored

if TYPE_CHECKING:
    from holdfast.library import Answer as Called
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest
    from local_supabase import LocalSupabase

    from support.directory_fixtures import DirectoryFixtures
    from support.hosted import HostedLibrary
    from support.phone import App

#: What a small answer may cost, whatever its shape.
FLOOR = 1 << 20
#: Every kind of request gets these; contacts also the larger ones below.
SIZE = 60_000
LARGER = 1_000_000
#: The shapes that are also sent with 14 MB.
LARGEST = ("objects", "arrays", "nested", "contacts")
#: A purpose, or one of several requests with it -> what its URL has.
REQUESTS = {
    "refresh": "", "guard": "", "upload": "", "rpc": "", "read_back": "", "contacts": "updated_at",
    "ids": "select=id,updated_at", "summary": "", "live": "",
}  # fmt: skip
PURPOSES = {"rpc": "upload", "read_back": "upload", "contacts": "pull", "ids": "pull"}


def filled(unit: Callable[[int], str], size: int, most: int = 10**9) -> str:
    """Return an array of numbered units with about this size."""
    count = min(max(size // (len(unit(0)) + 1), 1), most)
    return "[" + ",".join(unit(number) for number in range(count)) + "]"


def object_of(unit: Callable[[int], str], size: int) -> str:
    return "{" + filled(lambda number: f'"{number}":{unit(number)}', size)[1:-1] + "}"


def id_of(number: int) -> str:
    return str(uuid.UUID(int=number + (4 << 76) + (8 << 60)))


def shapes(org: str) -> dict[str, Callable[[int], str]]:
    """The shapes of answers: of a size, except for what a limit of values ends before."""
    time = "2026-01-01T00:00:00+00:00"

    def contact(number: int, more: str = "") -> str:
        return f'{{"id":"{id_of(number)}","org_id":"{org}","name":"Å","updated_at":"{time}"{more}}}'

    def one(unit: str, most: int = 10**9) -> Callable[[int], str]:
        return lambda size: filled(lambda _: unit, size, most)

    return {
        "objects": one("{}"),
        "arrays": one("[]"),
        "numbers": one("0"),
        "texts": one('""'),
        "nested": one("[" * 60 + "]" * 60),
        "members": lambda size: object_of(lambda _: "0", size),
        "objects in a member": lambda size: '{"access_token":' + one("{}")(size) + "}",
        # Just as many values as are read.
        "few objects": one("{}", 131_070 // 2),
        "few arrays": one("[[]]", 131_070 // 3),
        "few members": one('{"":{"":{"":0}}}', 131_070 // 4),
        "few for one question": one("{}", 8_190 // 2),
        "wide": one('{"a":0,"b":0,"c":0,"d":0,"e":0,"f":0,"g":0,"h":0,"i":0}', 13_000),
        "long text": lambda size: '["' + "x" * size + '"]',
        "long message": lambda size: '{"code":"23502","message":"' + "x" * size + '"}',
        "long word": lambda size: '{"error":"' + "å" * (size // 6) + '"}',
        "long number": lambda size: "[0." + "1" * size + "]",
        "long key": lambda size: '{"' + "k" * size + '":1}',
        "long texts": lambda size: filled(lambda _: '"' + "x" * 140 + '"', size, 131_000),
        "escapes": lambda size: '["' + "\\u0001" * (size // 6) + '"]',
        "nul": lambda size: '["' + "\\u0000" * (size // 6) + '"]',
        "quotes": lambda size: '["' + '\\"' * (size // 2) + '"]',
        "page": lambda size: "<html>" + "<p>\n" * (size // 4),
        "controls": lambda size: "\x01" * (size // 6),
        "contacts": lambda size: filled(contact, size, 131_000 // 5),
        "contacts with a null": lambda size: filled(
            lambda n: contact(n, ',"municipality":null,"deleted_at":null'), size, 131_000 // 7
        ),
        "contacts with a text": lambda size: filled(
            lambda n: contact(n, ',"municipality":"' + "x" * 400 + '"'), size, 131_000 // 6
        ),
        "ids": lambda size: filled(
            lambda n: f'{{"id":"{id_of(n)}","updated_at":"{time}"}}', size, 131_000 // 3
        ),
        "only ids": lambda size: filled(lambda n: f'{{"id":"{id_of(n)}"}}', size, 131_000 // 2),
        "results": lambda size: filled(
            lambda n: f'{{"id":"{id_of(n)}","status":"stored"}}', size, 131_000 // 3
        ),
        "results with a message": lambda size: filled(
            lambda n: (
                f'{{"id":"{id_of(n)}","status":"rejected","sqlstate":"23514",'
                f'"message":"{"x" * 20}"}}'
            ),
            size,
            131_000 // 5,
        ),
        # Each is compared with each.
        "memberships": lambda size: filled(
            lambda n: (
                f'{{"org_id":"{id_of(n)}","role":"peer_mentor","status":"active",'
                f'"updated_at":"{time}","organizations":{{"id":"{id_of(n)}","name":"N {n}",'
                f'"status":"active"}}}}'
            ),
            size,
            1_000,
        ),
        # More than are read.
        "too many memberships": lambda size: filled(
            lambda n: f'{{"org_id":"{id_of(n)}","role":"","status":"active"}}', 10 * size
        ),
        "bare memberships": lambda size: filled(
            lambda n: f'{{"org_id":"{id_of(n)}","role":"","status":"active"}}', size, 1_000
        ),
    }


class Meter:
    """Measures by how much a process grows in each call that completes a large answer."""

    def __init__(self, library: HostedLibrary) -> None:
        self.library = library
        self.most = 0
        self._call = library.call
        # The host's own buffer is not counted: touch it once.
        self._call("session_status", None, b" " * (33_000_000))
        library.call = self.call  # type: ignore[method-assign]

    def memory(self, name: str) -> int:
        status = Path(f"/proc/{self.library.pid}/status").read_text()
        return int(re.findall(rf"{name}:\s+(\d+) kB", status)[0]) * 1024

    def call(self, name: str, handle: int | None, request: bytes | None) -> Called:
        if name != "complete" or len(request or b"") < 30_000:
            return self._call(name, handle, request)
        Path(f"/proc/{self.library.pid}/clear_refs").write_text("5")
        before = self.memory("VmRSS")
        answer = self._call(name, handle, request)
        self.most = max(self.most, self.memory("VmHWM") - before)
        return answer


def ask(phone: FilePhone, app: App, request: str) -> None:
    """Make the library send a request of this kind."""
    app.go_offline()
    app.go_online()
    if request == "live":
        [contact] = app.contact_search({"query": ""})["contacts"]
        app.contact_get({"id": contact["id"], "live": True})
    elif request == "refresh":
        phone.pass_time(TOKEN_S)
    elif request == "ids":
        phone.pass_time(86_500)
    else:
        phone.pass_time(700)
    app.sync_now()
    app.settle()


@pytest.mark.parametrize("request_kind", REQUESTS)
def test_an_answer_costs_at_most_eight_times_its_size(
    hosted: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    request_kind: str,
) -> None:
    # Given an app in a process of its own, with a contact and a queued item
    org = directory.organisation(contacts=1)
    person = directory.person(org)
    phone = FilePhone(
        tmp_path / "phone",
        hosted,
        backend,
        policy={"biometric": "off", "background_timeout_s": 10**6},
        tables=RPC if request_kind == "rpc" else None,
    )
    app = phone.start()
    app.sign_in(person)
    app.settle()
    app.go_offline()
    item = add(app)
    meter = Meter(hosted)
    body: str | None = None
    hits = 0

    def instead(request: HttpRequest) -> Answer | None:
        nonlocal hits
        purpose = PURPOSES.get(request_kind, request_kind)
        if body is None or request["purpose"] != purpose:
            return None
        if request_kind == "read_back" and request["method"] == "POST":
            return {"status": 201, "headers": {}, "body": "[]"}
        if REQUESTS[request_kind] not in request["url"]:
            return None
        hits += 1
        return {"status": 200, "headers": {}, "body": body}

    phone.network.instead.append(instead)
    dear: list[str] = []
    kinds = shapes(org.id)
    # When the server answers such requests with each shape, from small answers to 14 MB
    cases = [(SIZE, name) for name in kinds]
    if request_kind == "contacts":
        cases += [(LARGER, name) for name in kinds] + [(14_000_000, name) for name in LARGEST]
    for size, name in cases:
        body = kinds[name](size)
        count = len(body.encode())
        meter.most = 0
        ask(phone, app, request_kind)
        # Then it costs little, or is refused,
        if meter.most > max(8 * count, FLOOR):
            dear.append(
                f"{name}: {count:,} bytes cost {meter.most:,}, {meter.most / count:.1f} times"
            )
        # and the session stays
        assert app.of_type("session_ended") == [], name
        assert app.session_status()["user_id"] == person.id, name
    assert dear == []
    assert hits > 3
    # and afterwards everything works: the item is sent, and the data is there.
    body = None
    for _ in range(4):
        if app.queue_list({"state": "parked"})["items"]:
            app.queue_retry({"id": item})
        app.go_offline()
        app.go_online()
        app.settle()
        phone.pass_time(86_500)
    app.sync_now()
    app.settle()
    assert app.screen["screen"] == "home"
    assert app.queue_list()["counts"] == EMPTY
    assert stored(directory, person) == [item]
    assert app.contact_search({"query": ""})["total"] == 1
    assert app.summary_get()["summary"] is not None
    phone.close()


def test_a_page_of_many_small_contacts_is_read(
    hosted: HostedLibrary, tmp_path: Path, backend: LocalSupabase, directory: DirectoryFixtures
) -> None:
    """A page that jansson would need ten times its size for is read row by row."""
    # Given an app with the example's columns
    org = directory.organisation(contacts=1)
    phone = FilePhone(tmp_path / "phone", hosted, backend, policy={"biometric": "off"})
    app = phone.start()
    app.sign_in(directory.person(org))
    app.settle()
    rows = [
        {
            "id": id_of(number), "org_id": org.id, "name": f"N {number}", "municipality": None,
            "updated_at": "2099-01-01T00:00:00+00:00", "deleted_at": None,
        }
        for number in range(8_000)
    ]  # fmt: skip
    pages = [json.dumps(rows, separators=(",", ":")), "[]"]
    assert len(pages[0]) > 1_000_000

    def instead(request: HttpRequest) -> Any:  # noqa: ANN401
        if "updated_at=gt" not in request["url"] and "or=(updated_at" not in request["url"]:
            return None
        return {"status": 200, "headers": {}, "body": pages.pop(0) if pages else "[]"}

    phone.network.instead.append(instead)
    # When a page brings thousands
    app.sync_now()
    app.settle()
    # Then all of them are there
    assert app.contact_search({"query": "n 79"})["total"] == sum(
        "79" in str(number) for number in range(8_000)
    )
    assert app.contact_search({"query": ""})["total"] == 8_001
    phone.close()
