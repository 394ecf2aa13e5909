"""Issue 16: a binding of two functions, holdfast_http_call() and holdfast_http_free(), and key requests as events.

Newcomers declared nine functions, output parameters and structures of callbacks, and needed 114 to 155
lines in Java, Go and Rust. A host whose key store is `host` could not use the driver at all: it dropped
the key requests of a poll, and every decision stayed `wait`."""

from __future__ import annotations

import ctypes
import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from patience import eventually, patience, until_asleep

from driver_stand import CLOSED as CLOSED_STATUS
from driver_stand import EVENT_MS, NOT_FOUND, OK, Core, Driver, Server

LOAD = {"id": 7, "operation": "load", "name": "device", "protection": "device", "value": None}


class App:
    """A binding as its user would write it, over the fake core."""

    def __init__(self, library: ctypes.CDLL, **config: Any) -> None:
        self.library = library
        self.opened = self.raw(0, "open", {"data_dir": "x", **config})
        self.number = self.opened.get("app", 0)
        self.core = Core.__new__(Core)
        self.core.library, self.core.handle, self.core._id = library, self.number, 0

    def raw(self, app: int, operation: str | None, request: Any = None) -> dict[str, Any]:
        text = request if isinstance(request, bytes | None) else json.dumps(request).encode()
        name = None if operation is None else operation.encode()
        reply = self.library.holdfast_http_call(app, name, text)
        assert reply is not None
        value = json.loads(ctypes.string_at(reply))
        self.library.holdfast_http_free(reply)
        return dict(value)

    def call(self, operation: str, request: Any = None) -> dict[str, Any]:
        return self.raw(self.number, operation, request)

    def event(self, timeout_ms: int = EVENT_MS) -> dict[str, Any]:
        return self.call("event_next", {"timeout_ms": timeout_ms})


@pytest.fixture
def app(library: ctypes.CDLL) -> Iterator[App]:
    opened = App(library)
    yield opened
    assert opened.call("close") == {}
    opened.core.ends_empty()


NONE = {"event": None, "closed": False}
CLOSED = {"event": None, "closed": True}


def test_open_replies_what_the_core_replies_and_the_handle(app: App) -> None:
    assert app.opened == {"app": app.number, "version": "0.0.0-fake"}
    assert app.number > 0


def test_every_operation_reaches_the_core(app: App) -> None:
    assert app.call("queue_add", {"kind": "activity"}) == {
        "called": "queue_add",
        "with": {"kind": "activity"},
    }


def test_requests_are_sent_and_events_returned(app: App, server: Server) -> None:
    assert app.core.fetch(server.url + "/rest/v1/x")["status"] == 200
    app.core.event(seq=1, type="decision")
    assert app.event() == {"event": {"seq": 1, "type": "decision"}, "closed": False}
    assert app.event(0) == NONE


def test_an_event_is_acknowledged_when_the_next_one_is_asked_for(app: App) -> None:
    app.core.event(seq=4, type="item_parked", durable=True)
    assert app.event()["event"]["seq"] == 4
    # While it is shown, it is not acknowledged
    assert app.event(0) == NONE
    app.core.event(seq=5, type="decision")
    assert app.event()["event"]["seq"] == 5
    assert app.library.fake_acked() == 4
    assert app.call("close") == {}
    assert app.library.fake_acked() == 4


def test_the_options_of_the_driver_stand_in_the_configuration(
    library: ctypes.CDLL, server: Server
) -> None:
    # The fake core refuses a configuration with any other field: `http` was taken out
    app = App(library, http={"user_agent": "visits/1"})
    app.core.fetch(server.url)
    assert b"User-Agent: visits/1" in server.received[0]
    assert app.call("close") == {}


@pytest.mark.parametrize(
    ("http", "code", "field", "said"),
    [
        ({"connections": 0}, "invalid_value", "/connections", "1 to 64 is expected"),
        ({"connections": 1e300}, "wrong_type", "/connections", "an integer"),
        ({"connections": 10**18}, "invalid_value", "/connections", "1 to 64 is expected"),
        ({"connections": "8"}, "wrong_type", "/connections", "an integer"),
        ({"connections": 0.5}, "wrong_type", "/connections", "an integer"),
        ({"conections": 8}, "unknown_field", "/conections", "one of connections, "),
        ({"conections": 8}, "unknown_field", "/conections", "user_agent is expected"),
        ({"ca_file": "/nowhere"}, "invalid_value", "/ca_file", "cannot be read"),
        ({"ca_file": 1}, "wrong_type", "/ca_file", "a string"),
        ({"pinned_public_key": "x"}, "invalid_value", "/pinned_public_key", "sha256//"),
        ({"thread": False}, "invalid_value", "/thread", "thread"),
        ({"thread": 1}, "wrong_type", "/thread", "true or false"),
        ({"log_level": 4}, "invalid_value", "/log_level", "0 to 3 is expected"),
        ([], "wrong_type", "", "an object"),
        (1, "wrong_type", "", "an object"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_opened(
    library: ctypes.CDLL, http: Any, code: str, field: str, said: str
) -> None:
    """Newcomers' finding 6: an unknown option and a wrong value had the same code and message."""
    refused = App(library, http=http)
    error = refused.opened["error"]
    assert (error["code"], error["field"]) == (f"request.{code}", f"/http{field}")
    assert said in error["message"]
    assert refused.core.live() == 0


@pytest.mark.parametrize("name", ["å" * 60, "x" + "å" * 60, "€" * 40, "x😀" * 30])
def test_a_long_option_is_named_as_far_as_it_fits(library: ctypes.CDLL, name: str) -> None:
    """It was cut within a character, and the error said that there was no memory."""
    error = App(library, http={name: 1}).opened["error"]
    assert error["code"] == "request.unknown_field"
    named = error["field"].removeprefix("/http/")
    assert 60 <= len(named.encode()) <= 63
    assert name.startswith(named)


@pytest.mark.parametrize(
    ("url", "project"),
    [
        ("https://supabase.com/dashboard/project/abcdefgh", "abcdefgh"),
        ("https://supabase.com/dashboard/project/abcdefgh/settings/api", "abcdefgh"),
        ("https://app.supabase.com/project/abcdefgh", "abcdefgh"),
        ("https://www.supabase.com", "PROJECT"),
        ("https://supabase.com/dashboard/project/" + "a" * 64, "PROJECT"),
    ],
)
def test_the_dashboards_address_is_named(library: ctypes.CDLL, url: str, project: str) -> None:
    """Newcomers' complaint 4: the sign-in failed, with a page of the dashboard as the answer."""
    error = App(library, backend={"url": url, "api_key": "k"}).opened["error"]
    assert (error["code"], error["field"]) == ("request.invalid_value", "/backend/url")
    assert error["message"].endswith(f": https://{project}.supabase.co is expected")


@pytest.mark.parametrize("url", ["https://supabase.company", "http://supabase.com", "", 1, None])
def test_another_address_is_the_cores_matter(library: ctypes.CDLL, url: Any) -> None:
    # The fake core refuses every configuration that has a backend
    opened = App(library, backend={"url": url}).opened
    assert opened == {"error": {"code": "request.missing_field"}}


@pytest.mark.parametrize("http", [None, {"connections": None, "user_agent": None, "thread": None}])
def test_null_as_an_option_is_the_default(library: ctypes.CDLL, http: Any) -> None:
    app = App(library, http=http)
    assert app.number > 0
    assert app.call("close") == {}


def test_an_open_handle_is_not_opened_again(app: App) -> None:
    """Newcomers' finding 6: the handle was ignored, and a second one opened."""
    error = app.call("open", {"data_dir": "x"})["error"]
    assert error["code"] == "request.invalid_value"
    assert "the handle 0" in error["message"]


@pytest.mark.parametrize(
    ("request_text", "code", "field"),
    [
        (b'{"force":true}', "request.unknown_field", "/force"),
        (b"[]", "request.not_an_object", None),
        (b"{", "request.not_json", None),
    ],
)
def test_a_wrong_request_closes_nothing(
    app: App, request_text: bytes, code: str, field: str | None
) -> None:
    error = app.call("close", request_text)["error"]
    assert (error["code"], error["field"]) == (code, field)
    assert "called" in app.call("queue_list", {})


@pytest.mark.parametrize("config", [b"", b"{", b"[]", None, b'{"a":1,"a":2}', b'{"data_dir":"y"}'])
def test_the_core_says_what_is_wrong_with_a_configuration(app: App, config: bytes | None) -> None:
    assert app.raw(0, "open", config) == {"error": {"code": "request.missing_field"}}


@pytest.mark.parametrize("operation", ["poll", "complete"])
def test_the_drivers_own_calls_are_refused(app: App, operation: str) -> None:
    assert app.call(operation)["error"]["code"] == "request.unknown_operation"


@pytest.mark.parametrize(
    ("request_text", "code", "field"),
    [
        (b"x", "request.not_json", None),
        (b"[]", "request.not_an_object", None),
        (b'{"timeout":1}', "request.unknown_field", "/timeout"),
        (b'{"timeout_ms":"1"}', "request.wrong_type", "/timeout_ms"),
        (b'{"timeout_ms":0.5}', "request.wrong_type", "/timeout_ms"),
        (b'{"timeout_ms":1e300}', "request.wrong_type", "/timeout_ms"),
        (b'{"timeout_ms":1e18}', "request.invalid_value", "/timeout_ms"),
        (b'{"timeout_ms":-1000000000000000000}', "request.invalid_value", "/timeout_ms"),
    ],
)
def test_a_wrong_request_for_an_event_is_refused(
    app: App, request_text: bytes, code: str, field: str | None
) -> None:
    error = app.call("event_next", request_text)["error"]
    assert (error["code"], error["field"]) == (code, field)


@pytest.mark.parametrize("request_text", [b'{"timeout_ms":0}', b'{"timeout_ms":0.0}'])
def test_an_event_is_not_waited_for(app: App, request_text: bytes) -> None:
    assert app.call("event_next", request_text) == NONE


@pytest.mark.parametrize("request_text", [None, b"", b"null", b"{}", b'{"timeout_ms":null}'])
def test_an_event_is_waited_for(app: App, request_text: bytes | None) -> None:
    app.core.event(seq=1, type="decision")
    assert app.call("event_next", request_text)["event"] == {"seq": 1, "type": "decision"}


def test_closing_ends_the_wait_for_an_event(app: App) -> None:
    seen: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: seen.append(app.call("event_next")))
    waiting.start()
    until_asleep(waiting)
    app.core.event(seq=1, type="decision")
    waiting.join(patience(60))
    again = threading.Thread(target=lambda: seen.append(app.call("event_next")))
    again.start()
    until_asleep(again)
    assert app.call("close") == {}
    again.join(patience(60))
    assert [each["closed"] for each in seen] == [False, True]


def test_a_closed_or_garbage_handle_is_refused(app: App) -> None:
    assert app.call("close") == app.call("close") == {}
    for number in (app.number, 0, -1, 4711, 2**62):
        assert app.raw(number, "event_next") == CLOSED
        assert app.raw(number, "queue_list", {})["error"]["code"] == "handle.closed"
        assert app.raw(number, "close") == {}


def test_in_a_child_process_the_handle_is_forked(app: App) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # No call that reaches the fake core, whose lock another thread may have held
        os.write(write, json.dumps(app.call("event_next")).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    event = json.loads(os.read(read, 4096))
    os.close(read)
    assert event["error"]["code"] == "handle.forked"
    app.core.event(seq=1, type="decision")
    assert app.event()["event"]["seq"] == 1


# Key requests ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("mode")
def test_a_key_request_is_an_event(core: Core, driver: Driver) -> None:
    core.key_request(**LOAD)
    assert driver.next() == {"seq": 0, "type": "key_request", "key_request": LOAD}
    # Acknowledging it does nothing
    assert driver.ack(0) == OK


@pytest.mark.usefixtures("mode")
def test_a_key_request_that_nobody_took_has_failed_when_the_driver_stops(core: Core) -> None:
    driver = Driver(core.library, core.handle)
    core.key_request(**LOAD)
    core.event(seq=1, type="decision")
    eventually(lambda: core.library.fake_events() == 0, what="the driver has polled")
    driver.stop()
    assert core.completion() == {"id": 7, "result": "failed"}
    assert core.completion(0) is None


@pytest.mark.usefixtures("mode")
def test_a_key_request_that_nobody_needs_is_told(core: Core, driver: Driver) -> None:
    core.key_request(**LOAD)
    assert driver.next()["key_request"]["id"] == 7
    core.library.fake_key_cancelled(b"7")
    assert driver.next() == {"seq": 0, "type": "key_cancelled", "id": 7}
    assert core.completion(0) is None, "the host answers it"


@pytest.mark.usefixtures("mode")
def test_a_key_request_that_nobody_needs_and_nobody_took_is_answered(core: Core) -> None:
    driver = Driver(core.library, core.handle)
    core.key_request(**LOAD)
    core.event(seq=1, type="decision")
    eventually(lambda: core.library.fake_events() == 0, what="the driver has polled")
    core.library.fake_key_cancelled(b"7")
    assert core.completion() == {"id": 7, "result": "failed"}
    assert driver.next() == {"seq": 1, "type": "decision"}
    driver.stop()


def test_an_answer_with_a_key_is_passed_again(app: App) -> None:
    """While another process wrote, `key_complete` failed, and the library waited for 120 s."""
    app.core.library.fake_busy(1, 6)
    assert app.call("key_complete", {"id": 7, "result": "not_found"}) == {"accepted": True}
    assert app.core.completion() == {"id": 7, "result": "not_found"}
    assert app.core.completion(0) is None


def test_an_answer_with_a_key_that_nobody_passes_again_is_not_accepted(app: App) -> None:
    """The driver's thread had ended, and the key stayed in memory, with the reply `accepted`."""
    app.core.library.fake_set(0, CLOSED_STATUS)
    assert app.event() == CLOSED
    app.core.library.fake_busy(1, 6)
    reply = app.call("key_complete", {"id": 7, "result": "ok", "value": "a2V5"})
    assert reply == {"error": {"code": "storage.busy"}}


def test_a_wrong_answer_with_a_key_is_refused(app: App) -> None:
    app.core.library.fake_busy(1, 1)
    assert "error" in app.call("key_complete", {"id": 7, "result": "ok"})
    assert app.core.completion(0) is None


def test_a_key_request_comes_in_its_turn(app: App) -> None:
    app.core.event(seq=3, type="decision")
    assert app.event()["event"]["seq"] == 3
    app.core.key_request(**LOAD)
    assert app.event()["event"]["key_request"] == LOAD
    assert app.event(0) == NONE


# The key store ------------------------------------------------------------------------------------------

SERVICE = {"kind": "secret_service", "name": "com.example.visits"}
OFF = {"biometric": "off"}


@pytest.mark.parametrize(
    ("keystore", "policy", "code", "field"),
    [
        ({"kind": "secret_service"}, OFF, "missing_field", "/keystore/name"),
        ({**SERVICE, "name": None}, OFF, "missing_field", "/keystore/name"),
        ({**SERVICE, "name": 7}, OFF, "wrong_type", "/keystore/name"),
        ({**SERVICE, "name": ""}, OFF, "invalid_value", "/keystore/name"),
        ({**SERVICE, "folder": "x"}, OFF, "unknown_field", "/keystore/folder"),
        (SERVICE, {"biometric": "required"}, "invalid_value", "/policy/biometric"),
        (SERVICE, {}, "invalid_value", "/policy/biometric"),
    ],
)
def test_a_wrong_secret_service_is_refused(
    library: ctypes.CDLL, keystore: Any, policy: Any, code: str, field: str
) -> None:
    app = App(library, keystore=keystore, policy=policy)
    error = app.opened["error"]
    assert (error["code"], error["field"]) == (f"request.{code}", field)
    assert app.core.live() == 0


# The log ---------------------------------------------------------------------------------------------


def log(app: App, level: int, line: str) -> bool:
    return bool(app.library.fake_log(level, line.encode()))


@pytest.fixture
def logging(library: ctypes.CDLL) -> Iterator[App]:
    opened = App(library, http={"log_level": 1})
    yield opened
    assert opened.call("close") == {}
    assert not log(opened, 0, "after the end"), "the log of a closed driver goes on"


def test_lines_of_the_log_are_events(logging: App) -> None:
    """Newcomers' finding 1: a binding of two functions had no log."""
    assert log(logging, 1, 'the sign-in failed: "x"')
    assert not log(logging, 2, "more than was asked for")
    expected = {"seq": 0, "type": "log", "level": 1, "line": 'the sign-in failed: "x"'}
    assert logging.event() == {"event": expected, "closed": False}
    assert logging.event(0) == NONE


def test_lines_of_the_log_acknowledge_nothing(logging: App) -> None:
    logging.core.event(seq=4, type="item_parked", durable=True)
    assert logging.event()["event"]["seq"] == 4
    log(logging, 0, "one")
    assert logging.event()["event"]["type"] == "log"
    logging.core.event(seq=5, type="decision")
    assert logging.event()["event"]["seq"] == 5
    assert logging.library.fake_acked() == 4


def test_lines_that_nobody_reads_hold_up_no_events(logging: App) -> None:
    for number in range(1000):
        log(logging, 1, f"line {number}")
    logging.core.event(seq=1, type="decision")
    eventually(lambda: logging.library.fake_events() == 0, what="the driver has polled")
    log(logging, 1, "the last line")
    seen = [logging.event()["event"] for _ in range(201)]
    assert logging.event(0) == NONE
    assert [each["line"] for each in seen if each["type"] == "log"] == [
        *(f"line {number}" for number in range(801, 1000)),
        "the last line",
    ]
    assert [each["type"] for each in seen[-2:]] == ["decision", "log"]


def test_without_the_option_the_log_stays_the_hosts(app: App) -> None:
    assert not log(app, 0, "an error")
    assert app.event(0) == NONE


@pytest.mark.usefixtures("mode")
def test_a_line_reaches_a_host_that_waits(core: Core) -> None:
    driver = Driver(core.library, core.handle, log_level=3)
    assert driver.next(0) == NOT_FOUND
    assert core.library.fake_log(3, b"a line")
    assert driver.next() == {"seq": 0, "type": "log", "level": 3, "line": "a line"}
    driver.stop()
