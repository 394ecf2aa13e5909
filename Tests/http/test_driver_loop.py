"""Issue 16, point 9: the HTTP driver on a host's event loop, without a thread of its own."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from patience import eventually, patience

from driver_stand import (
    BUSY,
    CLOSED,
    FORKED,
    OK,
    STATE,
    Core,
    Driver,
    Server,
)


class Host:
    """A host whose loop is the test's own thread."""

    def __init__(self, core: Core) -> None:
        self.library = core.library
        token = ctypes.c_void_p()
        start = core.library.holdfast_http_start
        assert start(core.handle, b'{"thread":false}', ctypes.byref(token)) == OK
        self.token = token.value
        self.timeout_ms = ctypes.c_int32()
        self.runs = 0

    @property
    def fd(self) -> int:
        return int(self.library.holdfast_http_fd(self.token))

    def readable(self, within_ms: int = 0) -> bool:
        watched = select.poll()
        watched.register(self.fd, select.POLLIN)
        return watched.poll(within_ms) != []

    def run(self) -> int:
        status = self.library.holdfast_http_run(self.token, ctypes.byref(self.timeout_ms))
        self.runs += 1
        return int(status)

    def settle(self, quiet_ms: int = 200) -> None:
        """Turn the loop until the descriptor stays quiet."""
        while self.readable(quiet_ms):
            assert self.run() == OK

    def turn(self) -> None:
        """Wait until the descriptor is readable, and take a step."""
        assert self.readable(int(patience(90) * 1000)), "the descriptor stays quiet"
        assert self.run() == OK

    def reach(self, server: Server) -> None:
        """Turn the loop until the server has a request."""
        while not server.received:
            if self.readable(10):
                assert self.run() == OK

    def completion(self, core: Core) -> dict[str, Any]:
        """Turn the loop until a request is completed."""
        while (answer := core.completion(0)) is None:
            self.turn()
        return answer

    def stop(self) -> None:
        self.library.holdfast_http_stop(self.token)


@pytest.fixture
def host(core: Core) -> Iterator[Host]:
    started = Host(core)
    yield started
    started.stop()


def threads() -> int:
    """The number of threads of this process, also those that are not Python's."""
    return len(os.listdir("/proc/self/task"))


def test_everything_happens_on_the_hosts_thread(core: Core, server: Server) -> None:
    link = socket.create_connection(server.listener.getsockname())  # the server's threads run now
    before = threads()
    on: set[int] = set()
    host = Host(core)
    function = ctypes.CFUNCTYPE(None)(lambda: on.add(threading.get_native_id()))
    core.library.fake_on_next(function)
    host.settle()
    assert threads() <= before + 1, "the server has accepted the connection at most"
    number = core.request(server.url, method="POST", body="[1]")
    assert host.completion(core) | {"headers": {}} == {
        "id": number,
        "status": 200,
        "headers": {},
        "body": "{}",
    }
    assert on == {threading.get_native_id()}
    core.library.fake_on_next(None)
    host.stop()
    link.close()


def test_the_descriptor_is_readable_from_the_start_and_quiet_when_all_is_done(
    core: Core, host: Host
) -> None:
    assert host.readable()
    host.settle()
    assert core.library.fake_asked() >= 1
    before = core.library.fake_asked()
    assert not host.readable(500)
    assert 0 < host.timeout_ms.value <= 30000
    # A call that has nothing to do polls nothing.
    assert host.run() == OK
    assert core.library.fake_asked() == before
    assert not host.readable()


def test_a_step_does_not_wait_for_the_network(core: Core, host: Host, server: Server) -> None:
    # Given a request that the server has received and does not answer
    server.hang()
    core.request(server.url)
    host.reach(server)
    # Then a thousand steps do not hang until it does
    for _ in range(1000):
        assert host.run() == OK
    assert core.completion(0) is None
    server.release.set()
    assert host.completion(core)["body"] == "{}"


def test_a_big_answer_takes_many_steps_and_none_spins(
    core: Core, host: Host, server: Server
) -> None:
    def trickle(link: socket.socket, request: bytes) -> None:
        link.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n")
        for _ in range(5):
            link.sendall(b"x" * 1_000_000)
            time.sleep(0.05)

    server.handler = trickle
    core.request(server.url)
    assert host.completion(core)["body"] == "x" * 5_000_000
    assert host.runs < 5000
    host.settle()


def test_the_time_of_the_core_makes_the_descriptor_readable(core: Core, host: Host) -> None:
    host.settle()
    began = time.monotonic()
    core.library.fake_wake_in(300)
    core.library.fake_set(0, 0)
    before = core.library.fake_asked()
    while core.library.fake_asked() == before:
        host.turn()
    assert host.timeout_ms.value <= 300
    # Then the core is asked again at that time, and not before it
    while core.library.fake_asked() == before + 1:
        host.turn()
    assert time.monotonic() - began > 0.29


def test_the_time_out_of_a_request_makes_the_descriptor_readable(
    core: Core, host: Host, server: Server
) -> None:
    server.hang()
    core.request(server.url, timeout_ms=300)
    assert host.completion(core)["error"] == "timeout"


def test_a_closed_handle_ends_the_driver_and_quiets_the_descriptor(core: Core, host: Host) -> None:
    host.settle()
    core.close()
    assert host.readable()
    assert host.run() == CLOSED
    assert host.timeout_ms.value == -1
    assert not host.readable(300)
    assert host.run() == CLOSED


def test_stop_completes_what_is_in_flight(core: Core, server: Server) -> None:
    # Given a server that answers only when it is told to
    server.hang()
    host = Host(core)
    number = core.request(server.url)
    host.reach(server)
    host.stop()
    assert core.completion(0) == {"id": number, "error": "cancelled"}
    assert host.fd == -1
    assert host.run() == CLOSED


def test_a_function_of_the_host_may_stop_the_driver_within_a_step(core: Core) -> None:
    """A log function or a key store is called by the step, and may not be called by it again."""
    host = Host(core)
    host.settle()
    inner: list[int] = []

    def in_next() -> None:
        inner.append(core.library.holdfast_http_run(host.token, None))
        host.stop()
        inner.append(core.library.holdfast_http_run(host.token, None))

    function = ctypes.CFUNCTYPE(None)(in_next)
    core.library.fake_on_next(function)
    number = core.request("nonsense://x")
    assert host.run() == CLOSED
    core.library.fake_on_next(None)
    assert inner == [BUSY, CLOSED]
    assert core.completion(0) == {"id": number, "error": "refused"}


def test_two_threads_take_turns(core: Core, server: Server) -> None:
    host = Host(core)
    statuses: set[int] = set()
    done = threading.Event()

    def turn() -> None:
        while not done.is_set():
            statuses.add(core.library.holdfast_http_run(host.token, None))
            time.sleep(0.001)

    loops = [threading.Thread(target=turn) for _ in range(3)]
    for loop in loops:
        loop.start()
    numbers = {core.request(server.url) for _ in range(50)}
    answers = [core.completion() for _ in numbers]
    host.stop()
    done.set()
    for loop in loops:
        loop.join(patience(60))
        assert not loop.is_alive()
    assert {a["id"] for a in answers if a is not None} == numbers
    assert statuses <= {OK, BUSY, CLOSED}


def test_a_broken_pipe_in_a_step_does_not_end_the_host(core: Core) -> None:
    """A TLS library writes to a connection that the server has closed; libcurl does not catch it."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(patience(60)))
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        own = Core(core.library)
        host = Host(own)
        function = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGPIPE))
        own.library.fake_on_next(function)
        fine = host.run() == OK and signal.sigpending() == set()
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_driver_with_a_thread_has_no_descriptor(core: Core, driver: Driver) -> None:
    assert core.library.holdfast_http_fd(driver.token) == -1
    assert core.library.holdfast_http_run(driver.token, None) == STATE


@pytest.mark.parametrize("token", [None, 0, 1, 12345, 2**63 + 7])
def test_an_invalid_driver_has_no_descriptor(library: ctypes.CDLL, token: int | None) -> None:
    assert library.holdfast_http_fd(token) == -1
    timeout_ms = ctypes.c_int32(7)
    assert library.holdfast_http_run(token, ctypes.byref(timeout_ms)) == CLOSED
    assert timeout_ms.value == -1


def test_a_child_process_is_told_forked(core: Core, host: Host) -> None:
    host.settle()
    child = os.fork()
    if child == 0:
        signal.alarm(int(patience(60)))
        fine = host.run() == FORKED and host.fd == -1
        host.stop()
        os._exit(0 if fine else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    host.settle()


def test_a_stopped_driver_leaves_no_descriptor_open(core: Core, server: Server) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    first = Host(core)
    core.request(server.url)
    first.completion(core)
    first.stop()
    before = open_files()
    for _ in range(20):
        host = Host(core)
        core.request(server.url)
        host.completion(core)
        host.stop()
    # The server closes its ends on its own threads
    eventually(lambda: open_files() <= before, what=f"no more than {before} open files")
