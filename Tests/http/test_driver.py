"""The HTTP driver against a fake core: its requests, its completions, its end."""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import signal
import socket
import struct
import threading
import time

import pytest
from patience import eventually, patience
from refused import refused_port

from driver_stand import (
    CLOSED,
    FORKED,
    INVALID,
    OK,
    STATE,
    Core,
    Driver,
    Server,
)

pytestmark = pytest.mark.usefixtures("mode")

# Requests -------------------------------------------------------------------------------------------


def test_request_is_sent_as_given(core: Core, driver: Driver, server: Server) -> None:
    # Given a request with headers and a body
    answer = core.fetch(
        server.url + "/rest/v1/activities?on_conflict=id",
        method="POST",
        headers={
            "Authorization": "Bearer a.b.c",
            "Content-Type": "application/json",
            "X-Empty": "",
        },
        body='[{"note":"Blåbær på øya"}]',
    )
    # Then the server receives exactly that, once
    assert answer["status"] == 200
    [request] = server.received
    head, _, body = request.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /rest/v1/activities?on_conflict=id HTTP/1.1"
    assert "Authorization: Bearer a.b.c" in lines
    assert "Content-Type: application/json" in lines
    assert "X-Empty:" in lines
    assert any(line.startswith("User-Agent: holdfast/") for line in lines)
    assert not any(line.lower().startswith("expect") for line in lines)
    assert json.loads(body) == [{"note": "Blåbær på øya"}]


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def test_every_method_works_without_a_body(
    core: Core, driver: Driver, server: Server, method: str
) -> None:
    server.handler = lambda link, request: Server.answer(link, b"" if method == "HEAD" else b"[]")
    answer = core.fetch(server.url + "/x", method=method)
    assert answer["status"] == 200
    head = server.received[0].decode()
    assert head.startswith(f"{method} /x HTTP/1.1\r\n")
    assert "content-type" not in head.lower()


def test_header_with_a_line_end_is_not_sent(core: Core, driver: Driver, server: Server) -> None:
    answer = core.fetch(server.url, headers={"apikey": "x\r\nHost: elsewhere"})
    assert answer == {"id": 1, "error": "refused"}
    assert server.received == []


def test_several_requests_are_in_flight_at_once(core: Core, driver: Driver, server: Server) -> None:
    # Given a server that answers only after all three requests have arrived
    together = threading.Barrier(3, timeout=patience(60))

    def handler(link: socket.socket, request: bytes) -> None:
        together.wait()
        Server.answer(link, b"[]")

    server.handler = handler
    numbers = {core.request(server.url) for _ in range(3)}
    answers = [core.completion() for _ in range(3)]
    assert {a["id"] for a in answers if a is not None and a["status"] == 200} == numbers


def test_request_is_not_repeated_when_a_reused_connection_breaks(
    core: Core, driver: Driver, server: Server
) -> None:
    def handler(link: socket.socket, request: bytes) -> None:
        if len(server.received) == 1:
            Server.answer(link, b"[]")
        else:
            link.shutdown(socket.SHUT_RDWR)

    server.handler = handler
    assert core.fetch(server.url, method="POST", body="[]")["status"] == 200
    answer = core.fetch(server.url, method="POST", body="[1]")
    assert answer["error"] == "offline"
    # Then the server has seen it once, also when the next request has come
    server.always(b"[]")
    assert core.fetch(server.url, method="POST", body="[2]")["status"] == 200
    assert [request.partition(b"\r\n\r\n")[2] for request in server.received] == [
        b"[]",
        b"[1]",
        b"[2]",
    ]


# Completions ----------------------------------------------------------------------------------------


def test_the_headers_that_the_core_reads_are_passed_on_in_lower_case(
    core: Core, driver: Driver, server: Server
) -> None:
    server.always(
        b"[]",
        "206 Partial",
        "Vary: Origin\r\nContent-Range: 0-1/*\r\nRETRY-AFTER: 7\r\nretry-after: 9\r\nAge: 5\r\n"
        "Date: bl\xe5\r\n",
    )
    answer = core.fetch(server.url)
    assert answer["status"] == 206
    # The first of several counts, and a value that is not UTF-8 is left out
    assert answer["headers"] == {"age": "5", "content-range": "0-1/*", "retry-after": "7"}
    assert answer["body"] == "[]"


@pytest.mark.parametrize("name", ["X-{}", "X", "Retry-After"])
def test_FIX_15_thousands_of_headers_are_not_gone_through(
    core: Core, driver: Driver, server: Server, name: str
) -> None:
    """132 kB of headers, all of them passed on: the driver stood for ten seconds."""
    lines = "".join(f"{name.format(number)}: {number:020}\r\n" for number in range(4_000))
    server.always(b"[]", headers=f"{lines}Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n")
    answer = core.fetch(server.url)
    assert answer["status"] == 200
    assert answer["headers"].pop("date") == "Sun, 06 Nov 1994 08:49:37 GMT"
    first = {"retry-after": f"{0:020}"} if name == "Retry-After" else {}
    assert answer["headers"] == first


def test_redirect_is_answered_not_followed(core: Core, driver: Driver, server: Server) -> None:
    server.always(b"", "302 Found", f"Location: {server.url}/elsewhere\r\n")
    answer = core.fetch(server.url)
    assert answer["status"] == 302
    assert len(server.received) == 1


@pytest.mark.parametrize("body", [b"\xff\xfe", b"bl\xe5b\xe6r", b"a\0b", b"\xed\xa0\x80"])
def test_body_that_is_not_text_becomes_null(
    core: Core, driver: Driver, server: Server, body: bytes
) -> None:
    server.always(body)
    answer = core.fetch(server.url)
    assert answer["status"] == 200
    assert answer["body"] is None


def test_body_in_utf8_arrives_unchanged(core: Core, driver: Driver, server: Server) -> None:
    text = 'æøå "\\ \n \x01 😀'
    server.always(text.encode())
    assert core.fetch(server.url)["body"] == text


def test_big_body_arrives(core: Core, driver: Driver, server: Server) -> None:
    server.always(b"x" * 8_000_000)
    assert core.fetch(server.url)["body"] == "x" * 8_000_000


def test_body_over_the_limit_is_refused(core: Core, server: Server) -> None:
    driver = Driver(core.library, core.handle, body_limit=1000)
    server.always(b"x" * 1000)
    assert len(core.fetch(server.url)["body"]) == 1000
    server.always(b"x" * 1001)
    assert core.fetch(server.url)["error"] == "refused"
    driver.stop()


def test_closed_port_is_refused(core: Core, driver: Driver) -> None:
    with refused_port() as port:
        assert core.fetch(f"http://127.0.0.1:{port}")["error"] == "refused"


def test_unknown_host_is_a_dns_error(core: Core, driver: Driver) -> None:
    assert core.fetch("http://holdfast-test.invalid", timeout_ms=20000)["error"] == "dns"


def test_late_answer_is_a_timeout(core: Core, driver: Driver, server: Server) -> None:
    # Given a server that answers nobody, and two requests with a short and a long limit
    server.hang()
    patient = core.request(server.url)
    began = time.monotonic()
    hasty = core.request(server.url, timeout_ms=300)
    # Then each has its own limit: the short one ends while the other waits, and not before its time
    assert core.completion() == {"id": hasty, "error": "timeout"}
    assert time.monotonic() - began > 0.29
    server.release.set()
    answer = core.completion()
    assert answer is not None and (answer["id"], answer["status"]) == (patient, 200)


def test_a_connection_that_breaks_within_a_response_is_offline(
    core: Core, driver: Driver, server: Server
) -> None:
    written = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"
    server.handler = lambda link, request: closing(link, written)
    assert core.fetch(server.url)["error"] == "offline"


@pytest.mark.parametrize("end", ["closed", "reset"])
def test_a_port_that_speaks_no_http_refuses(
    core: Core, driver: Driver, server: Server, end: str
) -> None:
    # Given a server that ends every new connection without a response, as a database's port does
    def handler(link: socket.socket, request: bytes) -> None:
        if end == "reset":
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
        else:
            link.shutdown(socket.SHUT_RDWR)

    server.handler = handler
    # Then that is no bad weather
    assert core.fetch(server.url)["error"] == "refused"
    assert core.fetch(server.url, method="POST", body="[]")["error"] == "refused"


def closing(link: socket.socket, answer: bytes) -> None:
    """Write the answer and close the connection."""
    link.sendall(answer)
    link.shutdown(socket.SHUT_RDWR)


def test_ATK_8_the_driver_goes_on_after_any_status(
    core: Core, driver: Driver, server: Server
) -> None:
    # Given a server that answers with every status of three digits, and with some that are none
    for status in [*(f"{number:03}" for number in range(1000)), "-1", "1000", "2", "abc", ""]:
        interim = status.startswith("1") and len(status) == 3
        head = f"HTTP/1.1 {status} Odd\r\nConnection: close\r\nContent-Length: 2\r\n\r\n"
        sent = head.encode() + b"{}"
        server.handler = lambda link, request, sent=sent: closing(link, sent)
        limit = {"timeout_ms": 100} if interim else {}
        answer = core.fetch(server.url, **limit)
        # Then each request is completed: with the status, or as failed
        if "error" in answer:
            assert answer["error"] in {"offline", "timeout", "refused"}, status
            assert not "200" <= status <= "599", status
        else:
            assert answer["status"] == int(status), status
    # and the driver works
    server.always(b"[]")
    assert core.fetch(server.url)["status"] == 200


@pytest.mark.parametrize("where", ["status", "headers", "body"])
def test_ATK_8_a_dripping_answer_is_a_timeout(
    core: Core, driver: Driver, server: Server, where: str
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n"
    at_once = {"status": b"", "headers": head + b"X:", "body": head + b"\r\n"}[where]
    dripping = head if where == "status" else b""
    hung_up = threading.Event()

    def drip(link: socket.socket, request: bytes) -> None:
        try:
            link.sendall(at_once)
            for byte in itertools.chain(dripping, itertools.repeat(ord("x"))):
                link.sendall(bytes([byte]))
                time.sleep(0.05)
        finally:
            hung_up.set()

    server.handler = drip
    assert core.fetch(server.url, timeout_ms=400)["error"] == "timeout"
    assert hung_up.wait(patience(60)), "the driver reads on"


@pytest.mark.parametrize(
    "sent", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: y\r\nContent-Le", b"HTTP/1.1 204 No"]
)
def test_an_answer_that_ends_within_its_headers_is_none(
    core: Core, driver: Driver, server: Server, sent: bytes
) -> None:
    def half(link: socket.socket, request: bytes) -> None:
        link.sendall(sent)
        link.shutdown(socket.SHUT_RDWR)

    server.handler = half
    assert core.fetch(server.url).get("error") in {"refused", "offline"}


@pytest.mark.parametrize("where", ["headers", "one header", "body", "chunks"])
def test_ATK_8_an_endless_answer_is_refused(core: Core, server: Server, where: str) -> None:
    # Given a server that never ends its answer
    head = b"HTTP/1.1 200 OK\r\n"
    begin, more = {
        "headers": (head, b"X: y\r\n" * 1000),
        "one header": (head + b"X: ", b"y" * 10_000),
        "body": (head + b"Connection: close\r\n\r\n", b"x" * 10_000),
        "chunks": (
            head + b"Transfer-Encoding: chunked\r\n\r\n",
            b"3E8\r\n" + b"x" * 1000 + b"\r\n",
        ),
    }[where]

    def endless(link: socket.socket, request: bytes) -> None:
        link.sendall(begin)
        while True:
            link.sendall(more)

    driver = Driver(core.library, core.handle, body_limit=1_000_000)
    server.handler = endless
    # Then the request has failed, and not by its time-out
    assert core.fetch(server.url)["error"] in {"refused", "offline"}
    server.always(b"[]")
    assert core.fetch(server.url)["status"] == 200
    driver.stop()


def test_ATK_8_a_nul_in_a_header_does_not_stop_the_driver(
    core: Core, driver: Driver, server: Server
) -> None:
    for header in ("X: a\0b\r\n", "X\0y: a\r\n"):
        server.always(b"[]", headers=header)
        answer = core.fetch(server.url)
        assert answer.get("error") in {None, "refused", "offline"}
        assert "\0" not in json.dumps(answer.get("headers", {}), ensure_ascii=False)
    server.always(b"[]")
    assert core.fetch(server.url)["status"] == 200


@pytest.mark.parametrize("url", ["file:///etc/hostname", "ftp://127.0.0.1/", "nonsense://x", ""])
def test_other_protocols_are_refused(core: Core, driver: Driver, url: str) -> None:
    assert core.fetch(url)["error"] == "refused"


def test_answer_that_is_not_http_is_refused(core: Core, driver: Driver, server: Server) -> None:
    server.handler = lambda link, request: link.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")
    assert core.fetch(server.url)["error"] == "refused"


def test_tls_to_a_plain_server_times_out(core: Core, driver: Driver, server: Server) -> None:
    # The server waits for the end of a request head that never comes.
    assert core.fetch(server.url.replace("http:", "https:"), timeout_ms=500)["error"] == "timeout"


def test_requests_go_through_the_proxy(core: Core, server: Server) -> None:
    driver = Driver(core.library, core.handle, proxy=server.url)
    server.always(b'"through"')
    assert core.fetch("http://holdfast-test.invalid/path")["body"] == '"through"'
    assert server.received[0].startswith(b"GET http://holdfast-test.invalid/path HTTP/1.1\r\n")
    driver.stop()


# Events ---------------------------------------------------------------------------------------------


# The end --------------------------------------------------------------------------------------------


def test_stop_completes_requests_in_flight_with_cancelled(core: Core, server: Server) -> None:
    # Given three requests that the server answers only when it is told to
    server.hang()
    driver = Driver(core.library, core.handle)
    numbers = {core.request(server.url) for _ in range(3)}
    eventually(lambda: len(server.received) == 3, what="the server has all requests")
    # When the driver stops, then it waits for none of them
    driver.stop()
    answers = [core.completion(0) for _ in range(3)]
    assert {a["id"] for a in answers if a is not None and a["error"] == "cancelled"} == numbers


def test_close_of_the_handle_ends_requests_in_flight(core: Core, server: Server) -> None:
    server.hang()
    driver = Driver(core.library, core.handle)
    core.request(server.url)
    eventually(lambda: server.received, what="the server has the request")
    core.close()
    # Then the driver ends, though the server has not answered
    driver.stop()
    assert core.completion(0) is None


def test_stop_from_several_threads_at_once(core: Core, server: Server) -> None:
    server.hang()
    for _ in range(20):
        driver = Driver(core.library, core.handle)
        core.request(server.url)
        threads = [threading.Thread(target=driver.stop) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(patience(60))
            assert not thread.is_alive()


@pytest.mark.parametrize("token", [None, 0, 1, 12345, 2**63 + 7])
def test_invalid_driver_is_closed(library: ctypes.CDLL, token: int | None) -> None:
    library.holdfast_http_stop(token)
    assert library.holdfast_http_run(token, None) == CLOSED


@pytest.mark.parametrize("handle", [None, 1, 4711])
def test_invalid_handle_is_closed(library: ctypes.CDLL, handle: int | None) -> None:
    driver = Driver(library, handle)
    assert driver.status == CLOSED
    assert driver.token is None


def test_null_out_parameters_are_invalid(core: Core, driver: Driver) -> None:
    assert core.library.holdfast_http_start(core.handle, None, None) == INVALID
    core.library.holdfast_http_free(None)


def test_second_driver_of_a_handle_is_refused(core: Core, driver: Driver) -> None:
    second = Driver(core.library, core.handle)
    assert second.status == STATE
    driver.stop()
    third = Driver(core.library, core.handle)
    assert third.status == OK
    third.stop()


@pytest.mark.parametrize(
    "options",
    [
        "[]",
        "7",
        "nonsense",
        '{"conections":2}',
        '{"connections":0}',
        '{"connections":"2"}',
        '{"connections":65}',
        '{"body_limit":0}',
        '{"body_limit":1.5}',
        '{"ca_file":7}',
        '{"ca_file":"/nowhere/authorities.pem"}',
        '{"ca_path":"/nowhere/authorities"}',
        '{"user_agent":7}',
        '{"proxy":"a","proxy":"b"}',
        '{"ca_path":"a\\u0000b"}',
        '{"thread":0}',
        '{"log_level":4}',
        '{"log_level":-1}',
    ],
)
def test_bad_options_are_invalid(core: Core, options: str) -> None:
    token = ctypes.c_void_p()
    status = core.library.holdfast_http_start(core.handle, options.encode(), ctypes.byref(token))
    assert status == INVALID
    assert token.value is None


def test_empty_options_are_the_defaults(core: Core) -> None:
    for options in (None, b"", b"{}", b'{"proxy":null,"ca_file":null}'):
        token = ctypes.c_void_p()
        start = core.library.holdfast_http_start
        assert start(core.handle, options, ctypes.byref(token)) == OK
        core.library.holdfast_http_stop(token)


def test_child_process_is_told_forked(core: Core, driver: Driver, server: Server) -> None:
    """ABI-2: after fork the child gets a clear answer, and the parent's driver goes on."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(patience(60)))
        answers = [core.library.holdfast_http_run(driver.token, None)]
        core.library.holdfast_http_stop(driver.token)
        answers.append(core.library.holdfast_http_run(driver.token, None))
        os._exit(0 if answers == [FORKED, FORKED] else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert core.fetch(server.url)["status"] == 200


# Calm -----------------------------------------------------------------------------------------------


def asked_in_a_second(core: Core) -> tuple[int, float]:
    """How often requests were asked for in at least a second, and the seconds that it took."""
    began, before = time.monotonic(), core.library.fake_asked()
    time.sleep(1)
    return core.library.fake_asked() - before, time.monotonic() - began


def test_does_not_spin_when_the_handle_stays_readable(core: Core, driver: Driver) -> None:
    core.library.fake_set(1, 0)
    # Three times in vain, and once after each pause of 200 ms; a driver that spins asks thousands of times
    asked, seconds = asked_in_a_second(core)
    assert asked < 10 + 20 * seconds


def test_does_not_spin_when_the_core_fails(core: Core, driver: Driver, server: Server) -> None:
    core.library.fake_set(1, 6)
    # Once after each pause of a second
    asked, seconds = asked_in_a_second(core)
    assert asked < 9 + seconds
    core.library.fake_set(0, 0)
    assert core.fetch(server.url)["status"] == 200


def test_sleeps_when_there_is_nothing_to_do(core: Core, driver: Driver) -> None:
    eventually(lambda: core.library.fake_asked() > 0, what="the first time")
    assert asked_in_a_second(core)[0] == 0
