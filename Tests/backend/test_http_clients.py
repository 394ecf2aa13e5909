"""Requests in the exact form in which other languages' HTTP clients send them."""

from __future__ import annotations

import json
import socket
import urllib.parse

from local_supabase import LocalSupabase, demo
from patience import patience

#: A sign-in as the HttpClient of the JDK 17 sends it: it offers HTTP/2 with every request.
JDK = (
    b"POST /auth/v1/token?grant_type=password HTTP/1.1\r\n"
    b"Connection: Upgrade, HTTP2-Settings\r\n"
    b"Content-Length: %d\r\n"
    b"Host: 127.0.0.1\r\n"
    b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
    b"Upgrade: h2c\r\n"
    b"User-Agent: Java-http-client/17.0.15\r\n"
    b"apikey: %s\r\n"
    b"Content-Type: application/json\r\n"
    b"\r\n%s"
)
BODY = json.dumps({"email": "mentor@example.org", "password": demo.PASSWORD}).encode()


def jdk_request(backend: LocalSupabase) -> bytes:
    return JDK % (len(BODY), backend.anon_key.encode(), BODY)


def exchange(backend: LocalSupabase, turns: list[list[bytes]], answers: int = 1) -> list[int]:
    """Send the parts of each turn, one segment each, and read its answers; return the statuses."""
    host = urllib.parse.urlsplit(backend.url)
    statuses = []
    with socket.create_connection((host.hostname, host.port), timeout=patience(120)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = connection.makefile("rb")
        for parts in turns:
            for part in parts:
                connection.sendall(part)
            for _ in range(answers):
                statuses.append(int(stream.readline().split()[1]))
                length = 0
                while (line := stream.readline()) not in (b"\r\n", b""):
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                stream.read(length)
    return statuses


def test_a_request_that_offers_http2_keeps_its_body(backend: LocalSupabase) -> None:
    assert exchange(backend, [[jdk_request(backend)]]) == [200]


def test_the_offer_may_come_in_pieces_and_again(backend: LocalSupabase) -> None:
    request = jdk_request(backend)
    pieces = [request[at : at + 40] for at in range(0, len(request), 40)]
    assert exchange(backend, [pieces, pieces]) == [200, 200]


def test_requests_in_one_segment_are_answered_in_order(backend: LocalSupabase) -> None:
    plain = jdk_request(backend).replace(b"Upgrade: h2c\r\n", b"")
    assert exchange(backend, [[plain + plain]], 2) == [200, 200]
