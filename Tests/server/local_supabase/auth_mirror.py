"""The auth service beside PostgreSQL, whose rows refer to users: the table auth.users has each one."""

from __future__ import annotations

import asyncio
import pathlib
import pickle

import psycopg

from . import auth_errors
from .accounts import User
from .auth import Auth
from .auth_errors import AuthError
from .database import Database
from .messages import Reply, Request


class MirroredAuth:
    """Answers like `auth`, and stores new users in the database before the response."""

    def __init__(self, auth: Auth, database: Database, kept: pathlib.Path | None) -> None:
        self.auth = auth
        self.database = database
        #: The file that keeps users, sessions and pending sign-ins; None: they end with the server.
        self.kept = kept
        self._stored: set[str] = set()
        #: Two requests store no user twice.
        self._turn = asyncio.Lock()
        if kept is not None and kept.exists():
            state = pickle.loads(kept.read_bytes())
            auth.accounts.users, auth.sessions.all, auth.sessions.of_token, auth.flows = state
            self._stored = set(auth.accounts.users)

    async def handle(self, request: Request, path: str) -> Reply:
        """Answer one request; `path` is what follows /auth/v1."""
        if path == "/health":
            return self.auth.handle(request, path)
        failure = AuthError(500, "unexpected_failure", "Database error")
        if self.database.stopped:
            return auth_errors.reply(request, failure)
        reply = self.auth.handle(request, path)
        try:
            await self.store()
        except psycopg.Error:
            return auth_errors.reply(request, failure)
        return reply

    async def store(self) -> None:
        """Store the new users in the database, and everything in the file."""
        users = self.auth.accounts.users
        async with self._turn:
            new = [users[each] for each in users.keys() - self._stored]
            if new:
                await self._insert(new)
                self._stored |= {user["id"] for user in new}
        if self.kept is not None:
            sessions = self.auth.sessions
            state = (users, sessions.all, sessions.of_token, self.auth.flows)
            self.kept.write_bytes(pickle.dumps(state))

    async def _insert(self, users: list[User]) -> None:
        async with self.database.admin.connection() as connection, connection.transaction():
            for user in users:
                statement = "insert into auth.users (id, email) values (%s, %s)"
                await connection.execute(statement, (user["id"], user["email"]))

    async def remove(self, user: str) -> None:
        """Delete a user, with the rows that refer to them."""
        self.auth.remove(self.auth.accounts.users[user])
        async with self.database.admin.connection() as connection:
            await connection.execute("delete from auth.users where id = %s", (user,))
        self._stored.discard(user)
        await self.store()
