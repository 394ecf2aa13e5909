"""Keys in a real secret service: by the driver's own key store, and in Python over keyring."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_supabase import LocalSupabase

from consumers import ROOT, run
from desktop import Desktop

pytestmark = pytest.mark.slow  # of the desktop's packages


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    with Desktop(tmp_path / "session") as started:
        yield started


#: A host on the driver's two functions: it has no code for keys.
HOST = """
import ctypes, json, os, subprocess, sys, tempfile
library = ctypes.CDLL(sys.argv[1])
library.holdfast_http_call.restype = ctypes.c_void_p
library.holdfast_http_call.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p]
library.holdfast_http_free.argtypes = [ctypes.c_void_p]

def call(operation, **request):
    text = library.holdfast_http_call(app, operation.encode(), json.dumps(request).encode())
    reply = json.loads(ctypes.string_at(text))
    library.holdfast_http_free(text)
    return reply

def said(screen):
    return (screen["message"] or {}).get("code", "-")

def show(shown=None):
    passing = {"signing_in", "guard_pending", "server_unreachable"}
    while shown is None or said(shown) in passing:
        shown = call("next").get("screen", shown)
    print(shown["screen"], said(shown), flush=True)

# The log's lines
log = tempfile.TemporaryFile()
os.dup2(log.fileno(), 2)
app, config = 0, json.loads(sys.argv[2])
opened = call("open", **config)
if "error" in opened:
    print(json.dumps(opened["error"]))
    sys.exit(1)
app = opened["app"]
print(opened["keystore"])
show(opened["screen"])
for word in sys.argv[4:]:
    if word == "keyring_locks":
        subprocess.run(json.loads(sys.argv[3]), check=True, stdout=subprocess.DEVNULL)
    elif word == "owed":
        print(call("session_status")["owed"])
    elif word == "resume":
        call("session_resume")
        show()
    elif word == "explain":
        print(call("queue_list").get("error", {}).get("message"))
        for line in os.pread(log.fileno(), 1 << 20, 0).decode().splitlines():
            print(line.split(": ", 2)[-1])
    elif word == "sign_in":
        call("sign_in_complete", email="solo@example.org", password="holdfast-demo")
        show()
    elif word == "lock":
        call("session_lock")
        show()
    else:
        call("session_logout", unsent="keep")
        print(call("session_status")["owed"])
call("close")
"""


class TwoFunctions:
    """An app whose keys the driver keeps; each start is a new process."""

    def __init__(self, desktop: Desktop, folder: Path, backend: LocalSupabase) -> None:
        self.desktop = desktop
        self.config: dict[str, Any] = {
            "data_dir": str(folder / "data"),
            "backend": {"url": backend.url, "api_key": backend.anon_key},
            "template": "volunteers",
            "keystore": {"kind": "secret_service", "name": "com.example.visits"},
            "policy": {"biometric": "off"},
        }

    def command(self, *words: str) -> list[str]:
        library = ROOT / "build/lib/libholdfast_http.so"
        given = (json.dumps(self.config), json.dumps(Desktop.LOCK))
        return [sys.executable, "-c", HOST, str(library), *given, *words]

    def start(self, *words: str) -> list[str]:
        return run(*self.command(*words), environment=self.desktop.environment).splitlines()


def refused(app: TwoFunctions) -> dict[str, Any]:
    """The error of an app that does not open."""
    done = subprocess.run(
        app.command(), env=app.desktop.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stdout
    return dict(json.loads(done.stdout))


def test_a_host_needs_no_code_for_keys(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    """A key store written by hand has 41 to 59 lines, beside 40 lines of glue."""
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    assert app.start("sign_in") == [
        "secret_service",
        "sign_in session_missing",
        "home -",
    ]
    # No key is in a file
    assert not list((tmp_path / "data").glob("**/*.key"))
    # The session outlives a restart of app and service
    desktop.end_keyring()
    desktop.log_in()
    assert app.start() == ["secret_service", "home -"]
    # Neither a locked keyring nor a missing service is a lost key
    desktop.lock()
    assert app.start()[1:] == ["wait keystore_locked"]
    desktop.end_keyring()
    assert app.start()[1:] == ["wait keystore_failed"]
    desktop.log_in()
    assert app.start()[1:] == ["home -"]
    # A lock erases the key of the session, and a logout owes only the server's word
    assert app.start("lock")[1:] == ["home -", "sign_in biometric_off"]
    ended = app.start("sign_in", "logout")[1:]
    assert ended[:2] == ["sign_in biometric_off", "home -"]
    assert "erase" not in ended[2]
    assert app.start()[1:] == ["sign_in session_missing"]


def test_the_names_of_two_apps_keep_their_keys_apart(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    desktop.log_in()
    (tmp_path / "other").mkdir()
    app = TwoFunctions(desktop, tmp_path, backend)
    other = TwoFunctions(desktop, tmp_path / "other", backend)
    other.config["keystore"] = {"kind": "secret_service", "name": "com.example.other"}
    app.start("sign_in")
    other.start("sign_in", "lock")
    assert app.start()[1:] == ["home -"]


def test_the_cause_of_a_keyring_that_gives_no_key_is_named(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    app = TwoFunctions(desktop, tmp_path, backend)
    app.config["http"] = {"log_level": 1}
    desktop.log_in()
    app.start("sign_in")

    def explained() -> tuple[str, list[str]]:
        _, _, said, *lines = app.start("explain")
        causes = [line for line in lines if line.startswith("secret service: ")]
        assert len(causes) == 1, "the same cause is one line"
        assert said.endswith(f": {causes[0]}"), "the error has the cause, too"
        return said, causes

    desktop.lock()
    said, [line] = explained()
    assert said.startswith("the device was not unlocked yet, load, device, locked: ")
    assert line == "secret service: the keyring is locked, or its prompt was dismissed"
    desktop.end_keyring()
    said, [line] = explained()
    assert said.startswith("the key store failed, load, device, failed: ")
    assert line.startswith("secret service: none answers: ")
    assert "org.freedesktop.secrets" in line
    assert "DBUS_SESSION_BUS_ADDRESS" not in line
    # Without a session bus
    address = desktop.environment.pop("DBUS_SESSION_BUS_ADDRESS")
    said, [line] = explained()
    assert "(DBUS_SESSION_BUS_ADDRESS is not set: there is no session bus)" in line
    # And none is left when the keyring is back
    desktop.environment["DBUS_SESSION_BUS_ADDRESS"] = address
    desktop.log_in()
    assert app.start()[1:] == ["home -"]


def test_a_name_of_two_folders_is_noticed(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    app.start("sign_in")
    (tmp_path / "other").mkdir()
    other = TwoFunctions(desktop, tmp_path / "other", backend)
    error = refused(other)
    assert (error["code"], error["field"]) == ("request.invalid_value", "/keystore/name")
    assert f"the folder {tmp_path}/data:" in error["message"]
    assert not (tmp_path / "other/data").exists()
    # The same folder by another way, and a folder that was moved, are the same app
    (tmp_path / "link").symlink_to(tmp_path)
    app.config["data_dir"] = str(tmp_path / "link/data")
    assert app.start()[1:] == ["home -"]
    (tmp_path / "data").rename(tmp_path / "moved")
    app.config["data_dir"] = str(tmp_path / "moved")
    assert app.start()[1:] == ["home -"]


def test_a_folder_that_was_moved_keeps_its_name(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    app.start("sign_in")
    (tmp_path / "data").rename(tmp_path / "moved")
    app.config["data_dir"] = str(tmp_path / "moved")
    assert app.start()[1:] == ["home -"]
    # When another app makes a folder where the first one was
    usurper = TwoFunctions(desktop, tmp_path, backend)
    assert refused(usurper)["message"].startswith(
        f"the keys under this name are those of the folder {tmp_path}/moved:"
    )
    # Then the first one goes on
    assert app.start()[1:] == ["home -"]


def test_a_missing_folder_is_not_blamed_on_the_name(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    app.start("sign_in")
    del app.config["data_dir"]
    error = refused(app)
    assert (error["code"], error["field"]) == ("request.missing_field", "/data_dir")


def test_a_lock_under_a_locked_keyring_prompts_nobody(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    app = TwoFunctions(desktop, tmp_path, backend)
    app.config["http"] = {"log_level": 1}
    desktop.log_in()
    app.start("sign_in")
    with desktop.prompts() as prompts:
        said = app.start("keyring_locks", "lock", "owed", "owed", "owed", "explain")[1:]
    assert said[:2] == ["home -", "sign_in biometric_off"]
    assert all("erase" in owed for owed in said[2:5]), said
    assert prompts == []
    # The cause stays until the key is gone, and so it is one line of the log
    causes = [line for line in said[6:] if line.startswith("secret service: ")]
    assert causes == ["secret service: the keyring is locked, or its prompt was dismissed"]
    # The key goes when the keyring is open again
    desktop.end_keyring()
    desktop.log_in()
    [decision, owed] = app.start("owed")[1:]
    assert decision == "sign_in biometric_off"
    assert "erase" not in owed


def test_a_dismissed_prompt_is_not_repeated_at_once(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    app.start("sign_in")
    desktop.lock()
    before = time.monotonic()
    with desktop.prompts() as prompts:
        assert app.start("resume", "resume", "resume")[1:] == ["wait keystore_locked"] * 4
    # The first call asks the user, and another one 30 s later at the earliest.
    assert 1 <= len(prompts) <= 1 + (time.monotonic() - before) // 30, prompts


PYTHON = """
import sys
from holdfast import KeyringKeyStore, KeyStoreAnswer
import keyring

assert "SecretService" in type(keyring.get_keyring()).__module__, keyring.get_keyring()
store = KeyringKeyStore("app.example")
for order in sys.argv[1:]:
    try:
        if order == "save":
            store.save("device", bytes(range(32)), 0)
        elif order == "erase":
            store.erase("device")
        print(store.load("device") == bytes(range(32)))
    except KeyStoreAnswer as answer:
        print(answer.answer)
"""


def test_python_s_keyring_adapter(desktop: Desktop) -> None:
    environment = desktop.environment | {"PYTHONPATH": str(ROOT / "bindings/python/src")}

    def orders(*words: str) -> list[str]:
        return run(sys.executable, "-c", PYTHON, *words, environment=environment).split()

    desktop.log_in()
    assert orders("load", "save") == ["False", "True"]
    desktop.lock()
    assert orders("load") == ["2"], "KEY_LOCKED: the key is not lost"
    desktop.end_keyring()
    desktop.log_in()
    assert orders("load", "erase", "erase") == ["True", "False", "False"]
