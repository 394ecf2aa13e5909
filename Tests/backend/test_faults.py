"""Each fault has exactly its documented effect on the connection, the answer and the database."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest
from local_supabase import LocalSupabase
from patience import eventually, patience

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


def test_skip_times_and_hits(backend: LocalSupabase, mentor: Person) -> None:
    rule = backend.control.respond(TABLE, 500, skip=1, times=2)
    seen = [mentor.rest.get("/activities").status_code for _ in range(5)]
    assert seen == [200, 500, 500, 200, 200]
    assert [(f["id"], f["hits"]) for f in backend.control.faults()] == [(rule, 2)]
    backend.control.clear_faults(rule)
    assert backend.control.faults() == []
