"""The database role of a request to the data service, from its Authorization header."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from . import jwt
from .rest_errors import RestError

#: PostgREST's tolerance for the time claims of a token, in seconds.
CLOCK_SKEW_S = 30


@dataclasses.dataclass(frozen=True)
class Caller:
    """The role, and the claims that row-level security sees."""

    role: str
    claims: dict[str, Any]

    @property
    def authenticated(self) -> bool:
        """Whether the caller has a token with a role other than the anonymous one."""
        return self.role != "anon"


def identify(authorization: str | None, secret: str, now: float | None = None) -> Caller:
    """Read the Authorization header. Raises RestError 401 in the words of PostgREST 14.

    `now` is in seconds since 1970; without it, the machine's clock.
    """
    scheme, _, token = (authorization or "").partition(" ")
    if scheme.lower() != "bearer":
        return Caller("anon", {"role": "anon"})
    token = token.strip()
    if not token:
        raise _refuse("PGRST301", "Empty JWT is sent in Authorization header")
    try:
        claims = jwt.verify(token, secret)
    except jwt.BadToken as error:
        raise _unreadable(error) from error
    _check_times(claims, time.time() if now is None else now)
    role = claims.get("role")
    return Caller(role if isinstance(role, str) and role else "anon", claims)


def _unreadable(error: jwt.BadToken) -> RestError:
    if error.reason == jwt.PARTS:
        return _refuse("PGRST301", f"Expected 3 parts in JWT; got {error.parts}")
    if error.reason == jwt.GARBAGE:
        return _refuse("PGRST301", "JWT cryptographic operation failed")
    if error.reason == jwt.UNSIGNED:
        return _refuse(
            "PGRST301",
            "Wrong or unsupported encoding algorithm",
            "JWT is unsecured but expected 'alg' was not 'none'",
        )
    return _refuse(
        "PGRST301",
        "No suitable key or wrong key type",
        "None of the keys was able to decode the JWT",
    )


def _check_times(claims: dict[str, Any], now: float) -> None:
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise _refuse("PGRST303", f"The JWT '{name}' claim must be a number")
    if "exp" in claims and now - CLOCK_SKEW_S > claims["exp"]:
        raise _refuse("PGRST303", "JWT expired")
    if "nbf" in claims and now + CLOCK_SKEW_S < claims["nbf"]:
        raise _refuse("PGRST303", "JWT not yet valid")
    if "iat" in claims and now + CLOCK_SKEW_S < claims["iat"]:
        raise _refuse("PGRST303", "JWT issued at future")


def _refuse(code: str, message: str, details: str | None = None) -> RestError:
    challenge = f'Bearer error="invalid_token", error_description="{message}"'
    return RestError(401, code, message, details, headers={"WWW-Authenticate": challenge})
