"""Sessions and the rotation of their refresh tokens (GoTrue's first generation, 12 characters).

When a token is used again, supabase/auth v2.196.0 applies these rules, measured in
Tests/backend/conformance/gotrue/README.md:

- The parent of the newest token is always accepted and returns the newest token.
- Any other used token is accepted within the reuse interval after its revocation.
- After that interval, its use revokes all tokens of the session.
"""

from __future__ import annotations

import base64
import datetime
import json
import secrets
import string
import time
import uuid
from typing import Any

import psycopg

from . import auth_users, jwt
from .auth_errors import AuthError
from .auth_users import Row, fetch
from .config import Config
from .database import Connection

_ALPHABET = string.ascii_lowercase + string.digits
TOKEN_LENGTH = 12


def now() -> datetime.datetime:
    """The current time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def new_token() -> str:
    """Make a random refresh token."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(TOKEN_LENGTH))


async def start(connection: Connection, user: Row, method: str, provider: str | None = None) -> Row:
    """Create a session and its first refresh token. Returns the session with `refresh_token`."""
    if auth_users.is_banned(user):
        raise AuthError(400, "user_banned", "User is banned")
    proof: Row = {"method": method, "timestamp": int(time.time())}
    if provider is not None:
        proof["provider"] = provider
    session = await fetch(
        connection,
        "insert into auth.sessions (user_id, amr) values (%s, %s) returning *",
        user["id"],
        json.dumps([proof]),
    )
    assert session is not None
    await connection.execute(
        "update auth.users set last_sign_in_at = clock_timestamp() where id = %s", (user["id"],)
    )
    return {**session, "refresh_token": await _add_token(connection, session, None)}


async def refresh(connection: Connection, token: str, config: Config) -> tuple[Row, Row]:
    """Refresh a session. Returns the session, with the next `refresh_token`, and its user."""
    check_shape(token)
    await connection.execute("set local lock_timeout = '5s'")
    found = await fetch(connection, "select * from auth.refresh_tokens where token = %s", token)
    if found is None:
        raise _not_found()
    if found["session_id"] is None:
        raise AuthError(400, "session_not_found", "Invalid Refresh Token: No Valid Session Found")
    try:
        # Refreshes of one session run one after the other. GoTrue stops waiting after five seconds.
        session = await fetch(
            connection, "select * from auth.sessions where id = %s for update", found["session_id"]
        )
    except psycopg.errors.LockNotAvailable as error:
        raise AuthError(
            409,
            "conflict",
            "Too many concurrent token refresh requests on the same session or refresh token",
        ) from error
    found = await fetch(connection, "select * from auth.refresh_tokens where token = %s", token)
    if session is None or found is None:
        raise _not_found()
    user = await auth_users.by_id(connection, session["user_id"])
    if user is None or user["deleted_at"] is not None:
        raise _not_found()
    if auth_users.is_banned(user):
        raise AuthError(400, "user_banned", "Invalid Refresh Token: User Banned")
    await _check_limits(connection, session, config)
    following = await _rotate(connection, session, found, config)
    await connection.execute(
        "update auth.sessions set refreshed_at = %s, updated_at = %s where id = %s",
        (now(), now(), session["id"]),
    )
    return {**session, "refresh_token": following}, user


async def _rotate(connection: Connection, session: Row, used: Row, config: Config) -> str:
    """Return the token after `used`, by the rules of reuse above."""
    if used["revoked"]:
        newest = await fetch(
            connection,
            """select * from auth.refresh_tokens where session_id = %s and not revoked
               order by id desc limit 1""",
            session["id"],
        )
        if newest is not None and newest["parent"] == used["token"]:
            return str(newest["token"])
        if now() > used["updated_at"] + datetime.timedelta(seconds=config.reuse_interval):
            raise FamilyRevoked(session["id"])
    await connection.execute(
        "update auth.refresh_tokens set revoked = true, updated_at = %s where id = %s and not revoked",
        (now(), used["id"]),
    )
    return await _add_token(connection, session, used["token"])


class FamilyRevoked(AuthError):
    """A token was used again too late. The caller commits `revoke_family`, then fails."""

    def __init__(self, session_id: uuid.UUID) -> None:
        super().__init__(400, "refresh_token_already_used", "Invalid Refresh Token: Already Used")
        self.session_id = session_id


async def revoke_family(connection: Connection, session_id: uuid.UUID) -> None:
    """Revoke all tokens of a session and set their `updated_at`, as the real server does."""
    await connection.execute(
        "update auth.refresh_tokens set revoked = true, updated_at = %s where session_id = %s",
        (now(), session_id),
    )


async def _add_token(connection: Connection, session: Row, parent: str | None) -> str:
    token = new_token()
    await connection.execute(
        """insert into auth.refresh_tokens (token, user_id, session_id, parent, created_at, updated_at)
           values (%s, %s, %s, %s, %s, %s)""",
        (token, session["user_id"], session["id"], parent, now(), now()),
    )
    return token


async def _check_limits(connection: Connection, session: Row, config: Config) -> None:
    """Check the limits of a session. Like GoTrue, only a refresh checks them."""
    moment, prefix = now(), "Invalid Refresh Token: Session Expired"
    ended = session["not_after"] is not None and moment > session["not_after"]
    if config.session_timebox is not None:
        ended |= moment > session["created_at"] + datetime.timedelta(seconds=config.session_timebox)
    if ended:
        raise AuthError(400, "session_expired", prefix)
    if config.session_inactivity is not None:
        last = session["refreshed_at"] or session["created_at"]
        if moment > last + datetime.timedelta(seconds=config.session_inactivity):
            raise AuthError(400, "session_expired", f"{prefix} (Inactivity)")
    if config.single_session:
        newer = await fetch(
            connection,
            "select 1 from auth.sessions where user_id = %s and created_at > %s limit 1",
            session["user_id"],
            session["created_at"],
        )
        if newer is not None:
            raise AuthError(400, "session_expired", f"{prefix} (Revoked by Newer Login)")


def check_shape(token: str) -> None:
    """Check the format: 12 characters, or a second-generation token (never issued here)."""
    if len(token) == TOKEN_LENGTH and all(c in _ALPHABET for c in token):
        return
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except ValueError:
        raw = b""
    if len(token) < TOKEN_LENGTH or not 38 <= len(raw) <= 47:
        raise AuthError(400, "validation_failed", "Refresh Token is not valid")
    raise _not_found()


def _not_found() -> AuthError:
    return AuthError(
        400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found"
    )


async def body(
    connection: Connection, session: Row, user: Row, config: Config, issuer: str, **extra: Any
) -> Row:
    """Build the response of a successful grant."""
    moment = int(time.time())
    claims = {
        "iss": issuer,
        "sub": str(user["id"]),
        "aud": user["aud"],
        "exp": moment + config.jwt_lifetime,
        "iat": moment,
        "email": user["email"] or "",
        "phone": user["phone"] or "",
        "app_metadata": user["raw_app_meta_data"],
        "user_metadata": user["raw_user_meta_data"],
        "role": user["role"],
        "aal": session["aal"],
        "amr": session["amr"],
        "session_id": str(session["id"]),
        "is_anonymous": user["is_anonymous"],
    }
    return {
        "access_token": jwt.sign(claims, config.jwt_secret),
        "token_type": "bearer",
        "expires_in": config.jwt_lifetime,
        "expires_at": moment + config.jwt_lifetime,
        "refresh_token": session["refresh_token"],
        "user": await auth_users.represent(connection, user),
        **extra,
    }
