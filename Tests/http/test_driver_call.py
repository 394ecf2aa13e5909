"""A binding of two functions, holdfast_http_call() and holdfast_http_free(), and key requests for hosts without
C functions."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from patience import patience, until_asleep

from driver_stand import App, Server


@pytest.fixture
def app(library: ctypes.CDLL) -> Iterator[App]:
    opened = App(library)
    yield opened
    assert opened.call("close") == {}
    opened.core.ends_empty()


NONE = {"wake_in_ms": None}
HOME = {"screen": {"screen": "home"}}


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
    app.core.news(**HOME)
    assert app.event() == HOME
    assert app.event(0) == NONE


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
    refused = App(library, http=http)
    error = refused.opened["error"]
    assert (error["code"], error["field"]) == (f"request.{code}", f"/http{field}")
    assert said in error["message"]
    assert refused.core.live() == 0


@pytest.mark.parametrize("name", ["å" * 60, "x" + "å" * 60, "€" * 40, "x😀" * 30])
def test_a_long_option_is_named_in_full(library: ctypes.CDLL, name: str) -> None:
    error = App(library, http={name: 1}).opened["error"]
    assert error["code"] == "request.unknown_field"
    assert error["field"] == f"/http/{name}"


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
    """The sign-in failed, with a page of the dashboard as the answer."""
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


@pytest.mark.parametrize("operation", ["complete"])
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
    error = app.call("next", request_text)["error"]
    assert (error["code"], error["field"]) == (code, field)


@pytest.mark.parametrize("request_text", [b'{"timeout_ms":0}', b'{"timeout_ms":0.0}'])
def test_an_event_is_not_waited_for(app: App, request_text: bytes) -> None:
    assert app.call("next", request_text) == NONE


@pytest.mark.parametrize("request_text", [None, b"", b"null", b"{}", b'{"timeout_ms":null}'])
def test_an_event_is_waited_for(app: App, request_text: bytes | None) -> None:
    app.core.news(**HOME)
    assert app.call("next", request_text) == HOME


def test_closing_ends_the_wait_for_an_event(app: App) -> None:
    seen: list[dict[str, Any]] = []
    waiting = threading.Thread(target=lambda: seen.append(app.call("next")))
    waiting.start()
    until_asleep(waiting)
    app.core.news(**HOME)
    waiting.join(patience(60))
    again = threading.Thread(target=lambda: seen.append(app.call("next")))
    again.start()
    until_asleep(again)
    assert app.call("close") == {}
    again.join(patience(60))
    assert [each.get("error", {}).get("code") for each in seen] == [None, "handle.closed"]


def test_a_closed_or_garbage_handle_is_refused(app: App) -> None:
    assert app.call("close") == app.call("close") == {}
    for number in (app.number, 0, -1, 4711, 2**62):
        assert app.raw(number, "next")["error"]["code"] == "handle.closed"
        assert app.raw(number, "queue_list", {})["error"]["code"] == "handle.closed"
        assert app.raw(number, "close") == {}


def test_in_a_child_process_the_handle_is_forked(app: App) -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        # No call that reaches the fake core, whose lock another thread may have held
        replies = [app.call(name) for name in ("key_next", "key_next")]
        os.write(write, json.dumps(replies).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    replies = json.loads(os.read(read, 4096))
    os.close(read)
    assert [reply["error"]["code"] for reply in replies] == ["handle.forked"] * 2
    app.core.news(**HOME)
    assert app.event() == HOME


# The key store "host" --------------------------------------------------------------------------------

KEY = base64.b64encode(bytes(range(32))).decode()
NO_KEY = {"key_request": None, "closed": False}
NO_MORE_KEYS = {"key_request": None, "closed": True}
KEY_OK = 0


@pytest.fixture
def host(library: ctypes.CDLL) -> Iterator[App]:
    """A handle whose key store is the mailbox; its calls "load", "save" and "erase" use a key."""
    opened = App(library, keystore={"kind": "host"})
    yield opened
    assert opened.call("close") == {}
    opened.core.ends_empty()


class Call:
    """A call that needs a key, on a thread of its own."""

    def __init__(self, app: App, operation: str, name: str = "session") -> None:
        self.seen: list[dict[str, Any]] = []
        self.thread = threading.Thread(
            target=lambda: self.seen.append(app.call(operation, name.encode()))
        )
        self.thread.start()

    def reply(self) -> dict[str, Any]:
        self.thread.join(patience(60))
        [reply] = self.seen
        return reply


def request_of(app: App) -> dict[str, Any]:
    reply = app.call("key_next")
    assert reply["closed"] is False
    return dict(reply["key_request"])


@pytest.mark.parametrize(
    ("operation", "name", "protection", "value"),
    [
        ("load", "session", None, None),
        ("erase", "session", None, None),
        ("save", "device_b", "device", KEY),
        ("save", "biometric", "biometric", KEY),
    ],
)
def test_a_key_request_is_answered_on_another_thread(
    host: App, operation: str, name: str, protection: str | None, value: str | None
) -> None:
    """HST-2: an app without C functions serves its keychain."""
    call = Call(host, operation, name)
    asked = request_of(host)
    assert asked == {
        "id": asked["id"],
        "operation": operation,
        "name": name,
        "protection": protection,
        "value": value,
    }
    answer = {"id": asked["id"], "result": "ok"}
    if operation == "load":
        answer["value"] = base64.b64encode(bytes(range(31, -1, -1))).decode()
    assert host.call("key_complete", answer) == {"accepted": True}
    assert call.reply() == {"result": KEY_OK, "last": 0 if operation == "load" else -1}
    # It is answered once
    assert host.call("key_complete", answer) == {"accepted": False}
    assert host.call("key_next", {"timeout_ms": 0}) == NO_KEY


def test_the_thread_that_answers_makes_no_call(host: App) -> None:
    """It would wait for itself, for 10 s each time."""
    assert host.call("key_next", {"timeout_ms": 0}) == NO_KEY
    for operation in ("load", "queue_list", "unheard_of"):
        error = host.call(operation, b"session")["error"]
        assert (error["code"], error["retryable"]) == ("handle.busy", False)
        assert "another thread" in error["message"]
    # Another thread may, and this one while another one waits for requests
    call = Call(host, "load")
    answering = threading.Thread(target=lambda: host.call("key_next"))
    asked = request_of(host)
    host.call("key_complete", {"id": asked["id"], "result": "not_found"})
    assert call.reply()["result"] == 1
    answering.start()
    until_asleep(answering)
    assert host.call("queue_list", {})["called"] == "queue_list"
    host.call("close")
    answering.join(patience(60))


@pytest.mark.parametrize(
    ("operation", "request_text", "code", "field"),
    [
        ("key_next", b"[]", "request.not_an_object", None),
        ("key_next", b'{"timeout_ms":"1"}', "request.wrong_type", "/timeout_ms"),
        ("key_next", b'{"limit":1}', "request.unknown_field", "/limit"),
        ("key_complete", b"{", "request.not_json", None),
        ("key_complete", None, "request.missing_field", "/id"),
        ("key_complete", b'{"result":"ok"}', "request.missing_field", "/id"),
        ("key_complete", b'{"id":1.5,"result":"ok"}', "request.wrong_type", "/id"),
        ("key_complete", b'{"id":1e300,"result":"ok"}', "request.wrong_type", "/id"),
        ("key_complete", b'{"id":-1,"result":"ok"}', "request.invalid_value", "/id"),
        ("key_complete", b'{"id":9223372036854775808,"result":"ok"}', "request.wrong_type", "/id"),
        (
            "key_complete",
            b'{"id":-9223372036854775809,"result":"ok"}',
            "request.invalid_value",
            "/id",
        ),
        ("key_complete", b'{"id":null,"result":"ok"}', "request.missing_field", "/id"),
        ("key_next", b'{"timeout_ms":9223372036854775808}', "request.wrong_type", "/timeout_ms"),
        ("key_complete", b'{"id":1}', "request.missing_field", "/result"),
        ("key_complete", b'{"id":1,"result":0}', "request.wrong_type", "/result"),
        ("key_complete", b'{"id":1,"result":"fine"}', "request.invalid_value", "/result"),
        ("key_complete", b'{"id":1,"result":"ok","value":7}', "request.wrong_type", "/value"),
        ("key_complete", b'{"id":1,"result":"ok","key":""}', "request.unknown_field", "/key"),
    ],
)
def test_a_wrong_answer_names_the_field(
    host: App, operation: str, request_text: bytes | None, code: str, field: str | None
) -> None:
    error = host.call(operation, request_text)["error"]
    assert (error["code"], error["field"]) == (code, field)


@pytest.mark.parametrize("length", [0, 1, 16, 31, 33, 64])
def test_KEYS_5_a_key_of_another_length_is_refused_and_the_request_waits(
    host: App, length: int
) -> None:
    call = Call(host, "load")
    number = request_of(host)["id"]
    wrong = base64.b64encode(bytes(length)).decode()
    for value in (wrong, "***", None):
        error = host.call("key_complete", {"id": number, "result": "ok", "value": value})["error"]
        assert (error["code"], error["field"]) == ("request.invalid_value", "/value")
    assert host.call("key_complete", {"id": number, "result": "ok", "value": KEY})["accepted"]
    assert call.reply() == {"result": KEY_OK, "last": 31}


def test_only_the_key_store_host_has_key_requests(app: App) -> None:
    for operation, request in (("key_next", {}), ("key_complete", {"id": 1, "result": "ok"})):
        assert app.call(operation, request)["error"]["code"] == "config.not_configured"
    assert app.raw(4711, "key_next") == NO_MORE_KEYS
    error = app.raw(0, "open", {"data_dir": "x", "keystore": {"kind": "host", "name": "a"}})[
        "error"
    ]
    assert (error["code"], error["field"]) == ("request.unknown_field", "/keystore/name")


def test_an_open_that_fails_leaves_no_mailbox(library: ctypes.CDLL) -> None:
    refused = App(library, keystore={"kind": "host"}, backend={})
    assert refused.opened["error"]["code"] == "request.missing_field"


# The secret service ------------------------------------------------------------------------------------------

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


def test_lines_of_the_log_go_to_the_standard_error(
    logging: App, capfd: pytest.CaptureFixture[str]
) -> None:
    assert log(logging, 1, 'the sign-in failed: "x"')
    assert not log(logging, 2, "more than was asked for")
    assert capfd.readouterr().err == 'holdfast: warning: the sign-in failed: "x"\n'


FORKS_IN_A_CHANGE_OF_THE_LOG = """
import ctypes, signal, sys
from driver_stand import App, declare
from patience import patience

signal.alarm(int(patience(30)))
library = ctypes.CDLL(sys.argv[1])
declare(library)
assert App(library).call("close") == {}
library.fake_fork_in_log()
app = App(library, http={"log_level": 3})
assert library.fake_log(3, b"a line")
assert app.call("close") == {}
"""


def test_a_fork_does_not_wait_for_a_change_of_the_log(library: ctypes.CDLL) -> None:
    """The fork held the core's log and waited for the driver's, whose holder waited for the core's."""
    command = [sys.executable, "-c", FORKS_IN_A_CHANGE_OF_THE_LOG, library._name]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == 0


def test_without_the_option_the_log_stays_the_hosts(app: App) -> None:
    assert not log(app, 0, "an error")
    assert app.event(0) == NONE
