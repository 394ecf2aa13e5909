"""Issue 16: what hosts in Rust, Java and Go met that were written from the documents alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError, Library
from holdfast.transport import Answer
from holdfast.types import DecisionEvent, Event

from conftest import MakePhone, MakeUser
from support import children, contract
from support.directory_fixtures import DirectoryFixtures, Person
from support.phone import FilePhone, Phone
from support.sign_in import begin, browse, finish, settle_sign_in

# ---- The order of decisions ------------------------------------------------------------------


def decisions(events: list[Event]) -> list[DecisionEvent]:
    return [event for event in events if event["type"] == "decision"]  # type: ignore[misc]


def test_SES_10_a_decision_that_was_polled_is_older_than_a_later_reply(sign_in: MakeUser) -> None:
    """Newcomers' finding 1: a polled `home` was drawn over the `unlock` of a later session_lock."""
    # Given an event that shows home, polled and not drawn yet
    app = sign_in().app
    app.go_offline()
    [event] = decisions(app.poll()["events"])
    assert event["decision"]["screen"] == "home"
    # When the app is locked meanwhile
    reply = app.session_lock()
    # Then the numbers tell that the reply is the newer decision
    assert reply["screen"] == "unlock"
    assert reply["number"] > event["decision"]["number"]
    # and the binding knows it
    assert app.superseded(event)


def test_SES_10_every_decision_of_a_handle_has_a_higher_number(sign_in: MakeUser) -> None:
    # Given the decisions of a session, replies and events, in the order in which they were made
    user = sign_in()
    app = user.app
    made = [app.screen, app.session_resume()]
    for change in (app.go_offline, app.go_online):
        change()
        made += [event["decision"] for event in decisions(app.poll()["events"])]
    made += [app.session_background(), app.session_foreground(), app.session_lock(), app.touch()]
    made.append(app.sign_in_cancel()["decision"])
    made.append(app.session_logout({})["decision"])
    # Then each number is higher than the one before
    numbers = [decision["number"] for decision in made]
    assert len(numbers) == 10
    assert numbers == sorted(set(numbers))


def test_SES_10_the_runner_leaves_out_a_decision_that_a_reply_has_superseded(
    sign_in: MakeUser,
) -> None:
    # Given a poll whose first event locks the app, as a host does that answers an event with a call
    app = sign_in().app
    app.settle()
    seen: list[str] = []
    polled = app.poll

    def poll(request: Any = None) -> Any:  # noqa: ANN401
        reply = polled(request)
        if decisions(reply["events"]):
            app.session_lock()
        return reply

    app.poll = poll  # type: ignore[method-assign]
    app.runner.on_event = lambda event: seen.append(event["type"])
    # When the network goes, which shows home again with a banner
    app.go_offline()
    app.runner.step()
    # Then that screen is not drawn over the lock, and it is acknowledged
    assert "decision" not in seen
    assert app.screen["screen"] == "unlock"


# ---- A wrong URL -----------------------------------------------------------------------------


@pytest.mark.parametrize("service", ["rest", "auth", "storage", "functions"])
@pytest.mark.parametrize("end", ["", "/"])
def test_HST_4_the_address_of_a_service_is_not_the_project_s(
    phones: MakePhone, service: str, end: str
) -> None:
    """Newcomers' finding 2: such a base was taken, and the sign-in failed for no told reason."""
    phone = phones()
    base = phone.config["backend"]["url"]
    phone.config["backend"]["url"] = f"{base}/{service}/v1{end}"
    with pytest.raises(HoldfastError) as caught:
        phone.open()
    assert (caught.value.code, caught.value.field) == ("request.invalid_value", "/backend/url")
    assert f'"{base}" is expected' in str(caught.value)


def test_HST_4_a_prefix_of_a_proxy_is_taken(phones: MakePhone) -> None:
    for path in ("/supabase", "/functions/v1/proxy", "/rest/v1beta"):
        phone = phones()
        phone.config["backend"]["url"] += path
        phone.start()


def test_HST_4_the_data_service_answers_a_sign_in(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    """Newcomers' finding 2: 404 with a code of the data service told no cause."""
    app = phone.start()
    body = json.dumps({"code": "PGRST125", "message": "Invalid path specified in request URL"})
    directory.control.respond("/auth/v1/token", 404, body=body, times=1)
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    message = app.screen["message"]
    assert message is not None
    assert (app.screen["reason"], message.get("cause")) == ("sign_in_failed", "wrong_url")


@pytest.mark.parametrize("word", ["refused", "tls", "timeout", "dns", "offline", "cancelled"])
def test_HST_4_a_sign_in_without_a_response_tells_the_word_of_the_client(
    phone: Phone, person: Person, library: Library, word: str
) -> None:
    """Newcomers' finding 2: a wrong port, a wrong name and a bad certificate looked alike."""
    lines: list[tuple[int, str]] = []
    library.set_log(3, lambda level, line: lines.append((level, line)))
    app = phone.start()
    silence: Answer = {"error": word}  # type: ignore[typeddict-item]
    phone.network.instead.append(lambda request: silence)
    finish(app, browse(begin(app)["url"]))
    if app.screen["screen"] == "wait":
        settle_sign_in(app)
    # Then the decision has the word, but not those that say nothing about the server
    message = app.screen["message"]
    assert message is not None
    reason = "sign_in_offline" if word in {"dns", "offline"} else "sign_in_unreachable"
    named = None if word in {"offline", "cancelled"} else word
    assert (app.screen["reason"], message.get("cause")) == (reason, named)
    # and the log has it, for each response and at the end, with the host
    assert any(f"sign_in, status 0, {word}" in line for level, line in lines if level == 3)
    [(level, line)] = [each for each in lines if "the sign-in failed" in each[1]]
    host = phone.config["backend"]["url"].split("//")[1]
    assert level == 1
    assert reason in line and line.endswith(f"host {host}")
    assert named is None or named in line


# ---- Requests as other languages write them --------------------------------------------------


def test_ABI_1_a_request_that_is_null_is_an_empty_object(sign_in: MakeUser) -> None:
    """Newcomers' finding 4: Go's nil map and Java's null become `null`."""
    app = sign_in().app
    for name in contract.OPERATIONS:
        if name != "open":
            empty = app.library.call(name, app._handle, b"{}")
            absent = app.library.call(name, app._handle, b" null ")
            assert empty[0] == absent[0], name
    status, reply = app.library.call("session_status", app._handle, b"null")
    assert status == 0 and reply is not None


@pytest.mark.parametrize("sent", [b"3", b'"x"', b"true", b"[]", b"[{}]", b"1.5"])
def test_ABI_1_a_value_that_is_no_object_is_called_so(sign_in: MakeUser, sent: bytes) -> None:
    app = sign_in().app
    for name in ("session_status", "queue_add", "poll"):
        status, reply = app.library.call(name, app._handle, sent)
        assert (status, error_of(reply)["code"]) == (1, "request.not_an_object"), name


@pytest.mark.parametrize("sent", [b"null", b"3", b'"x"', b"[]"])
def test_ABI_1_a_configuration_that_is_no_object_is_called_so(
    library: Library, sent: bytes
) -> None:
    _, (status, reply) = library.open(sent, None)
    assert (status, error_of(reply)["code"]) == (1, "request.not_an_object")


def error_of(reply: bytes | None) -> dict[str, Any]:
    assert reply is not None
    error: dict[str, Any] = json.loads(reply)["error"]
    return error


def test_ABI_5_a_whole_number_may_have_a_point(sign_in: MakeUser) -> None:
    """Newcomers' finding 5: Gson writes the numbers of a map as 12.0."""
    user = sign_in(contacts=2)
    app = user.app
    app.settle()
    assert app.contact_search({"query": "", "limit": 1.0})["contacts"]  # type: ignore[typeddict-item]
    payload = {"type": "visit", "minutes": 41.0}
    added = app.queue_add(
        {"kind": "activity", "payload": payload, "occurred_at_ms": 1795000000000.0}  # type: ignore[typeddict-item]
    )
    item: Any = app.queue_get({"id": added["id"]})["item"]
    assert item["occurred_at_ms"] == 1795000000000
    [request] = list(app.poll({"ack": 0.0})["requests"])  # type: ignore[typeddict-item]
    answer: Any = {"id": float(request["id"]), "status": 503.0, "headers": {}, "body": ""}
    assert app.complete(answer)["accepted"]


@pytest.mark.parametrize(
    ("limit", "code"), [("1.5", "request.wrong_type"), ("1e300", "request.wrong_type")]
)
def test_ABI_5_other_numbers_are_no_integers(sign_in: MakeUser, limit: str, code: str) -> None:
    app = sign_in().app
    sent = f'{{"query":"","limit":{limit}}}'.encode()
    status, reply = app.library.call("contact_search", app._handle, sent)
    error = error_of(reply)
    assert (status, error["code"], error["field"]) == (1, code, "/limit")


# ---- Too many descriptors --------------------------------------------------------------------

CROWDED = """
import json, os, resource, sys
from holdfast import Library
library, config = Library(sys.argv[1]), sys.argv[2].encode()
handle, _ = library.open(config, None)
library.close(handle)
codes, highest = [], os.open("/dev/null", os.O_RDONLY)
os.close(highest)
for free in range(40):
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + free, 4096))
    handle, (status, reply) = library.open(config, None)
    codes.append("" if status == 0 else json.loads(reply)["error"]["code"])
    library.close(handle)
print(json.dumps(codes))
"""


def test_ABI_2_an_open_without_descriptors_says_so(phone: Phone, tmp_path: Path) -> None:
    """Newcomers' finding 6: the answer was `storage.failed`, as if the disk were broken."""
    kiosk = FilePhone(tmp_path / "kiosk", phone.library, phone.backend, clock="system")
    # When a folder is opened with 0, 1, 2, … free descriptors
    ended = children.run_text(CROWDED, str(phone.library.path), json.dumps(kiosk.config))
    codes = json.loads(ended.check().output)
    # Then the answer is that there are too few, until there are enough
    enough = codes.index("")
    assert enough > 3
    assert set(codes[:enough]) == {"handle.too_many"}
    assert set(codes[enough:]) == {""}
