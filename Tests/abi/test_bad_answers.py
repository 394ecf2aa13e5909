"""Answers that no server should give: any status, NULs, megabytes, any shape."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from holdfast.library import Answer as Called
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase

from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.errors import error_of
from support.held import taken
from support.hosted import HostedLibrary
from support.phone import TOKEN_S, App, FilePhone
from support.queue import EMPTY, RPC, add, drain, item_of, stored
from support.sizes import crossed, sampled, sized
from support.users import MakeUser, SignedIn

#: Every status that a rule names, the ones beside them, and some that no rule names.
STATUSES = [
    0, 1, 99, 100, 101, 103, 199, 200, 201, 202, 204, 205, 206, 226, 299, 300, 301, 302, 304, 307,
    399, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 418,
    421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 507, 511,
    520, 599, 600, 777, 999,
]  # fmt: skip
#: Those that servers and what is before them give every day.
FREQUENT = [200, 400, 401, 403, 404, 429, 500, 503]
#: Bodies that prove nothing.
BODIES = [None, "", "{}", "null", "[{}]", "<html>", "[\0]", '{"code":"\\u0000"}', "{", "0"]
#: 16 MB of empty objects: as one array, and one after the other.
EMPTY_OBJECTS = (16 << 20) // 3
MEGABYTES = {"array": "[" + "{}," * EMPTY_OBJECTS + "{}]", "sequence": "{}" * (8 << 20)}


class Trouble:
    """Answers every request of one purpose with whatever is set."""

    def __init__(self, user: SignedIn, purpose: str) -> None:
        self.purpose = purpose
        self.answer: Answer | None = None
        self.hits = 0
        user.phone.network.instead.append(self._instead)

    def _instead(self, request: HttpRequest) -> Answer | None:
        if self.answer is None or request["purpose"] != self.purpose:
            return None
        self.hits += 1
        return self.answer


def ask(user: SignedIn, purpose: str, item: str) -> None:
    """Make the library send a request of this purpose."""
    app = user.app
    # Pauses that nobody asked for end with a change of the network.
    app.go_offline()
    app.go_online()
    if purpose == "upload":
        if item_of(app, item)["state"] == "parked":
            app.queue_retry({"id": item})
    elif purpose == "live":
        [contact] = app.contact_search({"query": ""})["contacts"]
        app.contact_get({"id": contact["id"], "live": True})
    elif purpose == "sign_in":
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    elif purpose == "refresh":
        user.phone.pass_time(TOKEN_S)
    app.sync()


PURPOSES = ["refresh", "validate", "guard", "upload", "pull", "summary", "live", "sign_in"]


def works_again(user: SignedIn, directory: DirectoryFixtures, item: str) -> None:
    """The same user is at home, the item is sent, and contacts and figures are there."""
    app = user.app
    for _ in range(4):
        if item_of_or_none(app, item) == "parked":
            app.queue_retry({"id": item})
        app.go_offline()
        app.reconnect()
        user.phone.pass_time(600)
    app.sync()
    assert app.session_status()["user_id"] == user.person.id
    assert app.session_status()["owed"] == []
    if app.screen["screen"] == "sign_in":
        # A sign-in over the session has failed: the host goes back to the session.
        app.sign_in_cancel()
    assert app.screen["screen"] == "home"
    assert app.queue_list()["counts"] == EMPTY
    assert stored(directory, user.person) == [item]
    assert app.contact_search({"query": ""})["total"] == 1
    assert app.summary_get()["summary"] is not None


def item_of_or_none(app: Any, item: str) -> str | None:  # noqa: ANN401
    """The item's state; None when the server has stored it."""
    state = str(app.queue_get({"id": item})["state"])
    return None if state == "stored" else state


def test_ATK_8_a_status_is_from_100_to_599(sign_in: MakeUser) -> None:
    app = sign_in().app
    for status in range(-1, 1001):
        answer: Any = {"id": 10**9, "status": status, "headers": {}, "body": "{}"}
        if 100 <= status <= 599:
            assert app.complete(answer) == {}
            continue
        error = error_of(app.complete, answer)
        assert (error.code, error.field) == ("request.invalid_value", "/status")


@pytest.mark.parametrize("purpose", sampled(PURPOSES, 3))
def test_ATK_8_no_status_ends_a_session_or_loses_an_item(
    sign_in: MakeUser, directory: DirectoryFixtures, purpose: str
) -> None:
    user = sign_in(contacts=1, policy={"biometric": "off", "background_timeout_s": 10**6})
    app = user.app
    trouble = Trouble(user, purpose)
    if purpose != "upload":
        app.go_offline()
    item = add(app)
    # (reduced, each purpose gets a sixth of the others, and each is given to one purpose at least)
    others = [status for status in STATUSES if status not in FREQUENT]
    statuses = FREQUENT + others[PURPOSES.index(purpose) % sized(6, 1) :: sized(6, 1)]
    for number, status in enumerate(statuses):
        body = BODIES[number % len(BODIES)]
        trouble.answer = {"status": status, "headers": {"content-type": "a/b"}, "body": body}
        before = trouble.hits
        ask(user, purpose, item)
        assert trouble.hits > before, status
        assert app.of_type("session_ended") == [], (status, body)
        assert app.session_status()["user_id"] == user.person.id, (status, body)
        if item_of_or_none(app, item) is None:
            assert stored(directory, user.person) == [item], (status, body)
    trouble.answer = None
    works_again(user, directory, item)


@pytest.mark.parametrize("where", ["body", "header", "name", "raw"])
def test_ATK_8_a_nul_anywhere_is_refused_or_no_answer(user: SignedIn, where: str) -> None:
    app = user.app
    item = add(app)
    request = taken(user, "upload")
    answer = {
        "body": {"status": 201, "headers": {}, "body": f'[{{"id":"{item}"}}]\0'},
        "header": {"status": 201, "headers": {"date": "x\0"}, "body": f'[{{"id":"{item}"}}]'},
        "name": {"status": 201, "headers": {"da\0te": "x"}, "body": f'[{{"id":"{item}"}}]'},
        "raw": {"status": 201, "headers": {}, "body": "NUL"},
    }[where]
    text = json.dumps({"id": request["id"], **answer})
    sent = text.encode().replace(b"NUL", b"\0")
    status, reply = app.library.call("complete", app._handle, sent)
    assert status == 1, reply
    assert json.loads(reply or "{}")["error"]["code"].startswith("request.")
    assert item_of(app, item)["state"] == "sending"
    app.complete({"id": request["id"], "error": "refused"})
    assert item_of(app, item)["state"] == "pending"


@pytest.mark.parametrize(
    ("purpose", "form"),
    crossed(
        PURPOSES,
        MEGABYTES,
        fast=lambda *case: case in [("upload", "array"), ("refresh", "sequence")],
    ),
)
def test_ATK_8_sixteen_megabytes_of_empty_objects(
    sign_in: MakeUser, directory: DirectoryFixtures, purpose: str, form: str
) -> None:
    user = sign_in(contacts=1, policy={"biometric": "off", "background_timeout_s": 10**6})
    app = user.offline()
    item = add(app)
    trouble = Trouble(user, purpose)
    trouble.answer = {"status": 200, "headers": {}, "body": MEGABYTES[form]}
    ask(user, purpose, item)
    assert trouble.hits > 0
    assert app.of_type("session_ended") == []
    assert app.session_status()["user_id"] == user.person.id
    trouble.answer = None
    works_again(user, directory, item)


def peak_kb(pid: int) -> int:
    """The most memory that a process has held so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


@pytest.mark.parametrize(
    "purpose", crossed(["pull", "guard"], fast=lambda purpose: purpose == "pull")
)
def test_ATK_8_sixteen_megabytes_of_empty_objects_take_little_memory(
    hosted: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    purpose: str,
) -> None:
    phone = FilePhone(tmp_path / "phone", hosted, backend, policy={"biometric": "off"})
    app = phone.start()
    app.sign_in(directory.person(directory.organisation(contacts=1)))
    hits: list[str] = []

    def instead(request: HttpRequest) -> Answer | None:
        if request["purpose"] != purpose:
            return None
        hits.append(purpose)
        return {"status": 200, "headers": {}, "body": MEGABYTES["array"]}

    phone.network.instead.append(instead)
    app.session_background()
    app.session_foreground()
    app.settle()
    assert hits
    assert peak_kb(hosted.pid) < 200_000
    assert app.session_status()["state"] == "active"
    phone.close()


def test_a_refresh_that_brings_another_user_s_tokens_is_refused(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    other = directory.person(user.org)
    network = user.phone.network

    def exchange(request: HttpRequest, answer: Answer) -> Answer:
        if request["purpose"] != "refresh":
            return answer
        text = json.dumps(user.phone.session(other))
        return {**answer, "body": text}  # type: ignore[return-value,typeddict-item]

    network.alter.append(exchange)
    before = user.app.session_status()
    user.app.wait(TOKEN_S - 30)
    assert network.count("refresh") == 1
    after = user.app.session_status()
    assert after["user_id"] == before["user_id"] == user.person.id
    assert (after["generation"], after["expires_ms"]) == (
        before["generation"],
        before["expires_ms"],
    )
    assert "refresh" in after["owed"]
    assert user.app.of_type("session_ended") == []
    network.alter.remove(exchange)
    item = user.app.register()
    user.phone.pass_time(600)
    drain(user.app)
    assert user.app.session_status()["owed"] == []
    assert stored(directory, user.person) == [item]
    assert directory.activities(other) == []


# What an answer costs -----------------------------------------------------------------------------


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
PURPOSE_OF = {"rpc": "upload", "read_back": "upload", "contacts": "pull", "ids": "pull"}


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


def ask_for(phone: FilePhone, app: App, request: str) -> None:
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
    app.sync()


@pytest.mark.parametrize("request_kind", crossed(REQUESTS, fast=lambda kind: kind == "guard"))
def test_an_answer_costs_at_most_eight_times_its_size(
    hosted: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    request_kind: str,
) -> None:
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
        purpose = PURPOSE_OF.get(request_kind, request_kind)
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
    cases = [(SIZE, name) for name in kinds]
    if request_kind == "contacts":
        cases += [(LARGER, name) for name in sized(LARGEST, tuple(kinds))]
        cases += [(14_000_000, name) for name in sized(LARGEST[-1:], LARGEST)]
    for size, name in cases:
        body = kinds[name](size)
        count = len(body.encode())
        meter.most = 0
        ask_for(phone, app, request_kind)
        if meter.most > max(8 * count, FLOOR):
            dear.append(
                f"{name}: {count:,} bytes cost {meter.most:,}, {meter.most / count:.1f} times"
            )
        assert app.of_type("session_ended") == [], name
        assert app.session_status()["user_id"] == person.id, name
    assert dear == []
    assert hits > 3
    body = None
    for _ in range(4):
        if app.queue_list({"state": "parked"})["items"]:
            app.queue_retry({"id": item})
        app.go_offline()
        app.reconnect()
        phone.pass_time(86_500)
    app.sync()
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
    app.sync()
    assert app.contact_search({"query": "n 79"})["total"] == sum(
        "79" in str(number) for number in range(8_000)
    )
    assert app.contact_search({"query": ""})["total"] == 8_001
    phone.close()
