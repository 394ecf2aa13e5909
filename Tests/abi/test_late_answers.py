"""Late answers: each is dropped, in every order and with any content (SES-5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from holdfast import HoldfastError

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.phone import TOKEN_S, App, Phone
from support.queue import EMPTY
from support.screens import seen
from support.sizes import crossed
from support.users import MakePhone


class Case:
    """A user of two organisations, another user, and a request in flight."""

    def __init__(self, phone: Phone, directory: DirectoryFixtures) -> None:
        self.phone, self.directory = phone, directory
        self.first, self.second = map(directory.organisation, ("Nordlys", "Vestland"))
        self.person = directory.person(self.first, self.second)
        self.other = directory.person(directory.organisation("Sørlandet"))
        self.colleague = directory.person(self.first)
        directory.contact(self.first, "Kari Første")
        #: The item that was registered, if any.
        self.item = ""
        self.app: App = phone.start()
        self.app.sign_in(self.person, self.first)

    def start_as(self, person: Person) -> None:
        """Start with a session that the host obtained."""
        self.app.session_adopt({"session": self.phone.session(person)})

    def take(self, purpose: str) -> Any:  # noqa: ANN401
        """The request of this purpose, unanswered; answers others until it comes."""
        for _ in range(20):
            taken = None
            for request in self.app.poll()["requests"]:
                if request["purpose"] == purpose:
                    taken = request
                else:
                    self.app.complete({"id": request["id"], **self.phone.network(request)})  # type: ignore[misc, typeddict-item]
            if taken is not None:
                return taken
        raise AssertionError(f"no request to {purpose}")

    def answer(self, request: Any, refusal: tuple[int, str] | None) -> Any:  # noqa: ANN401
        """The server's answer, or this refusal instead of it."""
        real = self.phone.network(request)
        if refusal is None:
            return {"id": request["id"], **real}
        body = refusal[1].replace("ORG", self.first.id)
        return {"id": request["id"], "status": refusal[0], "headers": {}, "body": body}

    def present(self, happens: Callable[[Case], None]) -> Person:
        """Who is the user after this event."""
        if happens is colleague_at_once:
            return self.colleague
        return self.other if happens in OTHERS else self.person


def refresh(case: Case) -> Any:  # noqa: ANN401
    case.phone.pass_time(TOKEN_S + 60)
    return case.take("refresh")


def validate(case: Case) -> Any:  # noqa: ANN401
    case.app.session_background()
    case.app.session_foreground()
    return case.take("validate")


def guard(case: Case) -> Any:  # noqa: ANN401
    case.app.session_background()
    case.app.session_foreground()
    return case.take("guard")


def pull(case: Case) -> Any:  # noqa: ANN401
    case.app.sync_now()
    return case.take("pull")


def summary(case: Case) -> Any:  # noqa: ANN401
    case.app.sync_now()
    return case.take("summary")


def live(case: Case) -> Any:  # noqa: ANN401
    [contact] = case.app.contact_search({"query": ""})["contacts"]
    case.app.contact_get({"id": contact["id"], "live": True})
    return case.take("live")


def upload(case: Case) -> Any:  # noqa: ANN401
    case.item = case.app.register()
    return case.take("upload")


def read_back(case: Case) -> Any:  # noqa: ANN401
    """The server has stored an item and names no row, so it is asked for the id."""
    case.directory.control.truncate_rows("/rest/v1/activities", keep=0, method="POST")
    request = upload(case)
    case.app.complete(case.answer(request, None))
    request = case.take("upload")
    assert request["method"] == "GET"
    return request


def revoke(case: Case) -> Any:  # noqa: ANN401
    """The same user signed in again after a logout without a network."""
    case.app.go_offline()
    case.app.session_logout()
    case.start_as(case.person)
    case.app.go_online()
    request = case.take("revoke")
    case.app.settle()
    case.app.org_select({"org_id": case.first.id})
    case.app.settle()
    return request


def sign_in(case: Case) -> Any:  # noqa: ANN401
    """The same user signs in again over the session."""
    case.app.sign_in_complete({"email": case.person.email, "password": PASSWORD})
    return case.take("sign_in")


#: For each purpose, an answer that would end the session or membership, or is invalid.
REFUSALS = {
    "refresh": (400, '{"code":"session_not_found","message":"x"}'),
    "validate": (403, '{"code":"session_not_found","message":"x"}'),
    "guard": (200, "[]"),
    "pull": (
        200,
        '[{"id":"01976b36-0000-7000-8000-00000000abcd","org_id":"ORG","name":"Ukjent",'
        '"updated_at":"2026-01-01T00:00:00+00:00"}]',
    ),
    "sign_in": (400, '{"code":"invalid_credentials","message":"x"}'),
    "summary": (200, '{"activities":999,"minutes":9999}'),
    "live": (200, "[]"),
    "upload": (401, '{"code":"PGRST301","message":"JWSError"}'),
    "revoke": (403, '{"code":"session_not_found","message":"x"}'),
}


def logged_out(case: Case) -> None:
    case.app.session_logout()


def other_user(case: Case) -> None:
    case.app.session_logout()
    case.start_as(case.other)


def other_user_at_once(case: Case) -> None:
    case.start_as(case.other)


def colleague_at_once(case: Case) -> None:
    """Another member of the organisation, whose own figures and contacts are there."""
    case.start_as(case.colleague)
    case.app.settle()


def same_user_again(case: Case) -> None:
    case.app.session_logout()
    case.start_as(case.person)


def locked(case: Case) -> None:
    case.app.session_lock()


def switched(case: Case) -> None:
    case.app.org_select({"org_id": case.second.id})


EVENTS = [
    logged_out, other_user, other_user_at_once, colleague_at_once, same_user_again, locked, switched
]  # fmt: skip
#: The events after which another user is signed in.
OTHERS = {other_user, other_user_at_once, colleague_at_once}
KINDS = [refresh, validate, guard, pull, summary, live, upload, read_back, revoke, sign_in]


def state(case: Case) -> dict[str, Any]:
    """The state that a late answer must not change."""
    status = case.app.session_status()
    kept: dict[str, Any] = {
        name: status[name] for name in ("state", "user_id", "expires_ms", "generation")
    }
    if status["state"] == "active":
        kept["owed"] = [owed for owed in status["owed"] if owed != "revoke"]
        listed = case.app.org_list()
        kept["orgs"], kept["freshness"] = listed["orgs"], listed["freshness"]
        if kept["orgs"]:
            kept["contacts"] = case.app.contact_search({"query": ""})["total"]
            figures = case.app.summary_get()
            kept["figures"] = [figures[name] for name in ("summary", "sent", "queued")]  # type: ignore[literal-required]
    return kept


def without_org(function: Callable[[Case], dict[str, Any]], case: Case) -> dict[str, Any]:
    """The state without the organisation's fields."""
    try:
        return function(case)
    except HoldfastError as error:
        return {"error": error.code, "generation": case.app.session_status()["generation"]}


def is_fast(kind: Callable[[Case], Any], happens: Callable[[Case], None], refused: bool) -> bool:
    """An eighth of the combinations, in which each request, event and answer comes."""
    number = KINDS.index(kind) + EVENTS.index(happens)
    return number % 4 == 0 and refused == (number % 8 == 0)


@pytest.mark.parametrize(
    ("kind", "happens", "refused"), crossed(KINDS, EVENTS, [False, True], fast=is_fast)
)
def test_SES_5_a_late_answer_changes_nothing(
    phones: MakePhone,
    directory: DirectoryFixtures,
    kind: Callable[[Case], Any],
    happens: Callable[[Case], None],
    refused: bool,
) -> None:
    case = Case(phones(), directory)
    request = kind(case)
    answer = case.answer(request, REFUSALS[request["purpose"]] if refused else None)
    happens(case)
    survives = kind is sign_in and happens is switched and not refused
    before = without_org(state, case)
    biometric = case.phone.keychain.path.read_text()
    case.app.complete(answer)
    if survives:
        # (A sign-in of the same user continues across a switch of organisation.)
        assert case.app.session_status()["user_id"] == case.person.id
        return
    assert without_org(state, case) == before
    assert case.phone.keychain.path.read_text() == biometric
    refreshes = case.phone.network.count("refresh")
    case.app.settle()
    assert case.phone.network.count("refresh") - refreshes <= (kind is refresh)
    assert [event for event in case.app.of_type("contact") if event["contact"]] == []
    assert case.app.of_type("session_ended") == []
    if happens in OTHERS:
        assert case.app.session_status()["user_id"] == case.present(happens).id
        assert case.app.screen["screen"] == "home"
        assert case.app.session_status()["owed"] == []
    if happens is locked:
        assert case.app.session_status()["state"] == "locked"
        assert case.app.touch()["screen"] in {"home", "wait"}
        case.app.settle()
        assert case.app.screen["screen"] == "home"
    if happens is switched:
        org = case.app.screen["org"]
        assert org is not None
        assert org["id"] == case.second.id
    if happens is logged_out and kind is refresh:
        assert directory.control.sessions(case.person.id) == []
    if kind is revoke:
        # The session of before is over, and the present one is not.
        left = 0 if happens is logged_out else 1
        assert len(directory.control.sessions(case.present(happens).id)) == left
    if case.item:
        is_sent_as_its_owner(case)


def is_sent_as_its_owner(case: Case) -> None:
    """The item is stored once, as its owner's, and nobody is bothered with it."""
    for person in (case.other, case.colleague):
        assert case.directory.activities(person) == []
    if case.app.session_status()["user_id"] != case.person.id:
        case.app.session_logout()
        case.start_as(case.person)
    for _ in range(3):
        case.app.settle()
        case.phone.pass_time(300)
    case.app.settle()
    [row] = case.directory.activities(case.person)
    assert (str(row["id"]), str(row["org_id"])) == (case.item, case.first.id)
    assert case.app.queue_list()["counts"] == EMPTY
    assert case.app.of_type("item_parked") == []


@pytest.mark.parametrize("happens", [logged_out, other_user])
def test_SES_5_a_session_that_arrives_after_logout_is_revoked(
    phones: MakePhone, directory: DirectoryFixtures, happens: Callable[[Case], None]
) -> None:
    case = Case(phones(), directory)
    answer = case.answer(sign_in(case), None)
    happens(case)
    case.app.complete(answer)
    case.app.settle()
    assert directory.control.sessions(case.person.id) == []


def test_KEEP_5_an_answer_for_one_organisation_does_not_confirm_another(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    case = Case(phones(), directory)
    request = guard(case)
    answer = case.answer(request, None)
    switched(case)
    directory.control.set_membership(case.person.id, case.second.id, status="ended")
    case.app.complete(answer)
    case.app.settle()
    screen = case.app.screen
    assert seen(screen) == ("select_org", "membership_revoked")
    states = {org["org_id"]: org["status"] for org in case.app.org_list()["orgs"]}
    assert states[case.second.id] == "revoked"


def test_a_response_to_another_handles_request_is_not_taken(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    case = Case(phones(), directory)
    asked = []
    for _ in range(2):
        case.phone.close()
        case.app = case.phone.start()
        asked.append(case.app.poll()["requests"][0])
    late = {"id": asked[0]["id"], "status": 401, "headers": {}, "body": ""}
    assert case.app.complete(late) == {}  # type: ignore[typeddict-item]
    case.app.complete(case.answer(asked[1], None))
    case.app.settle()
    assert case.app.screen["screen"] == "home"
