"""Keys in a real secret service: the C example over libsecret, Python over keyring."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_supabase import LocalSupabase

from consumers import ROOT, run
from desktop import Desktop

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

    def start(self, *lines: str) -> list[Any]:
        """Start the app, run `session_resume` and these commands; return the replies."""
        script = "\n".join(("session_resume", *lines)) + "\n"
        environment = self.desktop.environment
        printed = run(*self.command, given=script, environment=environment).splitlines()
        return [json.loads(line[3:]) for line in printed if line.startswith("OK {")]


@pytest.fixture
def app(desktop: Desktop, tmp_path: Path, backend: LocalSupabase) -> App:
    return App(desktop, tmp_path, backend)


SIGN_IN = ('sign_in_begin {"method":"bankid"}', "browse solo@example.org", "wait decision")


def test_the_device_key_survives_restarts_of_app_and_service(app: App, desktop: Desktop) -> None:
    # Given a signed-in user whose device key is in the desktop's secret service
    desktop.log_in()
    assert app.start(*SIGN_IN)[0]["screen"] == "sign_in"
    assert not Path(f"{app.folder}.keys", "device").exists()
    # When app and service restart
    desktop.end_keyring()
    desktop.log_in()
    # Then the session is resumed
    [decision, status] = app.start("session_status")
    assert (decision["screen"], status["state"]) == ("home", "active"), decision


def test_the_app_waits_for_a_locked_keyring_and_loses_nothing(app: App, desktop: Desktop) -> None:
    desktop.log_in()
    app.start(*SIGN_IN)
    desktop.lock()
    [decision] = app.start()
    assert (decision["screen"], decision["reason"]) == ("wait", "keystore_locked")
    desktop.end_keyring()
    desktop.log_in()
    assert app.start()[0]["screen"] == "home"


def test_a_missing_service_does_not_mean_a_lost_key(app: App, desktop: Desktop) -> None:
    desktop.log_in()
    app.start(*SIGN_IN)
    desktop.end_keyring()
    [decision] = app.start()
    assert (decision["screen"], decision["reason"]) == ("wait", "keystore_failed")
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
