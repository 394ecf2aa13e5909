"""Keys in a real secret service: the C example over libsecret, Python over keyring."""

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
from patience import patience

from consumers import ROOT, run
from desktop import Desktop

pytestmark = pytest.mark.slow  # of the desktop's packages

SHELL = ROOT / "build" / "bin" / "holdfast-tour"
OPTIONS = ["--shell", "--keystore", "secret-service"]


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    with Desktop(tmp_path / "session") as started:
        yield started


class App:
    """The shell of the C example; each start is a new process."""

    def __init__(self, desktop: Desktop, folder: Path, backend: LocalSupabase) -> None:
        self.desktop = desktop
        self.folder = folder / "app"
        self.command: list[str | Path] = [SHELL, *OPTIONS, "--data", self.folder]
        self.command += ["--backend", backend.url, "--key", backend.anon_key]

    def start(self, *lines: str) -> tuple[dict[str, Any], list[Any]]:
        """Start the app and run these commands: its last screen, and all that it printed."""
        script = "\n".join(("session_resume", SHOWN, *lines)) + "\n"
        environment = self.desktop.environment
        printed = run(*self.command, given=script, environment=environment).splitlines()
        given = [json.loads(line.partition(" ")[2]) for line in printed if " {" in line]
        screens = [one["screen"] for one in given if isinstance(one.get("screen"), dict)]
        return screens[-1], given


@pytest.fixture
def app(desktop: Desktop, tmp_path: Path, backend: LocalSupabase) -> App:
    return App(desktop, tmp_path, backend)


SHOWN = f"wait screen {patience(60):.0f}"
#: The state of sync comes when the user is in and contacts are pulled.
SIGN_IN = (
    'sign_in_begin {"method":"bankid"}',
    "browse solo@example.org",
    f"wait sync {patience(60):.0f}",
)


def test_the_device_key_survives_restarts_of_app_and_service(app: App, desktop: Desktop) -> None:
    # Given a signed-in user whose device key is in the desktop's secret service
    desktop.log_in()
    assert app.start()[0]["screen"] == "sign_in"
    app.start(*SIGN_IN)
    assert not Path(f"{app.folder}.keys", "device").exists()
    # When app and service restart
    desktop.end_keyring()
    desktop.log_in()
    # Then the session is resumed
    shown, given = app.start("session_status")
    assert (shown["screen"], given[-1]["state"]) == ("home", "active"), shown


@pytest.mark.parametrize(("is_missing", "reason"), [(False, "locked"), (True, "failed")])
def test_the_app_waits_for_a_keyring_and_loses_nothing(
    app: App, desktop: Desktop, is_missing: bool, reason: str
) -> None:
    desktop.log_in()
    app.start(*SIGN_IN)
    desktop.end_keyring() if is_missing else desktop.lock()
    shown, _ = app.start()
    assert (shown["screen"], shown["reason"]) == ("wait", f"keystore_{reason}")
    desktop.end_keyring()
    desktop.log_in()
    assert app.start()[0]["screen"] == "home"


def test_without_libsecret_the_example_builds_and_refuses_the_option(tmp_path: Path) -> None:
    program = tmp_path / "holdfast-tour"
    sources = sorted((ROOT / "examples" / "c").glob("*.c"))
    flags: list[str | Path] = [
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-I",
        ROOT / "build" / "include",
    ]
    libraries: list[str | Path] = [
        "-L",
        ROOT / "build" / "lib",
        "-lholdfast",
        "-lholdfast_http",
        "-ljansson",
    ]
    run("cc", *flags, "-o", program, *sources, *libraries, "-lcurl", "-pthread")
    done = subprocess.run(
        [program, *OPTIONS, "--data", tmp_path, "--backend", "http://127.0.0.1:9", "--key", "k"],
        env={"LD_LIBRARY_PATH": str(ROOT / "build" / "lib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "libsecret-1-dev" in done.stderr


#: A host on the driver's two functions: it has no code for keys.
HOST = """
import ctypes, json, os, subprocess, sys
os.dup2(1, 2)  # with the lines of the log
library = ctypes.CDLL(sys.argv[1])
library.holdfast_http_call.restype = ctypes.c_void_p
library.holdfast_http_call.argtypes = [ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p]
library.holdfast_http_free.argtypes = [ctypes.c_void_p]

def say(*words):
    print(*words, flush=True)

def call(operation, **request):
    text = library.holdfast_http_call(app, operation.encode(), json.dumps(request).encode())
    reply = json.loads(ctypes.string_at(text))
    library.holdfast_http_free(text)
    return reply

def decide(shown=None):
    while shown is None or shown["reason"] in {"signing_in", "guard_pending", "server_unreachable"}:
        shown = call("next").get("screen", shown)
    say(shown["screen"], shown["reason"])

app, config = 0, json.loads(sys.argv[2])
opened = call("open", **config)
if "error" in opened:
    say(json.dumps(opened["error"]))
    sys.exit(1)
app = opened["app"]
say(opened["keystore"])
decide(opened["screen"])
for word in sys.argv[4:]:
    if word == "keyring_locks":
        subprocess.run(json.loads(sys.argv[3]), check=True, stdout=subprocess.DEVNULL)
    elif word == "owed":
        say(call("session_status")["owed"])
    elif word == "explain":
        say(call("queue_list").get("error", {}).get("message"))
    elif word == "sign_in":
        call("sign_in_complete", email="solo@example.org", password="holdfast-demo")
        decide()
    elif word == "logout":
        call("session_logout")
        say(call("session_status")["owed"])
    else:
        call("session_" + word)
        decide()
call("close")
"""

#: How a line of the log begins that says why the keyring gives no key.
CAUSE = "holdfast: warning: secret service: "


class TwoFunctions:
    """An app whose keys the driver keeps; each start is a new process."""

    def __init__(self, desktop: Desktop, folder: Path, backend: LocalSupabase) -> None:
        self.desktop = desktop
        self.config: dict[str, Any] = {
            "data_dir": str(folder / "data"),
            "backend": {"url": backend.url, "api_key": backend.anon_key},
            "auth_methods": [{"id": "password", "flow": "password"}],
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
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_host_needs_no_code_for_keys(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    """A key store written by hand has 41 to 59 lines, beside 40 lines of glue."""
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    assert app.start("sign_in") == [
        "secret_service",
        "sign_in session_missing",
        "home chosen",
    ]
    # No key is in a file
    assert not list((tmp_path / "data").glob("**/*.key"))
    # The session outlives a restart of app and service
    desktop.end_keyring()
    desktop.log_in()
    assert app.start() == ["secret_service", "home active"]
    # Neither a locked keyring nor a missing service is a lost key
    desktop.lock()
    assert app.start()[1:] == ["wait keystore_locked"]
    desktop.end_keyring()
    assert app.start()[1:] == ["wait keystore_failed"]
    desktop.log_in()
    assert app.start()[1:] == ["home active"]
    # A lock erases the key of the session, and a logout owes only the server's word
    assert app.start("lock")[1:] == ["home active", "sign_in biometric_off"]
    ended = app.start("sign_in", "logout")[1:]
    assert ended[:2] == ["sign_in biometric_off", "home chosen"]
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
    assert app.start()[1:] == ["home active"]


def test_the_cause_of_a_keyring_that_gives_no_key_is_named(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    """Without a session bus the error said "unlock your device"."""
    app = TwoFunctions(desktop, tmp_path, backend)
    app.config["http"] = {"log_level": 1}
    desktop.log_in()
    app.start("sign_in")

    def explained() -> tuple[str, str]:
        lines = app.start("explain")
        [cause] = [line.removeprefix(CAUSE) for line in lines if line.startswith(CAUSE)]
        assert lines[-1].endswith(f": secret service: {cause}"), "the error has the cause, too"
        return lines[-1], cause

    desktop.lock()
    said, cause = explained()
    assert said.startswith("the device was not unlocked yet, load, device, locked: ")
    assert cause == "the keyring is locked, or its prompt was dismissed"
    desktop.end_keyring()
    said, cause = explained()
    assert said.startswith("the key store failed, load, device, failed: ")
    assert cause.startswith("none answers: ")
    assert "org.freedesktop.secrets" in cause
    assert "DBUS_SESSION_BUS_ADDRESS" not in cause
    # Without a session bus
    address = desktop.environment.pop("DBUS_SESSION_BUS_ADDRESS")
    said, cause = explained()
    assert "(DBUS_SESSION_BUS_ADDRESS is not set: there is no session bus)" in cause
    # And none is left when the keyring is back
    desktop.environment["DBUS_SESSION_BUS_ADDRESS"] = address
    desktop.log_in()
    assert app.start()[1:] == ["home active"]


def test_a_name_of_two_folders_is_noticed(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    """Each took the other's keys for its own, and overwrote them."""
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
    assert app.start()[1:] == ["home active"]
    (tmp_path / "data").rename(tmp_path / "moved")
    app.config["data_dir"] = str(tmp_path / "moved")
    assert app.start()[1:] == ["home active"]


def test_a_folder_that_was_moved_keeps_its_name(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    """The label of the keys kept the old folder. So a new folder there took the keys over, and the
    rightful one was refused."""
    app = TwoFunctions(desktop, tmp_path, backend)
    desktop.log_in()
    app.start("sign_in")
    (tmp_path / "data").rename(tmp_path / "moved")
    app.config["data_dir"] = str(tmp_path / "moved")
    assert app.start()[1:] == ["home active"]
    # When another app makes a folder where the first one was
    usurper = TwoFunctions(desktop, tmp_path, backend)
    assert refused(usurper)["message"].startswith(
        f"the keys under this name are those of the folder {tmp_path}/moved:"
    )
    # Then the first one goes on
    assert app.start()[1:] == ["home active"]


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
    """The session's key could not be erased, and so each call showed two prompts, one after the
    other, while it held the database. The service was also said to have erased the key."""
    app = TwoFunctions(desktop, tmp_path, backend)
    app.config["http"] = {"log_level": 1}
    desktop.log_in()
    app.start("sign_in")
    with desktop.prompts() as prompts:
        said = app.start("keyring_locks", "lock", "owed", "owed", "owed")[1:]
    causes = [line.removeprefix(CAUSE) for line in said if line.startswith(CAUSE)]
    said = [line for line in said if not line.startswith("holdfast: ")]
    assert said[:2] == ["home active", "sign_in biometric_off"]
    assert len(said) == 5 and all("erase" in owed for owed in said[2:]), said
    assert prompts == []
    # The cause stays until the key is gone, and so it is one line of the log
    assert causes == ["the keyring is locked, or its prompt was dismissed"]
    # The key goes when the keyring is open again
    desktop.end_keyring()
    desktop.log_in()
    [decision, owed] = app.start("owed")[1:]
    assert decision == "sign_in biometric_off"
    assert "erase" not in owed


def test_a_dismissed_prompt_is_not_repeated_at_once(
    desktop: Desktop, tmp_path: Path, backend: LocalSupabase
) -> None:
    """Every call that needed a key showed another prompt, and so did the driver's own polls."""
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
