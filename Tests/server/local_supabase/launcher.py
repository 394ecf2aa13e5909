"""Starts a server from a test or a script and stops it again. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time
from typing import IO

from patience import patience

from .control import Control


class StartFailed(RuntimeError):
    """The server did not become ready; the text is what it wrote to standard error."""


class LocalSupabase:
    """A server in a child process.

        with LocalSupabase(demo=True) as backend:
            backend.url, backend.anon_key, backend.control.drop_after("/rest/v1/activities")

    The arguments are those of __main__.py. The server ends with this process, even after SIGKILL.
    HOLDFAST_PATIENCE multiplies the time that it may take to start.
    """

    def __init__(
        self,
        *,
        demo: bool = False,
        schema: str | pathlib.Path | None = None,
        data_dir: str | pathlib.Path | None = None,
        port: int = 0,
        jwt_secret: str | None = None,
        jwt_lifetime: int = 3600,
        reuse_interval: float = 10,
        flow_state_lifetime: float = 300,
        max_rows: int = 1000,
        with_auth: bool = True,
        require_apikey: bool = True,
        python: str = sys.executable,
        start_timeout_s: float = 200,
    ) -> None:
        self._command = [
            python,
            "-m",
            "local_supabase",
            "--end-with-stdin",
            "--port",
            str(port),
            "--jwt-lifetime",
            str(jwt_lifetime),
            "--reuse-interval",
            str(reuse_interval),
            "--flow-state-lifetime",
            str(flow_state_lifetime),
            "--max-rows",
            str(max_rows),
        ]
        self._command += ["--demo"] if demo else []
        self._command += ["--schema", str(schema)] if schema else []
        self._command += ["--data-dir", str(data_dir)] if data_dir else []
        self._command += ["--jwt-secret", jwt_secret] if jwt_secret else []
        self._command += [] if with_auth else ["--no-auth"]
        self._command += [] if require_apikey else ["--no-apikey"]
        self._start_timeout_s = patience(start_timeout_s)
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self.url = ""
        self.anon_key = ""
        self.service_key = ""
        self.jwt_secret = ""
        self.dsn = ""
        self.pid = 0

    @property
    def rest_url(self) -> str:
        """Root of the data service."""
        return f"{self.url}/rest/v1"

    @property
    def auth_url(self) -> str:
        """Root of the auth service."""
        return f"{self.url}/auth/v1"

    @property
    def control(self) -> Control:
        """Client of the control endpoint."""
        return Control(self.url)

    def __enter__(self) -> LocalSupabase:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> LocalSupabase:
        """Start the process and wait until it serves; raises StartFailed."""
        folder = str(pathlib.Path(__file__).resolve().parent.parent)
        paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
        )
        try:
            ready = json.loads(self._first_line(self._process))
        except ValueError as error:
            self.stop()
            raise StartFailed(self._written_errors()) from error
        self.url, self.anon_key = ready["url"], ready["anon_key"]
        self.service_key, self.jwt_secret = ready["service_key"], ready["jwt_secret"]
        self.dsn, self.pid = ready["dsn"], ready["pid"]
        return self

    def stop(self) -> None:
        """Stop the server and its PostgreSQL. Safe to call twice."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        process.terminate()
        try:
            process.wait(patience(120))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _first_line(self, process: subprocess.Popen[bytes]) -> str:
        """Read until the ready line, the end of the process or the time-out."""
        assert process.stdout is not None
        deadline, text = time.monotonic() + self._start_timeout_s, b""
        while not text.endswith(b"\n") and (left := deadline - time.monotonic()) > 0:
            if not select.select([process.stdout], [], [], left)[0]:
                break
            chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                break
            text += chunk
        return text.decode("utf-8", "replace")

    def _written_errors(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-4000:]
