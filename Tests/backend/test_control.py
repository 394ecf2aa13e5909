"""The control API: settings, request log, people and the database."""

from __future__ import annotations

import concurrent.futures
import datetime
import email.utils
import urllib.parse

import httpx
import pytest
from local_supabase import LocalSupabase, demo
from patience import eventually

import web
from people import Person, activity, member


def refresh(backend: LocalSupabase, token: str) -> httpx.Response:
    return web.post(
        f"{backend.auth_url}/token?grant_type=refresh_token",
        json={"refresh_token": token},
        headers={"apikey": backend.anon_key, "X-Supabase-Api-Version": "2024-01-01"},
    )


def get_user(backend: LocalSupabase, person: Person) -> httpx.Response:
    return web.get(
        f"{backend.auth_url}/user",
        headers={
            "apikey": backend.anon_key,
            "Authorization": f"Bearer {person.token}",
            "X-Supabase-Api-Version": "2024-01-01",
        },
    )


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


# Settings -----------------------------------------------------------------------------------------


@pytest.mark.both_servers
def test_date_offset(backend: LocalSupabase, mentor: Person) -> None:
    backend.control.set(date_offset_s=7200)
    ahead = datetime.timedelta(seconds=7200)
    earliest = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    date = email.utils.parsedate_to_datetime(mentor.rest.get("/activities").headers["date"])
    assert earliest <= date - ahead <= datetime.datetime.now(datetime.UTC)


@pytest.mark.both_servers
def test_jwt_lifetime(backend: LocalSupabase, org: str) -> None:
    backend.control.set(jwt_lifetime=1)
    person = member(backend, org, "peer_mentor")
    assert person.session["expires_in"] == 1
    eventually(lambda: get_user(backend, person).status_code != 200, what="the token has expired")
    assert code(get_user(backend, person)) == (403, "bad_jwt")
    assert person.rest.get("/activities").status_code == 200, (
        "the data service has a leeway of 30 s"
    )


@pytest.mark.both_servers
def test_body_limits(backend: LocalSupabase, org: str, mentor: Person) -> None:
    backend.control.set(max_body_rows=3)
    assert mentor.insert([activity(org) for _ in range(3)]).status_code == 201
    assert mentor.insert([activity(org) for _ in range(4)]).status_code == 413
    columns = "id,org_id,type,occurred_at,minutes"
    assert mentor.insert([activity(org) for _ in range(4)], columns=columns).status_code == 413
    backend.control.set(max_body_rows=None, max_body_bytes=500)
    assert mentor.insert([activity(org)]).status_code == 201
    assert mentor.insert([activity(org, note="x" * 500)]).status_code == 413


def test_statement_timeout(backend: LocalSupabase, mentor: Person) -> None:
    settings = backend.control.sql(
        "select rolname, rolconfig from pg_roles where rolname in ('anon', 'authenticated')"
    )
    assert {row["rolname"]: row["rolconfig"] for row in settings} == {
        "anon": ["statement_timeout=3s"],
        "authenticated": ["statement_timeout=8s"],
    }
    backend.control.sql(
        "create function public.sleepy() returns int language sql as 'select pg_sleep(600); select 1'; "
        "grant execute on function public.sleepy to authenticated"
    )
    backend.control.reload_schema()
    try:
        backend.control.set(statement_timeout_ms=100)
        assert code(mentor.rest.post("/rpc/sleepy", json={})) == (500, "57014")
    finally:
        backend.control.sql("drop function public.sleepy")
        backend.control.reload_schema()


@pytest.mark.both_servers
def test_apikey_is_required_as_at_the_gateway(backend: LocalSupabase, mentor: Person) -> None:
    url = f"{backend.rest_url}/activities"
    bearer = {"Authorization": f"Bearer {mentor.token}"}
    assert web.get(url, headers=bearer).status_code == 401
    answer = web.get(url, headers={**bearer, "apikey": mentor.token})
    assert (answer.status_code, answer.json()["message"]) == (401, "Invalid API key")
    backend.control.set(require_apikey=False)
    assert web.get(url, headers=bearer).status_code == 200


@pytest.mark.both_servers
def test_rate_limit(backend: LocalSupabase) -> None:
    backend.control.set(rate_limit_burst=3, rate_limit_refill_s=3600)
    answers = [refresh(backend, "aaaaaaaaaaaa") for _ in range(4)]
    assert [a.status_code for a in answers] == [400, 400, 400, 429]
    assert code(answers[-1]) == (429, "over_request_rate_limit")
    assert "retry-after" not in answers[-1].headers
    backend.control.set(rate_limit_refill_s=0.01)
    eventually(
        lambda: refresh(backend, "aaaaaaaaaaaa").status_code == 400,
        what="the bucket is filled again",
    )


# Request log --------------------------------------------------------------------------------------


def test_the_log_holds_no_secret(backend: LocalSupabase, mentor: Person) -> None:
    mentor.rest.get("/activities")
    refresh(backend, mentor.session["refresh_token"])
    mentor.rest.get("/contacts", params={"select": "id", "apikey": backend.anon_key, "limit": "1"})
    assert backend.control.requests()[-1]["query"] == "select=id&apikey=(present)&limit=1"
    text = str(backend.control.requests())
    for secret in (mentor.token, mentor.session["refresh_token"], backend.anon_key, demo.PASSWORD):
        assert secret not in text


# People -------------------------------------------------------------------------------------------


@pytest.mark.both_servers
def test_ban_and_unban(backend: LocalSupabase, mentor: Person) -> None:
    token = mentor.session["refresh_token"]
    backend.control.ban(mentor.email)
    assert code(refresh(backend, token)) == (400, "user_banned")
    assert code(get_user(backend, mentor)) == (403, "user_banned")
    backend.control.unban(mentor.email)
    assert refresh(backend, token).status_code == 200, "a ban is reversible"


@pytest.mark.both_servers
def test_expired_sessions(backend: LocalSupabase, mentor: Person) -> None:
    backend.control.expire_sessions(mentor.email)
    assert get_user(backend, mentor).status_code == 200, "enforced at refresh only"
    assert code(refresh(backend, mentor.session["refresh_token"])) == (400, "session_expired")


@pytest.mark.both_servers
def test_revoked_sessions(backend: LocalSupabase, mentor: Person) -> None:
    assert len(backend.control.sessions(mentor.email)) == 1
    backend.control.revoke_sessions(mentor.email)
    assert code(get_user(backend, mentor)) == (403, "session_not_found")
    assert code(refresh(backend, mentor.session["refresh_token"])) == (
        400,
        "refresh_token_not_found",
    )


@pytest.mark.both_servers
def test_removed_user(backend: LocalSupabase, mentor: Person) -> None:
    backend.control.remove_user(mentor.email)
    assert code(get_user(backend, mentor)) == (403, "user_not_found")
    assert code(refresh(backend, mentor.session["refresh_token"])) == (
        400,
        "refresh_token_not_found",
    )


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"session_timebox": 1e-6}, "Session Expired"),
        ({"session_inactivity": 1e-6}, "(Inactivity)"),
    ],
)
def test_session_limits(
    backend: LocalSupabase, mentor: Person, setting: dict[str, float], words: str
) -> None:
    backend.control.set(**setting)
    answer = refresh(backend, mentor.session["refresh_token"])
    assert code(answer) == (400, "session_expired")
    assert answer.json()["message"].endswith(words)


@pytest.mark.both_servers
def test_single_session_per_user(backend: LocalSupabase, mentor: Person) -> None:
    backend.control.set(single_session=True)
    newer = Person(backend, mentor.email)
    answer = refresh(backend, mentor.session["refresh_token"])
    assert code(answer) == (400, "session_expired")
    assert answer.json()["message"].endswith("(Revoked by Newer Login)")
    assert refresh(backend, newer.session["refresh_token"]).status_code == 200


def test_serialization_failures_are_repeated(backend: LocalSupabase, mentor: Person) -> None:
    """Given a function that always raises 40001, then no answer comes until it stops."""
    # A sequence counts the calls, because no rollback takes its numbers back.
    backend.control.sql(
        "create sequence private.clashes; "
        "create function public.clash() returns int language plpgsql security definer as "
        "$$ begin perform nextval('private.clashes'); raise serialization_failure; end $$; "
        "grant execute on function public.clash to authenticated"
    )
    backend.control.reload_schema()

    def is_repeated() -> bool:
        [row] = backend.control.sql("select last_value from private.clashes")
        return bool(row["last_value"] >= 3)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        asked = pool.submit(mentor.rest.post, "/rpc/clash", json={})
        try:
            eventually(is_repeated, what="the call is repeated")
            assert not asked.done()
        finally:
            backend.control.sql(
                "create or replace function public.clash() returns int language sql as 'select 7'"
            )
    try:
        assert asked.result().json() == 7
    finally:
        backend.control.sql("drop function public.clash; drop sequence private.clashes")
        backend.control.reload_schema()


# The database stops -------------------------------------------------------------------------------


def test_database_stopped_and_started() -> None:
    """As measured: first 400 with an empty code, then 503 with Retry-After, then normal answers."""
    with LocalSupabase(demo=True) as own:
        person = Person(own, "mentor@example.org")
        own.control.stop_database()
        first, second = person.rest.get("/activities"), person.rest.get("/activities")
        assert code(first) == (400, "")
        assert code(second) == (503, "PGRST001")
        assert second.headers["retry-after"] == "1"
        assert get_user(own, person).status_code == 500
        own.control.start_database()
        assert person.rest.get("/activities").status_code == 200
        assert refresh(own, person.session["refresh_token"]).status_code == 200


def test_a_link_that_has_expired_shows_what_the_project_lists(backend: LocalSupabase) -> None:
    """GoTrue answers the unknown token of a mail's link with the same rule for the redirect."""
    backend.control.set(redirect_allow_list=["app.example://in"])
    for target, reached in (
        ("app.example://in", "app.example://in"),
        ("app.example://in?state=x", "https://site.example.org"),
        ("", "https://site.example.org"),
    ):
        query = {"token": "0" * 56, "type": "signup", "redirect_to": target}
        headers = {"apikey": backend.anon_key}
        answer = web.get(f"{backend.auth_url}/verify", params=query, headers=headers)
        place, _, facts = answer.headers["location"].partition("#")
        assert (answer.status_code, place) == (303, reached)
        assert urllib.parse.parse_qs(facts)["error_code"] == ["otp_expired"]
    refused = web.get(f"{backend.auth_url}/verify?type=signup", headers=headers)
    assert refused.status_code == 400
