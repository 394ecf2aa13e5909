"""The server process: starts PostgreSQL, loads the schema, serves, and removes everything."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from . import control_api, jwt
from .accounts import Accounts
from .app import TRANSPORT, App
from .auth import Auth
from .auth_mirror import MirroredAuth
from .config import Config
from .database import Database
from .faults import Faults
from .postgres import Postgres
from .request_log import RequestLog
from .server_state import State

HERE = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = HERE.parents[1] / "examples" / "backend" / "schema.sql"


#: A header that offers another protocol, up to the next header.
UPGRADE = re.compile(rb"\r\nupgrade:[^\r\n]*", re.IGNORECASE)
#: A longer head is left to the parser, which refuses it.
HEAD_LIMIT = 65536


class Protocol(HttpToolsProtocol):
    """HTTP/1.1 that declines every offer of another protocol.

    The parser takes no body from a request with an Upgrade header, such as the JDK's HttpClient
    sends ("h2c"). A server may ignore the header (RFC 9110, 7.8), so it does not reach the parser.
    """

    _head = b""
    _reads_head = True

    def data_received(self, data: bytes) -> None:
        """Pass a head on when it is complete, without Upgrade; a body as it comes."""
        if self._reads_head:
            self._head += data
            end = self._head.find(b"\r\n\r\n")
            if end < 0 and len(self._head) < HEAD_LIMIT:
                return
            end = max(end, 0)
            data = UPGRADE.sub(b"", self._head[:end]) + self._head[end:]
            self._head = b""
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Give the application the transport, so that it can drop the connection."""
        super().on_message_begin()
        self._reads_head = False
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]

    def on_message_complete(self) -> None:
        """The next bytes are the head of another request."""
        super().on_message_complete()
        self._reads_head = True


class Server(uvicorn.Server):
    """Does not handle signals: uvicorn would raise them again before PostgreSQL is stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signal."""
        yield

    def stop(self) -> None:
        """End after a short wait for running requests."""
        self.should_exit = True


def api_key(role: str, secret: str) -> str:
    """Make a legacy API key: a token with a role, valid for ten years."""
    moment = int(time.time())
    return jwt.sign(
        {"iss": "supabase", "role": role, "iat": moment, "exp": moment + 10 * 365 * 86400}, secret
    )


async def serve(
    *,
    port: int,
    schema: pathlib.Path,
    data_dir: str | None,
    config: Config,
    with_auth: bool,
    demo: bool,
    end_with_stdin: bool,
    exports: bool,
) -> None:
    """Serve until SIGTERM, SIGINT or, with `end_with_stdin`, the end of standard input."""
    with Postgres(data_dir) as postgres:
        if postgres.fresh:
            _load(postgres, schema, with_auth)
        database = Database(postgres.api_dsn, postgres.dsn)
        await database.open()
        try:
            kept = pathlib.Path(data_dir) / "auth" if data_dir else None
            people = MirroredAuth(Auth(Accounts(), config), database, kept)
            if demo and postgres.fresh:
                await control_api.seed_demo(people)
            postgres.mark_loaded()
            state = State(
                config,
                postgres,
                database,
                people,
                Faults(),
                RequestLog(),
                with_auth,
            )
            listening = asyncio.create_task(_listen(postgres, database))
            await _run(state, port, end_with_stdin, _exports if exports else json.dumps)
            listening.cancel()
        finally:
            with contextlib.suppress(Exception):
                await database.close()


def _load(postgres: Postgres, schema: pathlib.Path, with_auth: bool) -> None:
    files = [HERE / "local_auth.sql"] if with_auth else []
    with psycopg.connect(postgres.dsn, autocommit=True) as connection:
        for file in files:
            connection.execute(file.read_bytes())
        if with_auth:
            # In a Supabase project the role that loads the schema is not a superuser either.
            connection.execute("set role project_owner")
        connection.execute(schema.read_bytes())


async def _listen(postgres: Postgres, database: Database) -> None:
    """Reload the catalog on NOTIFY pgrst, as PostgREST does."""
    while True:
        with contextlib.suppress(psycopg.Error):
            async with await psycopg.AsyncConnection.connect(
                postgres.dsn, autocommit=True
            ) as connection:
                await connection.execute("listen pgrst")
                async for _ in connection.notifies():
                    await database.reload()
        await asyncio.sleep(0.5)


def _exports(ready: dict[str, Any]) -> str:
    """What a person does with the backend."""
    return f"""export HOLDFAST_URL={ready["url"]} HOLDFAST_KEY={ready["anon_key"]}

# Copy the line above into another shell. People: solo@example.org, mentor@example.org (two organisations),
# coordinator@example.org, admin@example.org, nobody@example.org; password holdfast-demo.
# The database, for tables of your own: psql "{ready["dsn"]}"; then: notify pgrst, 'reload schema';
# Ctrl-C ends it, and removes its data."""


async def _run(
    state: State, port: int, end_with_stdin: bool, text: Callable[[dict[str, Any]], str]
) -> None:
    # asyncio sets TCP_NODELAY only if the socket's protocol is TCP.
    listener = socket.socket(proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    settings = uvicorn.Config(
        App(state),
        http=Protocol,
        ws="none",
        lifespan="off",
        log_level="error",
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
    )
    server = Server(settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.stop)
    if end_with_stdin:
        threading.Thread(target=_watch_stdin, args=(server,), daemon=True).start()
    running = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started and not running.done():
        await asyncio.sleep(0.005)
    secret = state.config.jwt_secret
    ready: dict[str, Any] = {
        "url": f"http://127.0.0.1:{listener.getsockname()[1]}",
        "anon_key": api_key("anon", secret),
        "service_key": api_key("service_role", secret),
        "jwt_secret": secret,
        "dsn": state.postgres.dsn,
        "pid": os.getpid(),
    }
    print(text(ready), flush=True)
    await running


def _watch_stdin(server: Server) -> None:
    """Stop when standard input ends: its other end closes when the launcher ends."""
    while os.read(0, 4096):
        pass
    server.stop()
