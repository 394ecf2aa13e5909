"""Requests and replies as dicts, exceptions, and the release of every reply."""

from __future__ import annotations

import ctypes
import json
import pickle
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from holdfast import (
    Holdfast,
    KeyStoreAnswer,
    Library,
    MemoryKeyStore,
    NoMemoryError,
    NotFoundError,
)
from holdfast.errors import HoldfastError, InternalError
from holdfast.keystore import KEY_FAILED, KEY_LOCKED, KEY_NOT_FOUND, KEY_OK
from holdfast.library import NEWS

CONFIG = {"data_dir": "/nowhere", "backend": {"url": "http://localhost", "api_key": "k"}}


def ask(app: Holdfast, name: str, request: dict[str, Any] | None = None) -> dict[str, Any]:
    return cast(dict[str, Any], getattr(app, name)(request))


def test_a_reply_becomes_a_dict_and_the_request_arrives(stub: Library) -> None:
    with Holdfast(CONFIG, library=stub) as app:
        assert app.opened == {"version": "9.8.7", "screen": None}
        assert ask(app, "contact_search", {"query": "Åse"}) == {
            "called": "contact_search",
            "request": {"query": "Åse"},
        }
        assert ask(app, "session_resume")["request"] is None


def test_the_folder_may_be_a_path(stub: Library) -> None:
    """A `Path` was `TypeError: Object of type PosixPath is not JSON serializable`."""
    given: list[Any] = []

    class Noting:
        def open(self, config: bytes, keystore: object) -> Any:  # noqa: ANN401
            given.append(json.loads(config))
            return stub.open(config, cast(Any, keystore))

        def close(self, handle: int) -> None:
            stub.close(handle)

    with Holdfast(CONFIG | {"data_dir": Path("/no") / "where"}, library=cast(Any, Noting())):
        assert given == [CONFIG | {"data_dir": "/no/where"}]


def test_an_error_becomes_the_exception_of_its_class(stub: Library) -> None:
    with Holdfast(CONFIG, library=stub) as app, pytest.raises(NotFoundError) as caught:
        app.queue_get({"id": "x"})
    error = caught.value
    assert (error.code, error.field, error.status) == ("queue.not_found", "/id", 3)
    assert (error.message, error.retryable, error.detail) == ("no such item", False, {"n": 1})


def test_no_reply_is_memory_exhausted(stub: Library) -> None:
    with Holdfast(CONFIG, library=stub) as app, pytest.raises(NoMemoryError) as caught:
        app.org_list()
    assert caught.value.code == "memory.exhausted"


def test_every_status_has_its_exception() -> None:
    reply: dict[str, Any] = {
        "error": {"code": "a.b", "message": "m", "field": None, "retryable": True, "detail": {}}
    }
    kinds = {type(HoldfastError.of(status, reply)) for status in range(1, 13)}
    assert len(kinds) == 12
    assert type(HoldfastError.of(99, reply)) is InternalError


def test_nan_and_infinity_are_refused(stub: Library) -> None:
    with Holdfast(CONFIG, library=stub) as app, pytest.raises(ValueError, match="JSON"):
        app.queue_add({"kind": "activity", "payload": {"minutes": float("nan")}})


def test_next_says_when_the_handle_is_closed(stub: Library) -> None:
    with Holdfast(CONFIG, library=stub) as app:
        assert app.next(0) == {"wake_in_ms": None}
        assert app.next(1) is None
        assert app.wake_fd(what=NEWS) == NEWS


def test_keys_go_through_the_store(stub: Library) -> None:
    store = MemoryKeyStore()
    with Holdfast(CONFIG, store, library=stub) as app:
        assert ask(app, "session_unlock")["answer"] == KEY_NOT_FOUND
        assert ask(app, "session_lock")["answer"] == KEY_OK
        assert store.keys == {"device": bytes([7]) * 32}
        assert ask(app, "session_unlock") == {"answer": KEY_OK, "length": 32, "first": 7}
        assert ask(app, "session_logout")["answer"] == KEY_OK
        assert store.keys == {}


class Failing(MemoryKeyStore):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def load(self, name: str) -> bytes | None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (KeyStoreAnswer(KEY_LOCKED), KEY_LOCKED),
        (OSError("the chain is broken"), KEY_FAILED),
        (KeyboardInterrupt(), KEY_FAILED),
    ],
)
def test_no_exception_crosses_into_c(stub: Library, error: BaseException, answer: int) -> None:
    with Holdfast(CONFIG, Failing(error), library=stub) as app:
        assert ask(app, "session_unlock")["answer"] == answer


def test_a_key_that_is_too_long_is_not_written(stub: Library) -> None:
    store = MemoryKeyStore()
    store.keys["device"] = bytes(64)
    with Holdfast(CONFIG, store, library=stub) as app:
        assert ask(app, "session_unlock")["answer"] == KEY_FAILED


def test_log_lines_arrive_and_a_failing_function_is_harmless(stub: Library) -> None:
    lines: list[tuple[int, str]] = []

    def failing(level: int, line: str) -> None:
        lines.append((level, line))
        raise RuntimeError("full")

    stub.set_log(2, failing)
    stub.set_log(0, None)
    assert lines == [(2, "hello")]


def test_many_threads_share_a_handle(stub: Library) -> None:
    wrong: list[object] = []
    with Holdfast(CONFIG, library=stub) as app:

        def work(number: int) -> None:
            for _ in range(200):
                reply = ask(app, "contact_search", {"query": str(number)})
                if reply["request"] != {"query": str(number)}:
                    wrong.append(reply)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_several_libraries_work_at_once(stub: Library) -> None:
    again = Library(stub.path)
    assert again is not stub
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    assert again.version() == stub.version() == "9.8.7"


def test_a_handle_cannot_be_pickled(stub: Library) -> None:
    with Holdfast(CONFIG, library=stub) as app, pytest.raises(TypeError, match="data_dir"):
        pickle.dumps(app)
