"""The key store "host" of holdfast_http_call(), with the real core: a thread answers for a keychain."""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from local_supabase.launcher import LocalSupabase
from patience import patience

from driver_stand import ROOT, App, declare

CORE = Path(os.environ.get("HOLDFAST_LIBRARY", ROOT / "build/lib/libholdfast.so"))
DRIVER = CORE.with_name("libholdfast_http.so")

pytestmark = pytest.mark.skipif(not DRIVER.exists(), reason="the driver is not built")


class Keychain(threading.Thread):
    """A keychain on a thread of its own. "biometric" is there once the user has released it."""

    def __init__(self, app: App) -> None:
        super().__init__()
        self.app = app
        self.keys: dict[str, str] = {}
        self.released: str | None = None
        self.asked: list[tuple[str, str]] = []
        self.start()

    def run(self) -> None:
        while (reply := self.app.call("key_next")).get("key_request"):
            request = reply["key_request"]
            self.asked.append((request["operation"], request["name"]))
            answer = {"id": request["id"], **self.answer(request)}
            assert self.app.call("key_complete", answer) == {"accepted": True}

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["name"]
        match request["operation"]:
            case "save":
                self.keys[name] = request["value"]
                return {"result": "ok"}
            case "erase":
                self.keys.pop(name, None)
                return {"result": "ok"}
            case _ if name not in self.keys:
                return {"result": "not_found"}
            case _ if name == "biometric":
                key, self.released = self.released, None
                return {"result": "cancelled"} if key is None else {"result": "ok", "value": key}
            case _:
                return {"result": "ok", "value": self.keys[name]}

    def touch(self) -> None:
        """The user releases the key, before the app calls session_unlock."""
        self.released = self.keys["biometric"]


@pytest.fixture(scope="module")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as started:
        yield started


@pytest.fixture
def app(backend: LocalSupabase, tmp_path: Path) -> Iterator[App]:
    ctypes.CDLL(str(CORE), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(DRIVER))
    declare(library)
    opened = App(
        library,
        data_dir=str(tmp_path / "data"),
        backend={"url": backend.url, "api_key": backend.anon_key},
        template="volunteers",
        keystore={"kind": "host"},
    )
    assert opened.opened["keystore"] == "host"
    assert opened.opened["unlock_prompt"]
    yield opened
    assert opened.call("close") == {}


def until(app: App, screen: str) -> dict[str, Any]:
    """The first of the screens that come that is this one."""
    while True:
        thing = app.event(int(patience(60) * 1000))
        assert "wake_in_ms" not in thing, f"no screen {screen}"
        if thing.get("screen", {}).get("screen") == screen:
            return dict(thing["screen"])


def test_HST_2_a_thread_answers_for_the_keychain(app: App) -> None:
    keychain = Keychain(app)
    assert app.opened["screen"] is None
    until(app, "sign_in")
    person = {"email": "solo@example.org", "password": "holdfast-demo"}
    assert app.call("sign_in_complete", person) == {}
    assert until(app, "wait")["message"]["code"] == "signing_in"
    until(app, "home")
    assert set(keychain.keys) == {"device", "session", "biometric"}
    # A lock erases the session's key, and looks
    assert app.call("session_lock") == {}
    until(app, "unlock")
    assert keychain.asked[-2:] == [("erase", "session"), ("load", "session")]
    assert "session" not in keychain.keys
    # Without the key that the user releases, nothing opens
    assert app.call("session_unlock") == {}
    assert until(app, "sign_in")["message"]["code"].startswith("biometric_")
    # The prompt comes before the call, which finds the key ready
    keychain.touch()
    assert app.call("session_unlock") == {}
    until(app, "home")
    assert keychain.released is None
    assert "session" in keychain.keys
    # An erased key needs no prompt to be found absent
    assert app.call("session_logout") == {"unsent": 0}
    assert until(app, "sign_in")["message"]["code"] == "signed_out"
    assert set(keychain.keys) == {"device"}
    assert app.call("session_status")["owed"] in ([], ["revoke"])
    app.call("close")
    keychain.join(patience(60))
    assert not keychain.is_alive()


def test_a_first_screen_that_the_storage_keeps_back_comes_later(app: App, tmp_path: Path) -> None:
    """The failure was ignored, and a worker, as which the handle opens, gets no screen by itself."""
    keychain = Keychain(app)
    # Given another process that writes for longer than a call waits
    with closing(sqlite3.connect(tmp_path / "data" / "holdfast.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert "screen" not in app.call("next", {"timeout_ms": 0})
        other.execute("ROLLBACK")
    until(app, "sign_in")
    app.call("close")
    keychain.join(patience(60))


def test_closing_does_not_wait_for_the_keychain(app: App) -> None:
    """Nobody answers: the call that waits fails, and the handle closes at once."""
    seen: list[dict[str, Any]] = []
    call = threading.Thread(target=lambda: seen.append(app.call("session_resume")))
    call.start()
    taken: list[dict[str, Any]] = []
    taker = threading.Thread(target=lambda: taken.append(app.call("key_next")))
    taker.start()
    taker.join(patience(60))
    assert taken[0]["key_request"]["name"] == "device"
    assert app.call("close") == {}
    call.join(patience(60))
    assert seen == [{}]
