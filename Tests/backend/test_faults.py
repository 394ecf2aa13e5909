"""Each fault has exactly its documented effect on the connection, the answer and the database."""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import http.client
import json
import select
import socket
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from local_supabase import ControlError, LocalSupabase
from patience import eventually, patience

import web
from people import Person, activity

TABLE = "/rest/v1/activities"


@contextlib.contextmanager
def posted(backend: LocalSupabase, person: Person, row: dict[str, Any]) -> Iterator[socket.socket]:
    """POST over a bare socket, and hang up at the end."""
    address = urllib.parse.urlsplit(backend.url)
    body = json.dumps(row).encode()
    head = (
        f"POST {TABLE} HTTP/1.1\r\nHost: x\r\napikey: {backend.anon_key}\r\n"
        f"Authorization: Bearer {person.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    place = (address.hostname, address.port)
    with socket.create_connection(place, timeout=patience(120)) as link:
        link.sendall(head.encode() + body)
        yield link


def all_of(link: socket.socket) -> tuple[bytes, str]:
    """The received bytes and how the connection ended (`fin` or `reset`)."""
    received = b""
    try:
        while chunk := link.recv(65536):
            received += chunk
    except ConnectionResetError:
        return received, "reset"
    return received, "fin"


def is_silent(link: socket.socket) -> bool:
    """Whether neither an answer nor the end of the connection has come."""
    return select.select([link], [], [], 0)[0] == []


def wait_for_hit(backend: LocalSupabase, rule: int) -> None:
    """Wait until a request has met the fault."""

    def is_hit() -> bool:
        return any(each["id"] == rule and each["hits"] > 0 for each in backend.control.faults())

    eventually(is_hit, what="the request has arrived")


@pytest.mark.parametrize(("reset", "ending"), [(True, "reset"), (False, "fin")])
def test_drop_before(
    backend: LocalSupabase, org: str, mentor: Person, reset: bool, ending: str
) -> None:
    backend.control.drop_before(TABLE, method="POST", reset=reset)
    with posted(backend, mentor, activity(org)) as link:
        assert all_of(link) == (b"", ending)
    assert mentor.activities() == [], "the request was not handled"
    assert mentor.insert(activity(org)).status_code == 201, "the fault occurs only once"


@pytest.mark.parametrize(("reset", "ending"), [(True, "reset"), (False, "fin")])
def test_drop_after(
    backend: LocalSupabase, org: str, mentor: Person, reset: bool, ending: str
) -> None:
    backend.control.drop_after(TABLE, method="POST", reset=reset)
    row = activity(org)
    with posted(backend, mentor, row) as link:
        assert all_of(link) == (b"", ending)
    assert [r["id"] for r in mentor.activities()] == [row["id"]], (
        "the request was handled and committed"
    )


def test_delay_before_the_request_is_handled(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    started = time.monotonic()
    rule = backend.control.delay(TABLE, method="POST", before_ms=400)
    with posted(backend, mentor, activity(org)):
        wait_for_hit(backend, rule)
    eventually(mentor.activities, what="a client that hung up does not stop the statement")
    assert time.monotonic() - started >= 0.4
    backend.control.delay(TABLE, method="POST", before_ms=300)
    started = time.monotonic()
    assert mentor.insert(activity(org)).status_code == 201
    assert time.monotonic() - started >= 0.3


def test_delay_after_the_request_is_handled(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    backend.control.delay(TABLE, method="POST", after_ms=3_600_000)
    with posted(backend, mentor, activity(org)) as link:
        eventually(mentor.activities, what="committed before the wait")
        assert is_silent(link)
    backend.control.delay(TABLE, method="POST", after_ms=300)
    started = time.monotonic()
    assert mentor.insert(activity(org)).status_code == 201
    assert time.monotonic() - started >= 0.3


def test_respond(backend: LocalSupabase, org: str, mentor: Person) -> None:
    page = "<html><title>Velkommen til Wi-Fi på Ås</title></html>"
    backend.control.respond(
        TABLE, 200, body=page, headers={"Content-Type": "text/html; charset=utf-8"}
    )
    answer = mentor.insert(activity(org))
    assert (answer.status_code, answer.text) == (200, page)
    assert answer.headers["content-type"].startswith("text/html")
    assert mentor.activities() == []
    backend.control.respond(TABLE, 503, body={"code": "PGRST001"})
    assert mentor.insert(activity(org)).json() == {"code": "PGRST001"}


def test_retry_after_in_seconds_and_as_a_date(backend: LocalSupabase, mentor: Person) -> None:
    backend.control.respond(TABLE, 429, retry_after_s=7)
    answer = mentor.rest.get("/activities")
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    backend.control.respond(TABLE, 503, retry_after_date_s=90)
    earliest = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    date = email.utils.parsedate_to_datetime(mentor.rest.get("/activities").headers["retry-after"])
    latest = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=1)
    assert earliest <= date - datetime.timedelta(seconds=90) <= latest


def test_hang(backend: LocalSupabase, org: str, mentor: Person) -> None:
    rule = backend.control.hang(TABLE)
    with posted(backend, mentor, activity(org)) as link:
        wait_for_hit(backend, rule)
        # Given a second request, which comes after it, then the first one is neither answered
        assert mentor.activities() == []
        assert is_silent(link)


def test_truncated_answer_of_a_whole_write(
    backend: LocalSupabase, org: str, mentor: Person
) -> None:
    rows = [activity(org) for _ in range(5)]
    backend.control.truncate_rows(TABLE, keep=2, method="POST")
    answer = mentor.insert(rows)
    assert (answer.status_code, len(answer.json())) == (201, 2)
    assert len(mentor.activities()) == 5


def test_match_by_method_path_and_query(backend: LocalSupabase, mentor: Person) -> None:
    backend.control.respond(TABLE, 418, method="GET", query="select=id", times=-1)
    assert mentor.rest.get("/activities", params={"select": "id"}).status_code == 418
    assert mentor.rest.get("/activities", params={"select": "note"}).status_code == 200
    assert mentor.rest.head("/activities", params={"select": "id"}).status_code == 200
    assert mentor.rest.get("/contacts", params={"select": "id"}).status_code == 200


def test_skip_times_and_hits(backend: LocalSupabase, mentor: Person) -> None:
    rule = backend.control.respond(TABLE, 500, skip=1, times=2)
    seen = [mentor.rest.get("/activities").status_code for _ in range(5)]
    assert seen == [200, 500, 500, 200, 200]
    assert [(f["id"], f["hits"]) for f in backend.control.faults()] == [(rule, 2)]
    backend.control.clear_faults(rule)
    assert backend.control.faults() == []


def test_faults_also_apply_to_the_auth_service(backend: LocalSupabase) -> None:
    backend.control.respond("/auth/v1/token", 500, query="grant_type=refresh_token")
    answer = web.post(
        f"{backend.auth_url}/token?grant_type=refresh_token",
        json={},
        headers={"apikey": backend.anon_key},
    )
    assert answer.status_code == 500


def test_a_dropped_refresh_still_rotated(backend: LocalSupabase, mentor: Person) -> None:
    """Given a refresh whose answer is lost, when the old token is sent again, then the new one is returned."""
    backend.control.drop_after("/auth/v1/token")
    url = f"{backend.auth_url}/token?grant_type=refresh_token"
    sent = {"refresh_token": mentor.session["refresh_token"]}
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        web.post(url, json=sent, headers={"apikey": backend.anon_key})
    lost = backend.control.sql(
        "select token from auth.refresh_tokens where user_id = %s and not revoked", mentor.id
    )
    answer = web.post(url, json=sent, headers={"apikey": backend.anon_key}).json()
    assert [row["token"] for row in lost] == [answer["refresh_token"]]


def test_invalid_faults_are_refused(backend: LocalSupabase) -> None:
    with pytest.raises(ControlError, match="action"):
        backend.control.add_fault("explode")
    with pytest.raises(ControlError, match="colour"):
        backend.control.add_fault("hang", colour="blå")


def test_connection_survives_other_faults(backend: LocalSupabase, mentor: Person) -> None:
    """`respond` keeps the connection open, so a keep-alive client continues to use it."""
    address = urllib.parse.urlsplit(backend.url)
    link = http.client.HTTPConnection(address.hostname or "", address.port, timeout=patience(120))
    backend.control.respond("/auth/v1/health", 502, body="x")
    statuses = []
    for _ in range(2):
        link.request("GET", "/auth/v1/health")
        answer = link.getresponse()
        answer.read()
        statuses.append(answer.status)
    port = link.sock.getsockname()[1] if link.sock else 0
    link.close()
    assert statuses == [502, 200]
    assert port
