"""Issue 16: what hosts in Rust, Java and Go met that were written from the documents alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import HoldfastError, Library
from holdfast.transport import Answer
from holdfast.types import DecisionEvent, Event

from conftest import MakePhone, MakeUser
from support.directory_fixtures import DirectoryFixtures, Person
from support.phone import Phone
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
