"""Mistakes in the server's schema and in requests are named, not taken for weather (HST-4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import HoldfastError, Library

from support import contract
from support.directory_fixtures import UPLOAD_RIGHT, DirectoryFixtures, altered, changed, revoked
from support.errors import error_of
from support.phone import App
from support.queue import BOTH, add, code_of, stored, user_of
from support.sizes import sampled
from support.users import MakePhone, MakeUser, SignedIn


def problems(app: App) -> list[dict[str, Any]]:
    return [dict(problem) for problem in app.sync_status()["problems"]]


def of_purpose(app: App, purpose: str) -> list[dict[str, Any]]:
    return [problem for problem in problems(app) if problem["purpose"] == purpose]


def codes(app: App) -> list[str]:
    return [reason["code"] for reason in app.queue_explain()["reasons"]]


def ask_again(user: SignedIn, seconds: float = 3600) -> None:
    """Every purpose asks the server again."""
    user.app.wait(seconds)
    user.app.sync()


def refusal(what: str, purpose: str, code: str, **names: str) -> dict[str, Any]:
    """What `problems` says of a refusal."""
    return {"what": what, "purpose": purpose, "code": code, **names}


#: How the schema is changed and changed back, and what `problems` says.
READS: dict[str, tuple[tuple[str, str], dict[str, Any]]] = {
    "memberships table": (
        altered("table {} rename to {}", "memberships", "members"),
        refusal("memberships", "guard", "PGRST205", table="memberships"),
    ),
    "memberships column": (
        altered("table memberships rename column {} to {}", "status", "state"),
        refusal("memberships", "guard", "42703", table="memberships", column="status"),
    ),
    "memberships grant": (
        revoked("select on memberships"),
        refusal("memberships", "guard", "42501", table="memberships"),
    ),
    "organisations grant": (
        revoked("select on organizations"),
        refusal("memberships", "guard", "42501", table="organizations"),
    ),
    "contacts table": (
        altered("table {} rename to {}", "contacts", "people"),
        refusal("contacts", "pull", "PGRST205", table="contacts"),
    ),
    "contacts column": (
        altered("table contacts rename column {} to {}", "municipality", "town"),
        refusal("contacts", "pull", "42703", table="contacts", column="municipality"),
    ),
    "contacts grant": (
        revoked("select on contacts"),
        refusal("contacts", "pull", "42501", table="contacts"),
    ),
    "summary function": (
        altered("function {} rename to {}", "activity_summary", "figures"),
        refusal("summary", "summary", "PGRST202", function="activity_summary"),
    ),
    "summary grant": (
        (
            "revoke execute on function activity_summary from authenticated, public",
            "grant execute on function activity_summary to authenticated",
        ),
        refusal("summary", "summary", "42501", function="activity_summary"),
    ),
}


@pytest.mark.parametrize("mistake", sampled(READS, 3))
def test_HST_4_a_read_that_the_schema_refuses_is_a_problem_until_it_is_mended(
    sign_in: MakeUser, directory: DirectoryFixtures, library: Library, mistake: str
) -> None:
    change, expected = READS[mistake]
    user = sign_in(contacts=2)
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    assert problems(user.app) == []
    with changed(directory, *change):
        ask_again(user)
        since = user.phone.now_ms
        # Then exactly this is a problem, since it was first seen, with a sentence
        # (the server's functions name the tables, too, and may fail for it)
        [problem] = of_purpose(user.app, expected["purpose"])
        assert {name: problem[name] for name in expected} == expected
        assert problem["since_ms"] <= since
        assert problem["text"].endswith(".")
        # and later refusals are the same problem: one line of the log, of level 1
        ask_again(user)
        ask_again(user)
        assert of_purpose(user.app, expected["purpose"]) == [problem]
        told = [(level, line) for level, line in lines if f": {expected['purpose']}, " in line]
        assert [level for level, _ in told] == [1], told
        assert f"{expected['code']}. {problem['text']}" in told[0][1]
    ask_again(user)
    assert problems(user.app) == []


UPLOAD_CHANGES: dict[str, tuple[tuple[str, str], str, str | None]] = {
    "table": (altered("table {} rename to {}", "activities", "visits"), "PGRST205", None),
    "column": (
        altered("table activities rename column {} to {}", "minutes", "length"),
        "PGRST204",
        "minutes",
    ),
    "grant": (UPLOAD_RIGHT, "42501", None),
}


@pytest.mark.parametrize("change", UPLOAD_CHANGES)
def test_HST_4_an_upload_that_the_schema_refuses_waits_as_schema_not_ready(
    sign_in: MakeUser, directory: DirectoryFixtures, change: str
) -> None:
    statements, code, column = UPLOAD_CHANGES[change]
    user = sign_in()
    app = user.app
    with changed(directory, *statements):
        item = add(app)
        app.settle()
        # The upload waits, and says why, also after the pause and another attempt
        for _ in range(3):
            assert codes(app) == ["schema_not_ready"]
            assert code_of(app, item) == "schema_not_ready"
            [problem] = [p for p in problems(app) if p["what"] == "queue"]
            assert (problem["kind"], problem["purpose"]) == ("activity", "upload")
            assert (problem["table"], problem["column"]) == ("activities", column)
            assert problem["code"] == code
            ask_again(user)
    ask_again(user)
    assert stored(directory, user.person) == [item]
    assert problems(app) == []
    assert codes(app) == ["nothing_queued"]


def test_HST_4_a_missing_upload_function_is_named(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = user_of(sign_in, "rpc")
    body = {"code": "PGRST202", "message": "Could not find the function public.submit_activities"}
    directory.control.respond("/rest/v1/rpc/submit_activities", 404, body=json.dumps(body))
    item = add(user.app)
    user.app.settle()
    [problem] = problems(user.app)
    assert (problem["function"], problem["table"]) == ("submit_activities", None)
    assert (problem["kind"], problem["code"]) == ("activity", "PGRST202")
    assert code_of(user.app, item) == "schema_not_ready"


@BOTH
def test_HST_4_problems_of_kinds_are_kept_apart(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = user_of(sign_in, upload)
    app = user.app
    missing = {"code": "PGRST205", "message": "Could not find the table 'public.activities'"}
    path = "/rest/v1/activities" if upload == "table" else "/rest/v1/rpc/submit_activities"
    directory.control.respond(path, 404, body=json.dumps(missing), method="POST")
    item = add(app)
    app.settle()
    before = problems(app)
    assert [(p["what"], p["kind"]) for p in before] == [("queue", "activity")]
    # When a gateway fails afterwards, which says nothing about the schema
    directory.control.clear_faults()
    directory.control.respond(path, 502, body="<html>", method="POST", times=1)
    ask_again(user)
    assert problems(app) in ([], before)
    app.wait(7200)
    assert (problems(app), stored(directory, user.person)) == ([], [item])


def test_HST_4_a_missing_policy_of_uploads_is_a_problem(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    body = {
        "code": "42501",
        "message": 'new row violates row-level security policy for table "activities"',
    }
    directory.control.respond(
        "/rest/v1/activities", 403, body=json.dumps(body), method="POST", times=100
    )
    item = add(user.app)
    ask_again(user)
    assert code_of(user.app, item) == "schema_not_ready"
    [problem] = problems(user.app)
    assert (problem["what"], problem["code"], problem["table"]) == ("queue", "42501", "activities")


def test_HST_4_a_first_start_with_a_missing_table_says_so(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """The most common case: the project's membership table has another name."""
    phone = phones()
    app = phone.start()
    person = directory.person(directory.organisation())
    with changed(directory, *altered("table {} rename to {}", "memberships", "members")):
        app.sign_in(person)
        assert app.screen["screen"] == "wait"
        [problem] = problems(app)
        assert (problem["what"], problem["code"]) == ("memberships", "PGRST205")
    app.wait(600)
    assert problems(app) == []


def test_HST_4_problems_hold_no_user_data_and_end_with_the_session(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    body = {"code": "42501", "message": f'permission denied for table "{user.person.email}"'}
    directory.control.respond("/rest/v1/contacts", 403, body=json.dumps(body), times=100)
    ask_again(user)
    [problem] = problems(user.app)
    assert user.person.email not in json.dumps(problem)
    assert problem["table"] == "contacts"
    user.app.session_logout()
    directory.control.clear_faults()
    user.app.sign_in(user.person)
    assert problems(user.app) == []


# What the host queues ---------------------------------------------------------------------------


def test_HST_4_an_unknown_kind_is_answered_with_a_near_one_or_all(sign_in: MakeUser) -> None:
    app = sign_in().app
    for kind, said in (
        ("activty", 'did you mean "activity"?'),
        ("visit", "backend.queue has activity, contact, contact_details"),
    ):
        error = error_of(app.queue_add, {"kind": kind, "payload": {}, "occurred_at_ms": 0})
        assert (error.code, error.field) == ("queue.unknown_kind", "/kind")
        assert said in error.message
    assert "suggests a near name" in contract.DOCUMENT["x-errors"]["queue.unknown_kind"]


def test_HST_4_a_time_in_seconds_is_refused(sign_in: MakeUser) -> None:
    app = sign_in().app
    visit = {"kind": "activity", "payload": {"type": "visit", "minutes": 1}}
    for seconds in (0, 1, 1_732_300_000, 99_999_999_999):
        with pytest.raises(HoldfastError) as caught:
            app.queue_add({**visit, "occurred_at_ms": seconds})  # type: ignore[typeddict-item]
        error = caught.value
        assert (error.code, error.field) == ("request.invalid_value", "/occurred_at_ms"), seconds
        assert "milliseconds" in error.message
        assert "seconds" in error.message
    assert app.queue_list()["items"] == []
    app.queue_add({**visit, "occurred_at_ms": 100_000_000_000})  # type: ignore[typeddict-item]


def test_HST_4_a_time_that_no_column_can_hold_is_refused(sign_in: MakeUser) -> None:
    app = sign_in().app
    visit = {"kind": "activity", "payload": {"type": "visit", "minutes": 1}}
    last = 253_402_300_799_999
    error = error_of(app.queue_add, {**visit, "occurred_at_ms": last + 1})
    assert (error.code, error.field) == ("request.invalid_value", "/occurred_at_ms")
    app.queue_add({**visit, "occurred_at_ms": last})  # type: ignore[typeddict-item]
    [item] = app.queue_list()["items"]
    assert item["payload"]["occurred_at"] == "9999-12-31T23:59:59.999Z"


def test_CLK_2_a_device_whose_clock_fell_back_to_1970_registers(sign_in: MakeUser) -> None:
    """Its host can only say what its clock says; a visit is not lost for it."""
    user = sign_in(policy={"biometric": "off"})
    user.phone.now_ms = 86_400_000
    user.app.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
    add(user.app)
    assert len(user.app.queue_list()["items"]) == 1
