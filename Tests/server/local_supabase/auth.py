"""The auth service at /auth/v1: routes and grants."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import psycopg

from . import auth_errors, auth_flows, auth_sessions, auth_users, jwt, passwords
from .auth_errors import AuthError, OAuthError
from .auth_users import Row, fetch
from .config import Config
from .database import Connection, Database
from .messages import Reply, Request

_JSON = {"Content-Type": "application/json"}


class Auth:
    """The auth service, with its state in memory: the rate limit and pending provider refusals."""

    def __init__(self, config: Config, database: Database) -> None:
        self.config = config
        self.database = database
        #: Error parameters for the next calls of `/authorize`, and how many calls get them.
        self.refusals: list[dict[str, str]] = []
        self._tokens = 0.0
        self._filled_at: float | None = None

    async def handle(self, request: Request, path: str) -> Reply:
        """Answer one request; `path` is what follows /auth/v1."""
        try:
            if self.database.stopped and path != "/health":
                raise AuthError(500, "unexpected_failure", "Database error")
            return await self._route(request, path)
        except (AuthError, OAuthError) as error:
            return auth_errors.reply(request, error)
        except psycopg.Error:
            failure = AuthError(500, "unexpected_failure", "Database error")
            return auth_errors.reply(request, failure)

    async def _route(self, request: Request, path: str) -> Reply:
        routes = {
            ("POST", "/token"): self._token,
            ("POST", "/signup"): self._signup,
            ("GET", "/user"): self._get_user,
            ("PUT", "/user"): self._put_user,
            ("POST", "/logout"): self._logout,
            ("GET", "/authorize"): self._authorize,
            ("GET", "/verify"): self._verify,
            ("GET", "/health"): self._health,
            ("GET", "/settings"): self._settings,
            ("GET", "/.well-known/jwks.json"): self._keys,
        }
        handler = routes.get((request.method, path))
        if handler is not None:
            return await handler(request)
        if any(known == path for _, known in routes):
            return Reply(405)
        return Reply(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})

    @contextlib.asynccontextmanager
    async def _transaction(self) -> AsyncIterator[Connection]:
        async with self.database.admin.connection() as connection, connection.transaction():
            yield connection

    async def _signed_in(
        self, connection: Connection, request: Request, pair: tuple[Row, Row], **extra: Any
    ) -> Reply:
        session, user = pair
        fresh = await auth_users.by_id(connection, user["id"])
        issuer = f"{request.base_url}/auth/v1"
        answer = await auth_sessions.body(
            connection, session, fresh or user, self.config, issuer, **extra
        )
        return Reply(200, json.dumps(answer).encode(), dict(_JSON))

    # Grants ---------------------------------------------------------------------------------------

    async def _token(self, request: Request) -> Reply:
        self._take_from_bucket()
        grant = request.parameters().get("grant_type", "")
        if grant == "password":
            return await self._password(request)
        if grant == "refresh_token":
            return await self._refresh(request)
        if grant == "pkce":
            sent = read_object(request, {"auth_code": str, "code_verifier": str})
            async with self._transaction() as connection:
                pair = await auth_flows.exchange(connection, sent, self.config)
                return await self._signed_in(connection, request, pair)
        if grant == "id_token":
            sent = read_object(request, {"id_token": str, "provider": str, "nonce": str})
            async with self._transaction() as connection:
                pair = await auth_flows.accept_identity(connection, sent)
                return await self._signed_in(connection, request, pair)
        raise AuthError(400, "invalid_credentials", "unsupported_grant_type")

    async def _password(self, request: Request) -> Reply:
        sent = read_object(request, {"email": str, "phone": str, "password": str})
        async with self._transaction() as connection:
            user = await auth_users.by_email(connection, sent.get("email") or "")
            if user is None or not passwords.matches(
                sent.get("password") or "", user["encrypted_password"]
            ):
                raise AuthError(400, "invalid_credentials", "Invalid login credentials")
            session = await auth_sessions.start(connection, user, "password")
            return await self._signed_in(connection, request, (session, user), weak_password=None)

    async def _refresh(self, request: Request) -> Reply:
        sent = read_object(request, {"refresh_token": str})
        token = sent.get("refresh_token") or ""
        try:
            async with self._transaction() as connection:
                pair = await auth_sessions.refresh(connection, token, self.config)
                return await self._signed_in(connection, request, pair)
        except auth_sessions.FamilyRevoked as error:
            async with self._transaction() as connection:
                await auth_sessions.revoke_family(connection, error.session_id)
            raise

    async def _signup(self, request: Request) -> Reply:
        sent = read_object(request, {"email": str, "password": str, "data": dict})
        email, password = sent.get("email") or "", sent.get("password") or ""
        if "@" not in email:
            raise AuthError(
                400, "validation_failed", "Unable to validate email address: invalid format"
            )
        if len(password) < 6:
            raise AuthError(
                422,
                "weak_password",
                "Password should be at least 6 characters.",
                weak_password={"reasons": ["length"]},
            )
        async with self._transaction() as connection:
            if await auth_users.by_email(connection, email) is not None:
                raise AuthError(422, "user_already_exists", "User already registered")
            user = await auth_users.create(connection, email, password, sent.get("data"))
            session = await auth_sessions.start(connection, user, "password")
            return await self._signed_in(connection, request, (session, user))

    def _take_from_bucket(self) -> None:
        """A token bucket shared by all grants. Like GoTrue, its 429 has no Retry-After."""
        burst = self.config.rate_limit_burst
        if burst is None:
            self._filled_at = None
            return
        moment = time.monotonic()
        if self._filled_at is None:
            self._tokens, self._filled_at = float(burst), moment
        gained = (moment - self._filled_at) / self.config.rate_limit_refill_s
        self._tokens, self._filled_at = min(float(burst), self._tokens + gained), moment
        if self._tokens < 1:
            raise AuthError(429, "over_request_rate_limit", "Request rate limit reached")
        self._tokens -= 1

    # With an access token ------------------------------------------------------------------------

    async def _bearer(self, connection: Connection, request: Request) -> tuple[Row, Row]:
        """Return user and session of the access token. The order of checks is GoTrue's."""
        scheme, _, token = (request.header("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise AuthError(401, "no_authorization", "This endpoint requires a valid Bearer token")
        try:
            claims = jwt.verify(token, self.config.jwt_secret)
            expired = claims.get("exp", 0) <= time.time()
        except (jwt.BadToken, TypeError) as error:
            raise AuthError(
                403, "bad_jwt", "invalid JWT: unable to parse or verify signature"
            ) from error
        if expired:
            raise AuthError(403, "bad_jwt", "invalid JWT: token is expired")
        try:
            user_id = uuid.UUID(str(claims.get("sub")))
            session_id = uuid.UUID(str(claims.get("session_id")))
        except ValueError as error:
            raise AuthError(400, "bad_jwt", "invalid claim: sub claim must be a UUID") from error
        user = await auth_users.by_id(connection, user_id)
        if user is None or user["deleted_at"] is not None:
            raise AuthError(403, "user_not_found", "User from sub claim in JWT does not exist")
        if auth_users.is_banned(user):
            raise AuthError(403, "user_banned", "User is banned")
        session = await fetch(
            connection,
            "select * from auth.sessions where id = %s and user_id = %s",
            session_id,
            user_id,
        )
        if session is None:
            raise AuthError(
                403, "session_not_found", "Session from session_id claim in JWT does not exist"
            )
        return user, session

    async def _get_user(self, request: Request) -> Reply:
        async with self._transaction() as connection:
            user, _ = await self._bearer(connection, request)
            shown = await auth_users.represent(connection, user)
        return Reply(200, json.dumps(shown).encode(), dict(_JSON))

    async def _put_user(self, request: Request) -> Reply:
        sent = read_object(request, {"data": dict, "password": str})
        async with self._transaction() as connection:
            user, _ = await self._bearer(connection, request)
            metadata = {**user["raw_user_meta_data"], **(sent.get("data") or {})}
            password = sent.get("password")
            changed = await fetch(
                connection,
                """update auth.users set raw_user_meta_data = %s, updated_at = clock_timestamp(),
                   encrypted_password = coalesce(%s, encrypted_password) where id = %s returning *""",
                json.dumps(metadata),
                passwords.digest(password) if password else None,
                user["id"],
            )
            assert changed is not None
            shown = await auth_users.represent(connection, changed)
        return Reply(200, json.dumps(shown).encode(), dict(_JSON))

    async def _logout(self, request: Request) -> Reply:
        scope = request.parameters().get("scope", "global") or "global"
        conditions = {
            "global": "user_id = %s",
            "local": "user_id = %s and id = %s",
            "others": "user_id = %s and id <> %s",
        }
        async with self._transaction() as connection:
            user, session = await self._bearer(connection, request)
            if scope not in conditions:
                raise AuthError(400, "validation_failed", f"Unsupported logout scope '{scope}'")
            values = (user["id"],) if scope == "global" else (user["id"], session["id"])
            await connection.execute(f"delete from auth.sessions where {conditions[scope]}", values)
        return Reply(204)

    # Without an access token ---------------------------------------------------------------------

    async def _authorize(self, request: Request) -> Reply:
        refusal = self.refusals.pop(0) if self.refusals else None
        return await auth_flows.authorize(request, self.config, self.database, refusal)

    async def _verify(self, request: Request) -> Reply:
        """A link of a mail. No mail is sent here, so every link has expired."""
        asked = request.parameters()
        if not asked.get("token") or not asked.get("type"):
            raise AuthError(400, "validation_failed", "Verify requires a token and a type")
        return auth_flows.expired_link(asked.get("redirect_to", ""), self.config)

    async def _health(self, _: Request) -> Reply:
        shown = {"version": "local", "name": "GoTrue", "description": "Local stand-in for GoTrue"}
        return Reply(200, json.dumps(shown).encode(), dict(_JSON))

    async def _settings(self, _: Request) -> Reply:
        shown = {
            "external": {"bankid": True, "vipps": True, "email": True, "phone": False},
            "disable_signup": False,
            "mailer_autoconfirm": True,
        }
        return Reply(200, json.dumps(shown).encode(), dict(_JSON))

    async def _keys(self, _: Request) -> Reply:
        return Reply(200, b'{"keys":[]}', dict(_JSON))


def read_object(request: Request, types: dict[str, type]) -> dict[str, Any]:
    """Read a JSON object, whose named fields have these types or are null. Raises bad_json."""
    try:
        sent = json.loads(request.body)
    except ValueError as error:
        raise AuthError(400, "bad_json", "Could not parse request body as JSON") from error
    wrong = not isinstance(sent, dict) or any(
        sent.get(name) is not None and not isinstance(sent[name], kind)
        for name, kind in types.items()
    )
    if wrong:
        raise AuthError(400, "bad_json", "Could not parse request body as JSON")
    return dict(sent)
