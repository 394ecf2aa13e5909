"""The pools of connections, and one transaction per request as the request's role."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import psycopg
import psycopg_pool
from patience import patience

from . import schema_cache
from .messages import Request
from .rest_auth import Caller
from .rest_errors import RestError
from .schema_cache import SchemaCache
from .sql import RawJson, RawJsonDumper

Connection = psycopg.AsyncConnection[Any]


async def _prepare(connection: Connection) -> None:
    # A prepared plan would survive a change of the schema.
    connection.prepare_threshold = None
    connection.adapters.register_dumper(RawJson, RawJsonDumper)


class Database:
    """The two pools: `api` runs as the request's role, `admin` serves the services themselves."""

    def __init__(self, api_dsn: str, admin_dsn: str) -> None:
        def pool(dsn: str, most: int) -> psycopg_pool.AsyncConnectionPool[Connection]:
            return psycopg_pool.AsyncConnectionPool(
                dsn,
                min_size=2,
                max_size=most,
                open=False,
                timeout=patience(60),
                reconnect_timeout=0,
                configure=_prepare,
                kwargs={"autocommit": True},
            )

        self.api = pool(api_dsn, 20)
        self.admin = pool(admin_dsn, 20)
        self.cache: SchemaCache
        self.stopped = False
        self._noticed = False

    async def open(self) -> None:
        """Connect and read the catalog."""
        await self.api.open(wait=True, timeout=patience(120))
        await self.admin.open(wait=True, timeout=patience(120))
        await self.reload()

    async def close(self) -> None:
        """Close all connections."""
        await self.api.close()
        await self.admin.close()

    async def reload(self) -> None:
        """Read the catalog again."""
        async with self.admin.connection() as connection:
            self.cache = await schema_cache.load(connection)

    def mark_stopped(self) -> None:
        """Note that PostgreSQL was stopped: respond as PostgREST does without its database."""
        self.stopped, self._noticed = True, False

    async def mark_started(self) -> None:
        """Note that PostgreSQL runs again, and replace dead connections."""
        await self.api.check()
        await self.admin.check()
        self.stopped = False

    def refuse_when_stopped(self) -> None:
        """The errors of the real server: first 400 with empty fields, then 503 with Retry-After."""
        if not self.stopped:
            return
        if not self._noticed:
            self._noticed = True
            raise RestError(400, "", "")
        raise RestError(
            503,
            "PGRST001",
            "Database client error. Retrying the connection.",
            headers={"Retry-After": "1"},
        )

    @contextlib.asynccontextmanager
    async def transaction(
        self,
        caller: Caller,
        request: Request,
        *,
        read_only: bool,
        timeout_ms: int | None,
        timezone: str | None = None,
    ) -> AsyncIterator[psycopg.AsyncRawCursor[Any]]:
        """A transaction as the caller's role, with the settings that PostgREST makes."""
        self.refuse_when_stopped()
        settings = {
            "role": caller.role,
            "request.jwt.claims": json.dumps(caller.claims),
            "request.method": request.method,
            "request.path": request.path,
            **self.cache.role_settings.get(caller.role, {}),
        }
        if timeout_ms is not None:
            settings["statement_timeout"] = f"{timeout_ms}ms"
        if timezone is not None:
            settings["timezone"] = timezone
        calls = ", ".join(
            f"set_config(${2 * n + 1}, ${2 * n + 2}, true)" for n in range(len(settings))
        )
        values: Sequence[str] = [text for pair in settings.items() for text in pair]
        try:
            async with self.api.connection() as connection:
                cursor = psycopg.AsyncRawCursor(connection)
                await cursor.execute("BEGIN READ ONLY" if read_only else "BEGIN")
                try:
                    await cursor.execute(f"SELECT {calls}".encode(), values)
                    yield cursor
                except BaseException:
                    with contextlib.suppress(psycopg.Error):
                        await cursor.execute("ROLLBACK")
                    raise
                await cursor.execute("COMMIT")
        except psycopg_pool.PoolTimeout as error:
            raise RestError(
                504, "PGRST003", "Timed out acquiring connection from connection pool."
            ) from error
