"""The app ends cleanly, whatever is on the screen, and takes its prompts back."""

from __future__ import annotations

import pathlib
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
from local_supabase import LocalSupabase
from patience import eventually, patience

from desk import App, Desk

KEYRING = "/org/freedesktop/secrets/collection/login"


def at_the_sign_in(app: App) -> None:
    app.see("Welcome", "BankID")


def at_home(app: App) -> None:
    app.sign_in()
    app.see("You this year")


def in_the_form(app: App) -> None:
    at_home(app)
    app.click("Register an activity", "push button")
    app.see("Save")


def at_a_question(app: App) -> None:
    at_home(app)
    app.click("Settings", "push button")
    app.click("Log out", "push button")
    app.see("Log out?")


def at_the_reader(app: App) -> None:
    at_home(app)
    app.keys("ctrl+l")
    app.click("Unlock", "push button")
    app.see("Put your finger on the reader.")


PLACES = [at_the_sign_in, at_home, in_the_form, at_a_question, at_the_reader]


@pytest.mark.parametrize("place", PLACES)
def test_a_session_that_ends_closes_the_app(app: App, place: Callable[[App], None]) -> None:
    """Given any screen, when the desktop ends the session (SIGTERM), then the app ends by itself,
    without a word on the console, and starts again."""
    app.start()
    place(app)
    app.terminate()
    assert app.console.read_text() == ""
    app.start()


def test_closing_the_sign_in_warns_of_nothing(app: App) -> None:
    """GDK reports a state of the window while it is destroyed. The app drew a screen then."""
    app.start()
    at_the_sign_in(app)
    app.quit()
    assert app.console.read_text() == ""


def test_what_is_registered_outlives_the_end(app: App) -> None:
    app.start()
    at_home(app)
    app.stage.set(online=False)
    app.register(10, note="ended")
    app.terminate()
    app.start()
    app.see("1 not sent yet")


# A keyring that is locked. It has a desk of its own, as the other tests need theirs open. -----------


@pytest.fixture
def locked(backend: LocalSupabase, tmp_path: pathlib.Path) -> Iterator[App]:
    """An app with a session, which does not run, and a keyring that is locked."""
    desk = Desk(tmp_path / "desk")
    app = App(desk, backend, tmp_path / "app")
    try:
        app.start()
        at_home(app)
        app.quit()
        lock_keyring(app)
        yield app
    finally:
        app.close()
        desk.close()


@pytest.fixture
def locked_and_new(backend: LocalSupabase, tmp_path: pathlib.Path) -> Iterator[App]:
    """An app that never ran, and a keyring that is locked."""
    desk = Desk(tmp_path / "desk")
    app = App(desk, backend, tmp_path / "app")
    try:
        lock_keyring(app)
        yield app
    finally:
        app.close()
        desk.close()


def lock_keyring(app: App) -> None:
    service = ["--dest", "org.freedesktop.secrets", "--object-path", "/org/freedesktop/secrets"]
    lock = ["--method", "org.freedesktop.Secret.Service.Lock", f"[objectpath '{KEYRING}']"]
    command = ["gdbus", "call", "--session", *service, *lock]
    subprocess.run(command, env=app.desk.environment, check=True, capture_output=True)


def prompt(app: App) -> str:
    """The window of the desktop's prompt, if there is one."""
    command = ["xdotool", "search", "--onlyvisible", "--name", "^Unlock "]
    environment = app.desk.environment
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def see_prompt(app: App) -> None:
    app.wait(lambda: prompt(app), "the keyring is not asked for")
    time.sleep(patience(1))  # it takes the keyboard


def press(app: App, *keys: str) -> None:
    """Press keys on the prompt, which closes with the last one."""
    command = ["xdotool", "windowfocus", "--sync", prompt(app), "key", *keys]
    subprocess.run(command, env=app.desk.environment, capture_output=True, check=False)
    app.wait(lambda: not prompt(app), "the prompt stays")


@pytest.mark.parametrize("end", [App.terminate, App.quit])
def test_the_prompt_is_taken_back_when_the_app_ends(
    locked: App, end: Callable[[App], None]
) -> None:
    """Given the prompt for the keyring, when the app ends, then the prompt goes too, and the console
    has no warning."""
    locked.start()
    see_prompt(locked)
    end(locked)
    eventually(lambda: not prompt(locked), what="the prompt, for which nobody waits, has gone")
    assert locked.console.read_text() == ""


def test_a_dismissed_prompt_leads_on_when_the_keyring_is_open(locked: App) -> None:
    """Given the prompt, when it is dismissed, then the app says what to do, and goes on once the
    keyring is open."""
    locked.start()
    see_prompt(locked)
    press(locked, "Escape")
    locked.see("Unlock your device or its keyring, and we will carry on.")
    locked.stage.set(front=False)
    locked.stage.set(front=True)
    see_prompt(locked)
    press(locked, *"a", "space", *"password", "Return")
    locked.see("You this year")


def test_a_first_start_asks_for_a_locked_keyring(locked_and_new: App) -> None:
    """Given a fresh installation and a locked keyring, then the app asks for the keyring; when that is
    dismissed, then it says what to do, and asks when the user comes back."""
    app = locked_and_new
    app.start()
    see_prompt(app)
    press(app, "Escape")
    app.see("Unlock your device or its keyring, and we will carry on.")
    app.stage.set(front=False)
    app.stage.set(front=True)
    see_prompt(app)
    press(app, *"a", "space", *"password", "Return")
    app.see("Welcome", "BankID")
    at_home(app)
    app.quit()
    app.start()
    app.see("You this year")
