"""A desktop without a screen: Xvfb, a session bus, a keyring, the app, and a user who sees and acts.

The user works over the accessibility tree only (eyes.py): what a screen reader cannot find, a test
cannot find either.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from local_supabase.postgres import held_port
from patience import eventually, patience
from stage import Stage

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ.get("HOLDFAST_DESKTOP", ROOT / "build/bin/holdfast-desktop"))
#: Debian's Python, which has the bindings of AT-SPI.
SYSTEM_PYTHON = "/usr/bin/python3"
#: How long a user waits for something to appear. Nothing is measured by it.
PATIENCE_S = patience(60)


def noon() -> str:
    """The name of a time zone in which it is about noon, so that no test sees midnight pass."""
    hours = 12 - datetime.datetime.now(datetime.UTC).hour
    return f"Etc/GMT{-hours:+}"  # these names count hours to the west


#: The time zone of the desk.
ZONE = noon()


class Desk:
    """A session: display, bus, keyring, and one helper that reads the accessibility tree."""

    def __init__(self, folder: pathlib.Path, *, dark: bool = False, text: float = 1.0) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._processes: list[subprocess.Popen[str]] = []
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_DATA_HOME": str(folder / "share"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "LANG": "C.UTF-8",
            "LANGUAGE": "en",
            "GSK_RENDERER": "cairo",
            # Mesa's driver leaks, and is sometimes unloaded before the leak can be named.
            "GDK_DEBUG": "gl-disable",
            "GSETTINGS_BACKEND": "memory",
            "GTK_A11Y": "atspi",
            # Freed memory is overwritten at once: an object that is used after its end stops the app.
            "G_SLICE": "always-malloc",
            "MALLOC_PERTURB_": "165",
            "TZ": ZONE,
        }
        sanitizer = ("ASAN_OPTIONS", "LSAN_OPTIONS")
        self.environment |= {name: os.environ[name] for name in sanitizer if name in os.environ}
        if dark:
            self.environment["ADW_DEBUG_COLOR_SCHEME"] = "prefer-dark"
        self.environment["DISPLAY"] = ":" + self._start_display()
        self._scale_text(text)
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = self._start_bus()
        self._unlock_keyring()
        self._configure()
        self._eyes = self._start(
            [SYSTEM_PYTHON, str(pathlib.Path(__file__).with_name("eyes.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def _start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        options = {"stderr": subprocess.DEVNULL, "env": self.environment, **options}
        process = subprocess.Popen(command, **options)
        self._processes.append(process)
        return process

    def _start_display(self) -> str:
        reading, writing = os.pipe()
        command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1100x900x24"]
        self._start([*command, "-nolisten", "tcp", "-noreset"], pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as number:
            return number.readline().strip()

    def _scale_text(self, factor: float) -> None:
        """Set the size of text, as the desktop's accessibility settings do."""
        resource = ["-f", "RESOURCE_MANAGER", "8s", "-set", "RESOURCE_MANAGER"]
        command = ["xprop", "-root", *resource, f"Xft.dpi:\t{round(96 * factor)}\n"]
        subprocess.run(command, env=self.environment, check=True)

    def _start_bus(self) -> str:
        command = ["dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address"]
        bus = self._start(command, stdout=subprocess.PIPE, text=True)
        assert bus.stdout is not None
        return bus.stdout.readline().strip()

    def _unlock_keyring(self) -> None:
        command = ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"]
        keyring = self._start(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert keyring.stdin is not None
        keyring.stdin.write("a password")
        keyring.stdin.close()
        # Else the bus would start another one for the first who asks.
        bus = "org.freedesktop.DBus"
        ask = ["gdbus", "call", "--session", "--dest", bus, "--object-path", "/", "--method"]
        ask += [f"{bus}.NameHasOwner", "org.freedesktop.secrets"]

        def is_there() -> bool:
            options = {"env": self.environment, "capture_output": True, "check": True}
            return b"true" in subprocess.run(ask, **options).stdout

        eventually(is_there, what="the keyring is on the bus")

    def _configure(self) -> None:
        """Settings of GTK, and a program for web pages and telephone calls that only notes the URL."""
        applications, config = self.folder / "share/applications", self.folder / "config"
        applications.mkdir(parents=True)
        config.mkdir(parents=True)
        # GTK 4.8 warns when a screen reader writes into a field while its cursor blinks.
        (config / "gtk-4.0").mkdir()
        settings = "gtk-cursor-blink=false\ngtk-font-name=Cantarell 11\n"
        (config / "gtk-4.0/settings.ini").write_text(f"[Settings]\n{settings}")
        note = self.folder / "browser.sh"
        note.write_text(f"#!/bin/sh\nprintf %s \"$1\" > '{self.folder}/opened'\n")
        note.chmod(0o700)
        (applications / "note.desktop").write_text(
            f"[Desktop Entry]\nType=Application\nName=Note\nExec={note} %u\n"
            "MimeType=x-scheme-handler/http;x-scheme-handler/tel;\n"
        )
        (config / "mimeapps.list").write_text(
            "[Default Applications]\n"
            "x-scheme-handler/http=note.desktop\nx-scheme-handler/tel=note.desktop\n"
        )

    def ask(self, order: str, **details: Any) -> Any:
        """Let the helper read the tree, or act on it."""
        assert self._eyes.stdin is not None and self._eyes.stdout is not None
        self._eyes.stdin.write(json.dumps({"do": order, **details}) + "\n")
        self._eyes.stdin.flush()
        answer = json.loads(self._eyes.stdout.readline())
        if "failed" in answer:
            raise AssertionError(f"{order} {details}: {answer['failed']}")
        return answer["ok"]

    def picture(self, path: pathlib.Path) -> None:
        """Store what is on the display, without the empty rest."""
        command = ["convert", "x:root", "-trim", "+repage", "-shave", "5x5", "-strip", "+dither"]
        command += ["-colors", "96", f"png8:{path}"]
        subprocess.run(command, env=self.environment, check=True)

    def close(self) -> None:
        """End everything that was started here."""
        for process in reversed(self._processes):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE_S)
            if process.poll() is None:
                process.kill()
                process.wait()


class App:
    """The app on a desk, with a stage of its own. It can be killed and started again."""

    def __init__(self, desk: Desk, backend: Any, folder: pathlib.Path, **environment: str) -> None:
        self.desk, self.backend, self.folder = desk, backend, folder
        folder.mkdir(exist_ok=True)
        self.stage = Stage(folder / "stage")
        # The app listens on this port while it waits for the browser.
        self._port = held_port()
        self.redirect = f"http://127.0.0.1:{self._port.getsockname()[1]}/signed-in"
        self.environment = environment
        self.process: subprocess.Popen[bytes] | None = None
        self.console = folder / "console"

    # The program ----------------------------------------------------------------------------------

    def start(self) -> App:
        """Start the program, and wait for its window."""
        environment = {
            **self.desk.environment,
            "HOLDFAST_URL": self.backend.url,
            "HOLDFAST_KEY": self.backend.anon_key,
            "HOLDFAST_STAGE": self.stage.path,
            "HOLDFAST_REDIRECT": self.redirect,
            "HOLDFAST_DATA": str(self.folder / "app"),
            **self.environment,
        }
        with self.console.open("ab") as console:
            self.process = subprocess.Popen(
                [str(PROGRAM)], env=environment, stdout=console, stderr=console
            )
        self.wait(lambda: self.desk.ask("attach", pid=self.process.pid), "the app's window")
        return self

    def kill(self) -> None:
        """End the program as a power cut does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.process = None

    def terminate(self) -> None:
        """End the program as the end of the desktop's session does. It ends by itself."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(PATIENCE_S) == 0
        self.process = None

    def keyring(self, *order: str) -> str:
        """What secret-tool says of the app's entries in the keyring."""
        command = ["secret-tool", *order, "app", f"org.holdfast.Desktop {self.folder}/app/data"]
        environment = self.desk.environment
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout + done.stderr

    def quit(self) -> None:
        """Close the window."""
        assert self.process is not None
        self.click("Close", "push button")
        assert self.process.wait(PATIENCE_S) == 0
        self.process = None

    def close(self) -> None:
        """Clear up after a test. A warning of GTK or GLib on the console fails it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        self.stage.close()
        self._port.close()
        text = self.console.read_text() if self.console.exists() else ""
        shutil.rmtree(self.folder, ignore_errors=True)
        assert not re.search(r"WARNING|CRITICAL|ERROR", text), text

    # The user -------------------------------------------------------------------------------------

    def wait(self, what: Callable[[], object], description: str) -> object:
        """Look again until there is something to see."""
        until = time.monotonic() + PATIENCE_S
        while not (found := what()):
            assert self.process is None or self.process.poll() is None, self.console.read_text()
            assert time.monotonic() < until, f"{description}; on the screen: {self.texts()}"
            time.sleep(0.25)
        return found

    def texts(self) -> list[str]:
        """Every text and name on the screen."""
        seen = [name if name else text for _, name, text in self.desk.ask("texts")]
        return [text for text in seen if text and not re.fullmatch(r"(Gtk|Adw)\w+", text)]

    def sees(self, text: str) -> bool:
        """Whether the text is part of what is on the screen now."""
        return any(text in seen for seen in self.texts())

    def see(self, *texts: str) -> None:
        """Wait until all of these are on the screen."""
        for text in texts:
            self.wait(lambda text=text: self.sees(text), f"{text!r} does not appear")

    def see_no_more(self, text: str) -> None:
        """Wait until this is gone."""
        self.wait(lambda: not self.sees(text), f"{text!r} stays")

    def click(self, name: str, role: str | None = None, *, part: bool = False) -> None:
        """Click on what has this name, once it is there."""
        click = lambda: self.desk.ask("click", name=name, role=role, part=part)  # noqa: E731
        place = self.wait(click, f"no {name!r} to click")
        if isinstance(place, list):
            place = self._still(click, place)
            x, y = place
            self._xdotool("mousemove", "--window", "%1", str(x), str(y), "click", "1")

    def _still(self, click: Callable[[], Any], place: list[int]) -> list[int]:
        """Where it is once it no longer slides."""
        while True:
            time.sleep(0.3)
            again = click()
            if again == place:
                return place
            place = again or place

    def type(self, name: str, text: str) -> None:
        """Write into the field of this name, once it is there."""
        self.wait(lambda: self.desk.ask("type", name=name, text=text), f"no field {name!r}")

    def shown_time(self) -> str:
        """The time on the form."""
        is_time = lambda text: re.fullmatch(r"\d\d:\d\d", text)  # noqa: E731
        return str(self.wait(lambda: next(filter(is_time, self.texts()), None), "no time is shown"))

    def choose_time(self, shown: str, hour: str, minute: str) -> None:
        """Open the time that the form shows, and choose another one."""
        self.click(shown, "push button")
        self.type("Hour", hour)
        self.type("Minute", minute)
        self.keys("Escape")
        self.see(f"{hour}:{minute}")

    def press(self, name: str, way: str = "Tab") -> None:
        """Go by the keyboard, forward or back, to what has this in its name, and press it."""
        met = []
        while name not in (here := self.focused()):
            met.append(here)
            assert len(met) < 60, f"the keyboard does not come to {name!r}, but to {met}"
            self.keys(way)
        self.keys("space")

    def focused(self) -> str:
        """What a screen reader says of the focus."""
        return " ".join(self.desk.ask("focused") or [])

    def keys(self, *keys: str) -> None:
        """Press keys, as xdotool names them."""
        self._xdotool("windowfocus", "--sync", "key", "--clearmodifiers", *keys)

    def activate(self, action: str) -> None:
        """Run an action of the window over the bus, as the shell does. The app has no name there."""
        assert self.process is not None
        names = self._bus("org.freedesktop.DBus", "/", "org.freedesktop.DBus.ListNames").stdout
        for name in re.findall(r":\d+\.\d+", names):
            whose = "org.freedesktop.DBus.GetConnectionUnixProcessID"
            owner = self._bus("org.freedesktop.DBus", "/", whose, name).stdout
            if f"uint32 {self.process.pid}," in owner:
                window = "/org/holdfast/Desktop/window/1"
                done = self._bus(name, window, "org.gtk.Actions.Activate", action, "[]", "{}")
                if done.returncode == 0:
                    return
        raise AssertionError(f"no window on the bus has the action {action!r}")

    def _bus(self, name: str, place: str, *call: str) -> subprocess.CompletedProcess[str]:
        target = ["--dest", name, "--object-path", place, "--method", *call]
        command = ["gdbus", "call", "--session", *target]
        environment = self.desk.environment
        return subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def narrow(self, width: int) -> None:
        """Make the window as narrow as a user can."""
        border = 5  # of GTK's shadow, on each side
        self._xdotool("windowsize", "--sync", str(width + 2 * border), "720")
        time.sleep(0.5)

    def sticking_out(self, width: int) -> list[str]:
        """What is on the screen and does not fit into this width."""
        found = list(self.desk.ask("sticking_out", width=width))
        return found if found or (least := self._least_width()) <= width else [f"all: {least}"]

    def _least_width(self) -> int:
        """How narrow the window can be, as it tells the desktop: the width that every page fits."""
        search = ["xdotool", "search", "--onlyvisible", "--name", "^Holdfast$"]
        options = {"env": self.desk.environment, "capture_output": True, "text": True}
        window = subprocess.run(search, **options, check=True).stdout.split()[-1]
        hints = subprocess.run(["xprop", "-id", window, "WM_NORMAL_HINTS"], **options, check=True)
        least = re.search(r"minimum size: (\d+) by", hints.stdout)
        assert least is not None, hints.stdout
        return int(least[1])

    def _xdotool(self, *words: str) -> None:
        assert self.process is not None
        search = ["xdotool", "search", "--onlyvisible", "--name", "^Holdfast$"]
        command = [*search, *words]
        subprocess.run(command, env=self.desk.environment, check=True, stdout=subprocess.DEVNULL)

    def opened(self) -> str:
        """The URL with which the desktop's browser, or its telephone, was started."""
        file = self.desk.folder / "opened"
        self.wait(lambda: file.exists() and file.read_text().strip(), "no URL was opened")
        url = file.read_text().strip()
        file.unlink()
        return url

    def see_written(self, *texts: str) -> None:
        """Wait until fields on the screen hold these."""
        for text in texts:
            held = lambda text=text: text in [each for _, _, each in self.desk.ask("texts")]  # noqa: E731
            self.wait(held, f"no field holds {text!r}")

    # What several stories need --------------------------------------------------------------------

    def sign_in(self, email: str = "solo@example.org", password: str = "holdfast-demo") -> None:
        """Sign in with a password."""
        self.click("E-mail and password")
        self.type("E-mail address", email)
        self.type("Password", password)
        self.click("Sign in", "push button")

    def register(self, minutes: int, note: str = "") -> None:
        """Register a visit."""
        self.click("Register an activity", "push button")
        self.type("Minutes", str(minutes))
        if note:
            self.type("Note", note)
        self.click("Save", "push button")
        self.see("You this year")

    def unlock(self, *, accepted: bool = True) -> None:
        """Ask to unlock, and put a finger on the reader."""
        self.click("Unlock", "push button")
        self.see("Put your finger on the reader.")
        assert self.stage.waiting_for_finger.wait(PATIENCE_S)
        assert self.stage.finger(accepted=accepted)

    def log_out(self, question: str = "Log out?") -> None:
        """Log out, once the question says this."""
        self.click("Settings", "push button")
        self.click("Log out", "push button")
        self.see(question)
        self.click("Log out", "push button")

    def tab(self, name: str) -> None:
        """Open a page of the home screen."""
        self.click(name, "page tab")
