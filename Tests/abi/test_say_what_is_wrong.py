"""HST-4: mistakes of schema and configuration are named, and do not look like bad weather."""

from __future__ import annotations

import json
from typing import Any

import pytest
from holdfast import Holdfast, Library
from holdfast.transport import Answer

from conftest import MakePhone, MakeUser, SignedIn
from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person, changed
from support.phone import TOKEN_S, App, Phone
from support.queue import BOTH, add, code_of, stored, user_of
from support.sign_in import begin, browse, finish, settle_sign_in

JSON_TYPE = {"content-type": "application/json"}


def problems(app: App) -> list[dict[str, Any]]:
    return [dict(problem) for problem in app.sync_status()["problems"]]


def of_purpose(app: App, purpose: str) -> list[dict[str, Any]]:
    return [problem for problem in problems(app) if problem["purpose"] == purpose]


def codes(app: App) -> list[str]:
    return [reason["code"] for reason in app.queue_explain()["reasons"]]


def ask_again(user: SignedIn, seconds: float = 3600) -> None:
    """Every purpose asks the server again."""
    user.phone.pass_time(seconds)
    user.app.settle()
    user.app.sync_now()
    user.app.settle()


#: What is changed, how it is changed back, and what `problems` says.
READS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "memberships table": (
        "alter table memberships rename to members",
        "alter table members rename to memberships",
        {"what": "memberships", "purpose": "guard", "table": "memberships", "code": "PGRST205"},
    ),
    "memberships column": (
        "alter table memberships rename column status to state",
        "alter table memberships rename column state to status",
        {
            "what": "memberships",
            "purpose": "guard",
            "table": "memberships",
            "column": "status",
            "code": "42703",
        },
    ),
    "memberships grant": (
        "revoke select on memberships from authenticated",
        "grant select on memberships to authenticated",
        {"what": "memberships", "purpose": "guard", "table": "memberships", "code": "42501"},
    ),
    "organisations grant": (
        "revoke select on organizations from authenticated",
        "grant select on organizations to authenticated",
        {"what": "memberships", "purpose": "guard", "table": "organizations", "code": "42501"},
    ),
    "contacts table": (
        "alter table contacts rename to people",
        "alter table people rename to contacts",
        {"what": "contacts", "purpose": "pull", "table": "contacts", "code": "PGRST205"},
    ),
    "contacts column": (
        "alter table contacts rename column municipality to town",
        "alter table contacts rename column town to municipality",
        {
            "what": "contacts",
            "purpose": "pull",
            "table": "contacts",
            "column": "municipality",
            "code": "42703",
        },
    ),
    "contacts grant": (
        "revoke select on contacts from authenticated",
        "grant select on contacts to authenticated",
        {"what": "contacts", "purpose": "pull", "table": "contacts", "code": "42501"},
    ),
    "summary function": (
        "alter function activity_summary rename to figures",
        "alter function figures rename to activity_summary",
        {
            "what": "summary",
            "purpose": "summary",
            "function": "activity_summary",
            "code": "PGRST202",
        },
    ),
    "summary grant": (
        "revoke execute on function activity_summary from authenticated, public",
        "grant execute on function activity_summary to authenticated",
        {"what": "summary", "purpose": "summary", "function": "activity_summary", "code": "42501"},
    ),
}


@pytest.mark.parametrize("mistake", READS)
def test_HST_4_a_read_that_the_schema_refuses_is_a_problem_until_it_is_mended(
    sign_in: MakeUser, directory: DirectoryFixtures, library: Library, mistake: str
) -> None:
    """Issue 16, point 5."""
    change, back, expected = READS[mistake]
    # Given a server that answers well: there are no problems
    user = sign_in(contacts=2)
    lines: list[tuple[int, str]] = []
    library.set_log(1, lambda level, line: lines.append((level, line)))
    assert problems(user.app) == []
    # When the schema is changed
    with changed(directory, change, back):
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
        assert expected["code"] in told[0][1]
    # and mended, it disappears
    ask_again(user)
    assert problems(user.app) == []


#: What is changed and changed back, the server's code, and the column that it names.
UPLOAD_CHANGES: dict[str, tuple[tuple[str, str], str, str | None]] = {
    "table": (
        ("alter table activities rename to visits", "alter table visits rename to activities"),
        "PGRST205",
        None,
    ),
    "column": (
        (
            "alter table activities rename column minutes to length",
            "alter table activities rename column length to minutes",
        ),
        "PGRST204",
        "minutes",
    ),
    "grant": (
        (
            "revoke insert on activities from authenticated",
            "grant insert (id, org_id, user_id, type, occurred_at, minutes, contact_id, follows,"
            " note) on activities to authenticated",
        ),
        "42501",
        None,
    ),
}


@pytest.mark.parametrize("change", UPLOAD_CHANGES)
def test_HST_4_an_upload_that_the_schema_refuses_waits_as_schema_not_ready(
    sign_in: MakeUser, directory: DirectoryFixtures, change: str
) -> None:
    """Issue 16, point 5. A missing grant parked items: nobody of that role can store any."""
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
    """A kind whose table is missing says nothing about another kind."""
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
    # Then the problem is gone only after a good answer
    assert problems(app) in ([], before)
    user.phone.pass_time(7200)
    app.settle()
    assert (problems(app), stored(directory, user.person)) == ([], [item])


def test_HST_4_a_missing_policy_of_uploads_is_a_problem(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """A member whose rows a policy refuses again: the items are parked, and the problem named."""
    user = sign_in()
    body = {
        "code": "42501",
        "message": 'new row violates row-level security policy for table "activities"',
    }
    directory.control.respond(
        "/rest/v1/activities", 403, body=json.dumps(body), method="POST", times=100
    )
    item = add(user.app)
    ask_again(user)
    assert code_of(user.app, item) == "rejected"
    [problem] = problems(user.app)
    assert (problem["what"], problem["code"], problem["table"]) == ("queue", "42501", "activities")


def test_HST_4_a_first_start_with_a_missing_table_says_so(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    """The most common case: a newcomer whose membership table has another name."""
    phone = phones()
    app = phone.start()
    person = directory.person(directory.organisation())
    with changed(
        directory,
        "alter table memberships rename to members",
        "alter table members rename to memberships",
    ):
        app.sign_in(person)
        assert app.screen["screen"] == "wait"
        [problem] = problems(app)
        assert (problem["what"], problem["code"]) == ("memberships", "PGRST205")
    phone.pass_time(600)
    app.settle()
    assert problems(app) == []


def test_HST_4_problems_hold_no_user_data_and_end_with_the_session(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
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


# ---- Sign-in ---------------------------------------------------------------------------------


def told(app: App) -> tuple[str, str, str | None, str]:
    """The shown (screen, reason, cause, text)."""
    shown: dict[str, Any] = dict(app.screen)
    message = shown["message"]
    assert message is not None
    return shown["screen"], shown["reason"], message.get("cause"), message["text"]


def body_of(**members: Any) -> str:  # noqa: ANN401
    return json.dumps(members)


#: What the server answers to the exchange, and the cause.
ANSWERS: dict[str, tuple[int, str, str]] = {
    "wrong password": (400, body_of(code="invalid_credentials", message="x"), "wrong_password"),
    "wrong password, older server": (
        400,
        body_of(error="invalid_grant", error_description="Invalid login credentials"),
        "wrong_password",
    ),
    "unconfirmed": (400, body_of(code="email_not_confirmed", message="x"), "unconfirmed_address"),
    "unconfirmed, older server": (
        400,
        body_of(error="invalid_grant", error_description="Email not confirmed"),
        "unconfirmed_address",
    ),
    "wrong key": (401, body_of(message="Invalid API key", hint="x"), "wrong_api_key"),
    "gateway's words": (401, body_of(message="Unauthorized"), "wrong_api_key"),
    "no route": (404, body_of(message="no Route matched with those values"), "wrong_url"),
    "another server's 404": (404, "<html>Not Found</html>", "wrong_url"),
    "another server's JSON": (200, body_of(hello="world"), "not_supabase"),
    "paused": (540, "<html>Project paused</html>", "project_paused"),
    "paused, in JSON": (540, body_of(message="Project paused"), "project_paused"),
    "provider off": (400, body_of(code="provider_disabled", message="x"), "provider_disabled"),
    "passwords off": (
        422,
        body_of(code="email_provider_disabled", message="x"),
        "provider_disabled",
    ),
    "not enabled": (
        400,
        body_of(code="validation_failed", message="Unsupported provider: provider is not enabled"),
        "provider_disabled",
    ),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_HST_4_a_failed_sign_in_tells_its_cause(
    phone: Phone, person: Person, directory: DirectoryFixtures, answer: str
) -> None:
    """Issue 16, point 5."""
    status, body, cause = ANSWERS[answer]
    app = phone.start()
    directory.control.respond("/auth/v1/token", status, body=body, times=1)
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    assert told(app)[:3] == ("sign_in", "sign_in_failed", cause)


def test_HST_4_the_server_itself_refuses_a_password_and_a_key(
    phones: MakePhone, person: Person
) -> None:
    """Without scripted answers: what the test server says."""
    app = phones().start()
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    assert told(app)[2] == "wrong_password"
    wrong = phones()
    wrong.config["backend"]["api_key"] = "sb_publishable_of_another_project"
    app = wrong.start()
    app.sign_in_complete({"email": person.email, "password": "not-the-password"})
    app.settle()
    assert told(app)[2] == "wrong_api_key"


@pytest.mark.parametrize("ends", ["refused", "offline", "expired"])
def test_HST_4_a_sign_in_that_fails_over_an_open_session_tells_why(
    sign_in: MakeUser, directory: DirectoryFixtures, ends: str
) -> None:
    """Issue 16, point 5: the next call went back to `home`, and dropped the event with the
    cause."""
    user = sign_in()
    app = user.app
    shown = len(app.of_type("decision"))
    # Given a user who signs in again while the session is open, and fails
    if ends == "expired":
        user.phone.network.instead.append(
            lambda request: {"error": "timeout"} if request["purpose"] == "sign_in" else None
        )
    app.sign_in_complete({"email": user.person.email, "password": "not-the-password"})
    if ends == "offline":
        user.phone.network.up = False
        app.network_set({"online": False})
    app.settle()
    if ends == "expired":
        settle_sign_in(app)
    # Then one event tells why, and nothing follows by itself,
    reason = {"offline": "sign_in_offline", "expired": "sign_in_unreachable"}
    expected = ("sign_in", reason.get(ends, "sign_in_failed"))
    assert (app.screen["screen"], app.screen["reason"]) == expected
    assert (app.screen["message"] or {}).get("cause") == {
        "refused": "wrong_password",
        "expired": "timeout",
    }.get(ends)
    if ends == "offline":
        app.go_online()
    app.settle()
    user.phone.pass_time(TOKEN_S)
    app.settle()
    assert directory.refreshes() == 1
    decisions = app.of_type("decision")[shown:]
    waits = ["signing_in"] if ends == "expired" else []  # it tells why it is tried again
    assert [event["decision"]["reason"] for event in decisions] == [*waits, expected[1]]
    # while the session stays open, and its data can be used;
    assert app.session_status()["state"] == "active"
    app.register()
    # and home is there as soon as the user turns to it
    assert app.sign_in_cancel()["decision"]["screen"] == "home"
    app.settle()
    assert app.screen["screen"] == "home"


@pytest.mark.parametrize("change", ["lock", "logout", "elsewhere", "return", "sign-in"])
def test_HST_4_a_failed_sign_in_over_an_open_session_gives_way(
    sign_in: MakeUser, change: str
) -> None:
    """It stays only until the session changes, or the app asks for a decision."""
    user = sign_in()
    app = user.app
    app.sign_in_complete({"email": user.person.email, "password": "not-the-password"})
    app.settle()
    assert app.screen["reason"] == "sign_in_failed"
    if change == "lock":
        app.session_lock()
    elif change == "logout":
        app.session_logout()
    elif change == "elsewhere":
        with Holdfast(
            user.phone.config, user.phone.key_store, library=user.phone.library
        ) as second:
            second.clock_set({"now_ms": user.phone.now_ms, "monotonic_ms": user.phone.monotonic_ms})
            second.session_lock()
    elif change == "return":
        app.session_background()
        app.session_foreground()
    else:
        app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    app.settle()
    expected = {"lock": "unlock", "logout": "sign_in", "elsewhere": "unlock"}
    assert app.screen["screen"] == expected.get(change, "home")
    assert app.screen["reason"] != "sign_in_failed"


def test_HST_4_a_page_instead_of_an_answer_is_waited_out_and_then_named(
    phone: Phone, person: Person
) -> None:
    """A portal may let the sign-in through within the minute; until then it is tried again."""
    page: Answer = {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>"}
    app = phone.start()
    phone.network.instead.append(lambda request: page)
    callback = browse(begin(app)["url"])
    finish(app, callback)
    assert app.screen["screen"] == "wait"
    settle_sign_in(app)
    assert told(app)[:3] == ("sign_in", "sign_in_failed", "not_supabase")


def test_HST_4_a_page_and_then_silence_is_not_named_after_the_page(
    phone: Phone, person: Person
) -> None:
    answers: list[Answer] = [
        {"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>"}
    ]
    silence: Answer = {"error": "timeout"}
    app = phone.start()
    phone.network.instead.append(lambda request: answers.pop() if answers else silence)
    finish(app, browse(begin(app)["url"]))
    settle_sign_in(app)
    assert app.screen["reason"] == "sign_in_unreachable"
    assert (app.screen["message"] or {}).get("cause") == "timeout"


@pytest.mark.parametrize("locale", ["nb", "nn", "en"])
def test_HST_4_every_cause_has_its_own_text(
    phones: MakePhone, person: Person, directory: DirectoryFixtures, locale: str
) -> None:
    texts: dict[str | None, str] = {}
    app = phones(locale=locale).start()
    for status, body, _ in [*ANSWERS.values(), (403, body_of(code="signup_disabled"), "")]:
        directory.control.respond("/auth/v1/token", status, body=body, times=1)
        app.sign_in_complete({"email": person.email, "password": "not-the-password"})
        app.settle()
        _, reason, cause, text = told(app)
        assert reason == "sign_in_failed"
        assert texts.setdefault(cause, text) == text
    # An unknown cause has the general text and no field.
    assert None in texts
    assert len(set(texts.values())) == len(texts) == 8


def test_HST_4_a_callback_that_names_a_provider_that_is_off_tells_it(
    phone: Phone, person: Person
) -> None:
    app = phone.start()
    begin(app)
    query = "error=server_error&error_code=provider_disabled"
    app.sign_in_complete({"callback_url": f"{app.phone.config['redirect_url']}?{query}"})
    assert told(app)[:3] == ("sign_in", "sign_in_failed", "provider_disabled")
