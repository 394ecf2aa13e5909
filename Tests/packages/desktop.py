"""The secret service of a desktop session, on a private D-Bus without service activation."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

from patience import eventually, patience

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:tmpdir={folder}</listen>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
SECRETS = "org.freedesktop.secrets"
PROMPT = "org.freedesktop.Secret.Prompt"
COLLECTION = "/org/freedesktop/secrets/collection/login"


class Desktop:
    """A desktop session: a bus, and GNOME Keyring with its files below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bus: subprocess.Popen[str] | None = None
        self._keyring: subprocess.Popen[bytes] | None = None
        self.environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "XDG_DATA_HOME": str(folder / "data"),
        }

    def __enter__(self) -> Self:
        self._folder.mkdir(mode=0o700)
        configuration = self._folder / "bus.conf"
        configuration.write_text(BUS.format(folder=self._folder), "utf-8")
        self._bus = subprocess.Popen(
            ["dbus-daemon", f"--config-file={configuration}", "--nofork", "--print-address"],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        output: IO[str] | None = self._bus.stdout
        assert output is not None
        self.environment["DBUS_SESSION_BUS_ADDRESS"] = output.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self.end_keyring()
        if self._bus is not None:
            self._bus.terminate()
            self._bus.communicate(timeout=patience(60))

    def log_in(self) -> None:
        """Start the keyring with the user's password, as the login screen does."""
        command = ["gnome-keyring-daemon", "--unlock", "--foreground", "--components=secrets"]
        self._keyring = subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert self._keyring.stdin is not None
        self._keyring.stdin.write(b"the user's password")
        self._keyring.stdin.close()
        ask = (
            "org.freedesktop.DBus",
            "/",
            "org.freedesktop.DBus.NameHasOwner",
            f"string:{SECRETS}",
        )
        eventually(lambda: "true" in self._ask(*ask), what="the secret service is on the bus")

    #: Locks the keyring, as it does by itself after a while.
    LOCK = (
        "dbus-send",
        "--session",
        "--print-reply",
        f"--dest={SECRETS}",
        "/org/freedesktop/secrets",
        "org.freedesktop.Secret.Service.Lock",
        f"array:objpath:{COLLECTION}",
    )

    def lock(self) -> None:
        """Lock the keyring; a prompt counts as dismissed, since nothing here shows it."""
        subprocess.run(self.LOCK, env=self.environment, check=True, capture_output=True)

    @contextmanager
    def prompts(self) -> Iterator[list[str]]:
        """The prompts that clients have the keyring show; the list is complete afterwards."""
        seen: list[str] = []
        rule = f"type='method_call',interface='{PROMPT}',member='Prompt'"
        monitor = subprocess.Popen(
            ["dbus-monitor", "--session", rule],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        output: IO[str] | None = monitor.stdout
        assert output is not None
        assert output.readline(), "the bus lets nobody watch"
        try:
            yield seen
            # What comes before the last message was seen.
            command = ["dbus-send", "--session", "--type=method_call", f"--dest={SECRETS}"]
            subprocess.run(
                [*command, "/last", f"{PROMPT}.Prompt"], env=self.environment, check=True
            )
            for line in output:
                if "path=/last;" in line:
                    break
                if line.startswith("method call"):
                    seen.append(line)
        finally:
            monitor.terminate()
            monitor.communicate(timeout=patience(60))

    def end_keyring(self) -> None:
        """End the service; its keys stay on disk."""
        if self._keyring is not None:
            self._keyring.terminate()
            self._keyring.wait(timeout=patience(60))
            self._keyring = None

    def _ask(self, destination: str, path: str, method: str, *arguments: str) -> str:
        command = ["dbus-send", "--session", "--print-reply", f"--dest={destination}", path, method]
        done = subprocess.run(
            [*command, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
