"""Sign-in by the simulated BankID and Vipps: PKCE, the provider's page, refusals, identity tokens."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import urllib.parse
import uuid
from typing import Any

import httpx
import pytest
from local_supabase import LocalSupabase, demo

import web

pytestmark = pytest.mark.both_servers
BACK = "app.example://callback?state=s%20t&x=%C3%A6"


def challenge_of(verifier: str) -> str:
    return (
        base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    )


def authorize(backend: LocalSupabase, verifier: str = "v" * 50, **query: str) -> httpx.Response:
    asked = {
        "provider": "bankid",
        "redirect_to": BACK,
        "code_challenge": challenge_of(verifier),
        "code_challenge_method": "s256",
        **query,
    }
    return web.get(f"{backend.auth_url}/authorize", params=asked)


def returned(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 302, answer.text
    parts = urllib.parse.urlsplit(answer.headers["location"])
    assert f"{parts.scheme}://{parts.netloc}" == "app.example://callback"
    return dict(urllib.parse.parse_qsl(parts.query))


def token(backend: LocalSupabase, grant: str, **sent: Any) -> httpx.Response:
    return web.post(
        f"{backend.auth_url}/token?grant_type={grant}",
        json=sent,
        headers={"apikey": backend.anon_key, "X-Supabase-Api-Version": "2024-01-01"},
    )


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def claims(jwt: str) -> dict[str, Any]:
    part = jwt.split(".")[1]
    return dict(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))))


# PKCE ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", ["login_hint", "user"])
def test_redirects_at_once_when_the_person_is_known(backend: LocalSupabase, parameter: str) -> None:
    verifier = secrets.token_urlsafe(40)
    got = returned(authorize(backend, verifier, **{parameter: "mentor@example.org"}))
    assert (got["state"], got["x"]) == ("s t", "æ"), "the app's own parameters are kept"
    answer = token(backend, "pkce", auth_code=got["code"], code_verifier=verifier)
    assert answer.status_code == 200
    session = answer.json()
    assert session["user"]["id"] == demo.USERS["mentor@example.org"]
    assert "weak_password" not in session
    proof = claims(session["access_token"])["amr"][0]
    assert (proof["method"], proof["provider"]) == ("oauth", "bankid")


def test_plain_challenge(backend: LocalSupabase) -> None:
    verifier = "p" * 60
    got = returned(
        authorize(
            backend,
            user="mentor@example.org",
            code_challenge=verifier,
            code_challenge_method="plain",
        )
    )
    assert token(backend, "pkce", auth_code=got["code"], code_verifier=verifier).status_code == 200


def test_a_code_works_once(backend: LocalSupabase) -> None:
    got = returned(authorize(backend, user="mentor@example.org"))
    sent = {"auth_code": got["code"], "code_verifier": "v" * 50}
    assert token(backend, "pkce", **sent).status_code == 200
    assert code(token(backend, "pkce", **sent)) == (404, "flow_state_not_found")


def test_a_wrong_verifier_does_not_use_the_code_up(backend: LocalSupabase) -> None:
    got = returned(authorize(backend, user="mentor@example.org"))
    wrong = token(backend, "pkce", auth_code=got["code"], code_verifier="w" * 50)
    assert code(wrong) == (400, "bad_code_verifier")
    right = token(backend, "pkce", auth_code=got["code"], code_verifier="v" * 50)
    assert right.status_code == 200


def test_an_expired_flow_is_refused(backend: LocalSupabase) -> None:
    backend.control.set(flow_state_lifetime=0)
    got = returned(authorize(backend, user="mentor@example.org"))
    answer = token(backend, "pkce", auth_code=got["code"], code_verifier="v" * 50)
    assert code(answer) == (422, "flow_state_expired")


@pytest.mark.parametrize(
    "query",
    [
        {"code_challenge": "short"},
        {"code_challenge_method": "md5"},
        {"provider": "nope"},
        {"redirect_to": ""},
    ],
)
def test_refused_parameters(backend: LocalSupabase, query: dict[str, str]) -> None:
    answer = authorize(backend, user="mentor@example.org", **query)
    assert (answer.status_code, answer.json()["error_code"]) == (400, "validation_failed")


def test_a_redirect_that_the_project_does_not_allow_goes_to_the_site(
    backend: LocalSupabase,
) -> None:
    """As the real server does, without an error: the app never hears of the sign-in."""
    backend.control.set(redirect_allow_list=["com.example.app:/in", "app.example://in**"])
    for target, allowed in (
        ("com.example.app:/in", True),
        ("com.example.app:/in?state=x", False),
        ("com.example.app:/in/x", False),
        ("app.example://in", True),
        ("app.example://in?state=x/y", True),
        ("https://site.example.org/anywhere", True),
        ("https://other.example.org/", False),
    ):
        answer = authorize(backend, redirect_to=target, user="mentor@example.org")
        location = urllib.parse.urlsplit(answer.headers["location"])
        came = urllib.parse.urlsplit(target if allowed else "https://site.example.org")
        assert location[:3] == came[:3], target
        assert "code=" in location.query


def test_the_current_person(backend: LocalSupabase) -> None:
    backend.control.sign_in_as("solo@example.org")
    got = returned(authorize(backend))
    answer = token(backend, "pkce", auth_code=got["code"], code_verifier="v" * 50)
    assert answer.json()["user"]["email"] == "solo@example.org"


def test_a_page_offers_everyone(backend: LocalSupabase) -> None:
    answer = authorize(backend, redirect_to='app.example://callback?a="><script>')
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    for email in demo.USERS:
        assert f'value="{email}"' in answer.text
    assert "<script>" not in answer.text, "escaped"


def test_cancelling_on_the_page(backend: LocalSupabase) -> None:
    got = returned(authorize(backend, cancel="1"))
    assert (got["error"], got["state"]) == ("access_denied", "s t")
    assert "code" not in got


def test_refusal_on_demand(backend: LocalSupabase) -> None:
    backend.control.refuse_sign_in(
        error="server_error", error_code="bad_oauth_state", error_description="æ ø"
    )
    got = returned(authorize(backend, user="mentor@example.org"))
    assert (got["error"], got["error_code"], got["error_description"]) == (
        "server_error",
        "bad_oauth_state",
        "æ ø",
    )
    assert "code" in returned(authorize(backend, user="mentor@example.org")), (
        "the refusal occurs only once"
    )


def test_someone_new(backend: LocalSupabase) -> None:
    email = f"ny{uuid.uuid4().hex[:8]}@example.org"
    got = returned(authorize(backend, user=email, provider="vipps"))
    user = token(backend, "pkce", auth_code=got["code"], code_verifier="v" * 50).json()["user"]
    assert (user["email"], user["app_metadata"]["provider"]) == (email, "vipps")


def test_banned_people_cannot_sign_in(backend: LocalSupabase) -> None:
    email = f"u{uuid.uuid4().hex[:8]}@example.org"
    backend.control.add_user(email)
    backend.control.ban(email)
    assert code(token(backend, "password", email=email, password=demo.PASSWORD)) == (
        400,
        "user_banned",
    )
    got = returned(authorize(backend, user=email))
    answer = token(backend, "pkce", auth_code=got["code"], code_verifier="v" * 50)
    assert code(answer) == (400, "user_banned")


# Identity tokens ----------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["bankid", "vipps", "custom:bankid-broker"])
def test_identity_token(backend: LocalSupabase, provider: str) -> None:
    """The client sends the raw nonce; the token contains its hash."""
    nonce = secrets.token_urlsafe(16)
    made = backend.control.identity_token("mentor@example.org", nonce=nonce)
    assert claims(made)["nonce"] == hashlib.sha256(nonce.encode()).hexdigest()
    answer = token(backend, "id_token", id_token=made, provider=provider, nonce=nonce)
    assert answer.status_code == 200
    assert answer.json()["user"]["email"] == "mentor@example.org"


def test_identity_token_without_nonce(backend: LocalSupabase) -> None:
    made = backend.control.identity_token("mentor@example.org")
    assert token(backend, "id_token", id_token=made, provider="bankid").status_code == 200


@pytest.mark.parametrize(
    ("minted", "sent", "error"),
    [
        ({"nonce": "a"}, {}, "Passed nonce and nonce in id_token should either both exist or not."),
        ({}, {"nonce": "a"}, "Passed nonce and nonce in id_token should either both exist or not."),
        ({"nonce": "a"}, {"nonce": "b"}, "Nonces mismatch"),
        ({"audience": "someone-else"}, {}, "Unacceptable audience in id_token: [someone-else]"),
        ({"lifetime": -1}, {}, "Bad ID token"),
    ],
)
def test_refused_identity_tokens(
    backend: LocalSupabase, minted: dict[str, Any], sent: dict[str, Any], error: str
) -> None:
    made = backend.control.identity_token("mentor@example.org", **minted)
    answer = token(backend, "id_token", id_token=made, provider="bankid", **sent)
    assert (answer.status_code, answer.json()["error_description"]) == (400, error)


def test_forged_identity_token(backend: LocalSupabase) -> None:
    head, body, signature = backend.control.identity_token("mentor@example.org").split(".")
    forged = ".".join([head, body, signature[::-1]])
    answer = token(backend, "id_token", id_token=forged, provider="bankid")
    assert (answer.status_code, answer.json()["error_description"]) == (400, "Bad ID token")


def test_disabled_provider_is_refused(backend: LocalSupabase) -> None:
    made = backend.control.identity_token("mentor@example.org")
    assert code(token(backend, "id_token", id_token=made, provider="google")) == (
        400,
        "provider_disabled",
    )
