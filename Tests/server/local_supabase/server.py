"""Life of the server process: start PostgreSQL, load the schema, serve, and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pathlib
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import psycopg
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from . import control_api, jwt
from .app import TRANSPORT, App
from .auth import Auth
from .config import Config
from .database import Database
from .faults import Faults
from .postgres import Postgres
from .request_log import RequestLog
from .server_state import State

HERE = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = HERE.parents[1] / "examples" / "backend" / "schema.sql"


class Protocol(HttpToolsProtocol):
    """Lets the application reach the connection, so that it can drop it."""

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self.scope[TRANSPORT] = self.transport  # type: ignore[literal-required]


class Server(uvicorn.Server):
    """Leaves signals alone: uvicorn would raise them again when done, before PostgreSQL is stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing to capture."""
        yield

    def stop(self) -> None:
        """End as soon as running requests have been given a moment."""
        self.should_exit = True


def api_key(role: str, secret: str) -> str:
    """A key of the old kind: a token that names only a role and lives ten years."""
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
) -> None:
    """Serve until SIGTERM, SIGINT or, if so wished, the end of standard input."""
    with Postgres(data_dir) as postgres:
        if postgres.fresh:
            _load(postgres, schema, with_auth)
        database = Database(postgres.api_dsn, postgres.dsn)
        await database.open()
        try:
            if demo and postgres.fresh:
                async with database.admin.connection() as connection, connection.transaction():
                    await control_api.seed_demo(connection)
            postgres.mark_loaded()
            state = State(
                config,
                postgres,
                database,
                Auth(config, database),
                Faults(),
                RequestLog(),
                with_auth,
            )
            listening = asyncio.create_task(_listen(postgres, database))
            await _run(state, port, end_with_stdin)
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
            # As in a Supabase project: whoever loads the schema there is no superuser.
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


async def _run(state: State, port: int, end_with_stdin: bool) -> None:
    # asyncio switches Nagle's delay off only for sockets that say they are TCP.
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
    print(json.dumps(ready), flush=True)
    await running


def _watch_stdin(server: Server) -> None:
    """The launcher holds the other end of standard input: its end means that the launcher is gone."""
    while os.read(0, 4096):
        pass
    server.stop()
