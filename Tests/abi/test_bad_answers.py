"""Answers that no server should give: any status, NULs, megabytes of nothing (ATK-8)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import HoldfastError

from support.directory_fixtures import PASSWORD
from support.phone import TOKEN_S, FilePhone
from support.queue import EMPTY, add, item_of, stored

if TYPE_CHECKING:
    from holdfast.transport import Answer
    from holdfast.types import HttpRequest
    from local_supabase import LocalSupabase

    from support.directory_fixtures import DirectoryFixtures
    from support.hosted import HostedLibrary
    from support.users import MakeUser, SignedIn

#: Every status that a rule names, the ones beside them, and some that no rule names.
STATUSES = [
    0, 1, 99, 100, 101, 103, 199, 200, 201, 202, 204, 205, 206, 226, 299, 300, 301, 302, 304, 307,
    399, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 418,
    421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 505, 507, 511,
    520, 599, 600, 777, 999,
]  # fmt: skip
#: Bodies that prove nothing.
BODIES = [None, "", "{}", "null", "[{}]", "<html>", "[\0]", '{"code":"\\u0000"}', "{", "0"]
#: 16 MB of empty objects: as one array, and one after the other.
EMPTY_OBJECTS = (16 << 20) // 3
MEGABYTES = {
    "array": "[" + "{}," * EMPTY_OBJECTS + "{}]",
    "sequence": "{}" * (8 << 20),
}


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
    app.sync_now()
    app.settle()


PURPOSES = ["refresh", "validate", "guard", "upload", "pull", "summary", "live", "sign_in"]


def works_again(user: SignedIn, directory: DirectoryFixtures, item: str) -> None:
    """The same user is at home, the item is sent, and contacts and figures are there."""
    app = user.app
    for _ in range(4):
        if item_of_or_none(app, item) == "parked":
            app.queue_retry({"id": item})
        app.go_offline()
        app.go_online()
        app.settle()
        user.phone.pass_time(600)
    app.sync_now()
    app.settle()
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
    # When a host reports any status, then only those of HTTP are accepted, with the field's path
    app = sign_in().app
    for status in range(-1, 1001):
        answer: Any = {"id": 10**9, "status": status, "headers": {}, "body": "{}"}
        if 100 <= status <= 599:
            assert app.complete(answer) == {"accepted": False}
            continue
        with pytest.raises(HoldfastError) as caught:
            app.complete(answer)
        assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/status")


@pytest.mark.parametrize("purpose", PURPOSES)
def test_ATK_8_no_status_ends_a_session_or_loses_an_item(
    sign_in: MakeUser, directory: DirectoryFixtures, purpose: str
) -> None:
    # Given a user with an item, and one purpose whose requests get any status and body
    user = sign_in(contacts=1, policy={"biometric": "off", "background_timeout_s": 10**6})
    app = user.app
    trouble = Trouble(user, purpose)
    if purpose != "upload":
        app.go_offline()
    item = add(app)
    for number, status in enumerate(STATUSES):
        body = BODIES[number % len(BODIES)]
        trouble.answer = {"status": status, "headers": {"content-type": "a/b"}, "body": body}
        before = trouble.hits
        ask(user, purpose, item)
        assert trouble.hits > before, status
        # Then the session stays,
        assert app.of_type("session_ended") == [], (status, body)
        assert app.session_status()["user_id"] == user.person.id, (status, body)
        # and the item is in the queue unless the server has it
        if item_of_or_none(app, item) is None:
            assert stored(directory, user.person) == [item], (status, body)
    # and afterwards everything works
    trouble.answer = None
    works_again(user, directory, item)


@pytest.mark.parametrize("where", ["body", "header", "name", "raw"])
def test_ATK_8_a_nul_anywhere_is_refused_or_no_answer(sign_in: MakeUser, where: str) -> None:
    # Given a request in flight
    user = sign_in()
    app = user.app
    item = add(app)
    request: Any = None
    while request is None:
        request = next((r for r in app.poll()["requests"] if r["purpose"] == "upload"), None)
    # When the host reports an answer with a NUL
    answer = {
        "body": {"status": 201, "headers": {}, "body": f'[{{"id":"{item}"}}]\0'},
        "header": {"status": 201, "headers": {"date": "x\0"}, "body": f'[{{"id":"{item}"}}]'},
        "name": {"status": 201, "headers": {"da\0te": "x"}, "body": f'[{{"id":"{item}"}}]'},
        "raw": {"status": 201, "headers": {}, "body": "NUL"},
    }[where]
    text = json.dumps({"id": request["id"], **answer})  # type: ignore[dict-item]
    sent = text.encode().replace(b"NUL", b"\0")
    status, reply = app.library.call("complete", app._handle, sent)
    # Then it is refused with its place, and the request is still open
    assert status == 1, reply
    assert json.loads(reply or "{}")["error"]["code"].startswith("request.")
    assert item_of(app, item)["state"] == "sending"
    app.complete({"id": request["id"], "error": "refused"})
    assert item_of(app, item)["state"] == "pending"


@pytest.mark.parametrize("form", MEGABYTES)
@pytest.mark.parametrize("purpose", PURPOSES)
def test_ATK_8_sixteen_megabytes_of_empty_objects(
    sign_in: MakeUser, directory: DirectoryFixtures, purpose: str, form: str
) -> None:
    # Given a server that answers the requests of one purpose with 16 MB of {}
    user = sign_in(contacts=1, policy={"biometric": "off", "background_timeout_s": 10**6})
    app = user.app
    app.go_offline()
    item = add(app)
    trouble = Trouble(user, purpose)
    trouble.answer = {"status": 200, "headers": {}, "body": MEGABYTES[form]}
    ask(user, purpose, item)
    assert trouble.hits > 0
    # Then the session stays, and so does the item,
    assert app.of_type("session_ended") == []
    assert app.session_status()["user_id"] == user.person.id
    # and afterwards everything works
    trouble.answer = None
    works_again(user, directory, item)


def peak_kb(pid: int) -> int:
    """The most memory that a process has held so far."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))


@pytest.mark.parametrize("purpose", ["pull", "guard"])
def test_ATK_8_sixteen_megabytes_of_empty_objects_take_little_memory(
    hosted: HostedLibrary,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    purpose: str,
) -> None:
    """Each empty object took about 300 bytes: 1.7 GB, which ends an app on a phone."""
    # Given an app in a process of its own
    phone = FilePhone(tmp_path / "phone", hosted, backend, policy={"biometric": "off"})
    app = phone.start()
    app.sign_in(directory.person(directory.organisation(contacts=1)))
    # When a server answers with 16 MB of {}
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
    # Then the process needs the text a few times over, and no more
    assert peak_kb(hosted.pid) < 200_000
    assert app.session_status()["state"] == "active"
    phone.close()
