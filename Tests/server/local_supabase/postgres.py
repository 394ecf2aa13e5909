"""A private PostgreSQL server: copied from a cached template, started, watched and stopped."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from patience import patience

SUPERUSER = "postgres"
#: Results of initdb, in the build folder of the source tree: each costs two seconds.
TEMPLATES = pathlib.Path(__file__).resolve().parents[3] / "build" / "postgres-template"
#: Raise this when the arguments of initdb change.
TEMPLATE_FORMAT = 2


class PostgresFailed(RuntimeError):
    """PostgreSQL was not found, created or started; the message contains its log."""


def find_binaries() -> pathlib.Path:
    """Find the newest folder with initdb and postgres. PATH comes last: it may have wrappers."""
    folders = sorted(
        pathlib.Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda p: int(p.parent.name) if p.parent.name.isdigit() else 0,
        reverse=True,
    )
    folders += [pathlib.Path(p) for p in os.environ.get("PATH", "").split(os.pathsep) if p]
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise PostgresFailed(
        "no initdb and postgres in /usr/lib/postgresql or PATH: install PostgreSQL"
    )


def unprivileged_user() -> pwd.struct_passwd | None:
    """The user to run PostgreSQL as, because it refuses to run as root. None if we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresFailed("running as root, and there is neither a user postgres nor nobody")


def held_port() -> socket.socket:
    """Take a free loopback port, which nobody else is given until the socket is closed.

    PostgreSQL can bind the same port: it sets SO_REUSEADDR, too, and this socket does not listen.
    Meanwhile, and while PostgreSQL is stopped, connections are refused.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Postgres:
    """One running server. Use as a context manager, or call `start` and `stop`."""

    def __init__(
        self, data_dir: str | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._settings = dict(settings or {})
        self._binaries = find_binaries()
        self._user = unprivileged_user()
        self._keep = data_dir is not None
        self._given = pathlib.Path(data_dir).resolve() if data_dir else None
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._held: socket.socket | None = None
        self.folder = pathlib.Path()
        self.port = 0

    @property
    def dsn(self) -> str:
        """Connection string of the superuser."""
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/postgres"

    @property
    def api_dsn(self) -> str:
        """Connection string of the role that can only switch to the API roles."""
        return f"postgresql://authenticator@127.0.0.1:{self.port}/postgres"

    @property
    def fresh(self) -> bool:
        """Whether this start created the database, so that the schema must be loaded."""
        return not (self.folder / "loaded").exists()

    def mark_loaded(self) -> None:
        """Remember in the data folder that the schema has been loaded."""
        (self.folder / "loaded").touch()

    def __enter__(self) -> Postgres:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Copy the template, start the server and wait until it accepts connections."""
        if self._given is None:
            self.folder = pathlib.Path(tempfile.mkdtemp(prefix="local-supabase-"))
        else:
            self.folder = self._given
            self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._own(self.folder)
            data = self.folder / "data"
            if not data.exists():
                self._create(data)
            self._held = held_port()
            self.port = int(self._held.getsockname()[1])
            if sys.platform != "linux":
                self._held.close()  # elsewhere two sockets cannot share a port
            self._launch(data)
        except BaseException:
            self.stop()
            raise

    def interrupt(self) -> None:
        """Stop the server as a crash would. The data stay; `resume` starts it again."""
        self._end(signal.SIGQUIT)

    def resume(self) -> None:
        """Start the server again after `interrupt`, on the same port."""
        if self._process is None:
            self._launch(self.folder / "data")

    def stop(self) -> None:
        """Stop the server and remove its folder, unless the caller named one."""
        self._end(signal.SIGINT)
        if self._held is not None:
            self._held.close()
            self._held = None
        if not self._keep and self.folder != pathlib.Path():
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)
            try:
                self._process.wait(patience(60))
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()
            self._guard = None

    def _own(self, folder: pathlib.Path) -> None:
        if self._user is not None:
            os.chown(folder, self._user.pw_uid, self._user.pw_gid)

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": []}

    def _create(self, data: pathlib.Path) -> None:
        """Make a new database here: a copy of the cached result of initdb, if there is one."""
        version = subprocess.run(
            [self._binaries / "postgres", "--version"], check=True, capture_output=True, text=True
        ).stdout
        name = re.sub(r"[^A-Za-z0-9.]+", "-", version.strip())
        # With the user's number: another one could not read the files.
        template = TEMPLATES / f"{name}-{TEMPLATE_FORMAT}-{os.geteuid()}"
        if template.exists():
            subprocess.run(["cp", "-a", str(template), str(data)], check=True)
            return
        self._initdb(data)
        # Without a folder to write to, every start makes its own.
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            self._cache(data, template)

    def _cache(self, data: pathlib.Path, template: pathlib.Path) -> None:
        """Keep a copy as a template. Of parallel starts, the first to rename its folder wins."""
        TEMPLATES.mkdir(parents=True, exist_ok=True)
        making = pathlib.Path(tempfile.mkdtemp(prefix="making-", dir=TEMPLATES))
        try:
            copy = ["cp", "-a", str(data), str(making / "data")]
            subprocess.run(copy, check=True, capture_output=True)
            (making / "data").rename(template)
        finally:
            shutil.rmtree(making, ignore_errors=True)

    def _initdb(self, data: pathlib.Path) -> None:
        try:
            subprocess.run(
                [
                    self._binaries / "initdb",
                    "-D",
                    data,
                    "-U",
                    SUPERUSER,
                    "-A",
                    "trust",
                    "-E",
                    "UTF8",
                    "--locale=C.UTF-8",
                    "--no-sync",
                    "--no-instructions",
                ],
                check=True,
                capture_output=True,
                cwd="/",
                **self._as_user(),  # type: ignore[call-overload]
            )
        except subprocess.CalledProcessError as error:
            raise PostgresFailed(error.stderr.decode("utf-8", "replace")) from error

    def _launch(self, data: pathlib.Path) -> None:
        """Start the server and wait until it accepts connections; raises PostgresFailed."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "max_connections": "60",
            "shared_buffers": "64MB",
            "timezone": "UTC",
            "jit": "off",
            "log_min_messages": "fatal",
            "log_min_error_statement": "panic",
        }
        if not self._keep:
            # Data survive a crash of the server (`interrupt`), but not of the machine.
            settings |= {"fsync": "off", "full_page_writes": "off"}
        settings |= self._settings
        command = [str(self._binaries / "postgres"), "-D", str(data)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self._as_user(),  # type: ignore[call-overload]
            )
        self._guard = subprocess.Popen(
            [
                sys.executable,
                "-I",
                str(pathlib.Path(__file__).with_name("guard.py")),
                str(self._process.pid),
                "" if self._keep else str(self.folder),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if not self._wait_ready():
            self._end(signal.SIGINT)
            raise PostgresFailed(self._log())

    def _wait_ready(self) -> bool:
        """PostgreSQL writes `ready` into line 8 of postmaster.pid when it accepts connections."""
        assert self._process is not None
        deadline = time.monotonic() + patience(120)
        status = self.folder / "data" / "postmaster.pid"
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                lines = status.read_text("utf-8").split("\n")
                if len(lines) > 7 and lines[0] == str(self._process.pid) and "ready" in lines[7]:
                    return True
            time.sleep(0.02)
        return False

    def _log(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "log").read_text("utf-8", "replace")[-2000:]
        return "PostgreSQL did not start"
