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
import string
from dataclasses import dataclass, field
from typing import Any

from . import jwt
from .accounts import Accounts, User
from .auth_errors import AuthError
from .config import Config

_ALPHABET = string.ascii_lowercase + string.digits
TOKEN_LENGTH = 12
Moment = datetime.datetime


@dataclass
class Token:
    """A refresh token, used or not."""

    text: str
    parent: str | None
    updated: Moment
    revoked: bool = False


@dataclass
class Session:
    """A session and its family of tokens, oldest first."""

    id: str
    user: str
    created: Moment
    amr: list[dict[str, Any]]
    refreshed: Moment | None = None
    not_after: Moment | None = None
    tokens: list[Token] = field(default_factory=list)

    def public(self) -> dict[str, Any]:
        """The session without its tokens."""
        return {
            "id": self.id, "user_id": self.user, "tokens": len(self.tokens),
            "created_at": self.created, "refreshed_at": self.refreshed,
        }  # fmt: skip


class Sessions:
    """All sessions of the server."""

    def __init__(self, accounts: Accounts, config: Config) -> None:
        self.accounts = accounts
        self.config = config
        self.all: dict[str, Session] = {}
        #: Refresh token -> session, also of deleted sessions: the invariants look them up.
        self.of_token: dict[str, str] = {}

    def _now(self) -> Moment:
        return self.accounts.now()

    def is_banned(self, user: User) -> bool:
        """Whether the user is banned now."""
        until: Moment | None = user["banned_until"]
        return until is not None and until > self._now()

    def start(self, user: User, method: str, provider: str | None = None) -> Session:
        """Create a session with its first token."""
        if self.is_banned(user):
            raise AuthError(400, "user_banned", "User is banned")
        proof: dict[str, Any] = {"method": method, "timestamp": int(self._now().timestamp())}
        if provider is not None:
            proof["provider"] = provider
        session = Session(self.accounts.new_id(), user["id"], self._now(), [proof])
        self.all[session.id] = session
        self._add_token(session, None)
        return session

    def _add_token(self, session: Session, parent: str | None) -> str:
        text = "".join(self.accounts.chance.choice(_ALPHABET) for _ in range(TOKEN_LENGTH))
        session.tokens.append(Token(text, parent, self._now()))
        self.of_token[text] = session.id
        return text

    def refresh(self, text: str) -> tuple[Session, str]:
        """Rotate a token; return its session and the next token."""
        _check_shape(text)
        session = self.all.get(self.of_token.get(text, ""))
        if session is None:
            raise _not_found()
        if self.is_banned(self.accounts.users[session.user]):
            raise AuthError(400, "user_banned", "Invalid Refresh Token: User Banned")
        self._check_limits(session)
        following = self._rotate(session, next(t for t in session.tokens if t.text == text))
        session.refreshed = self._now()
        return session, following

    def _rotate(self, session: Session, used: Token) -> str:
        if used.revoked:
            newest = next((t for t in reversed(session.tokens) if not t.revoked), None)
            if newest is not None and newest.parent == used.text:
                return newest.text
            interval = datetime.timedelta(seconds=self.config.reuse_interval)
            if self._now() > used.updated + interval:
                for token in session.tokens:
                    token.revoked, token.updated = True, self._now()
                message = "Invalid Refresh Token: Already Used"
                raise AuthError(400, "refresh_token_already_used", message)
        else:
            used.revoked, used.updated = True, self._now()
        return self._add_token(session, used.text)

    def _check_limits(self, session: Session) -> None:
        """Check the limits of a session. Like GoTrue, only a refresh checks them."""
        now, prefix = self._now(), "Invalid Refresh Token: Session Expired"
        ended = session.not_after is not None and now > session.not_after
        if self.config.session_timebox is not None:
            ended |= now > session.created + datetime.timedelta(seconds=self.config.session_timebox)
        if ended:
            raise AuthError(400, "session_expired", prefix)
        if self.config.session_inactivity is not None:
            idle = datetime.timedelta(seconds=self.config.session_inactivity)
            if now > (session.refreshed or session.created) + idle:
                raise AuthError(400, "session_expired", f"{prefix} (Inactivity)")
        if self.config.single_session and any(
            other.user == session.user and other.created > session.created
            for other in self.all.values()
        ):
            raise AuthError(400, "session_expired", f"{prefix} (Revoked by Newer Login)")

    def of(self, user: str) -> list[Session]:
        """The user's sessions, oldest first."""
        return [session for session in self.all.values() if session.user == user]

    def end(self, user: str, *, but: str | None = None, only: str | None = None) -> None:
        """Delete the user's sessions: all, all but one, or one alone."""
        for session in self.of(user):
            if session.id != but and (only is None or session.id == only):
                del self.all[session.id]

    def body(
        self, session: Session, token: str, shown: dict[str, Any], issuer: str
    ) -> dict[str, Any]:
        """Return the answer of every successful grant."""
        user = self.accounts.users[session.user]
        moment = int(self._now().timestamp())
        claims = {
            "iss": issuer, "sub": user["id"], "aud": "authenticated",
            "exp": moment + self.config.jwt_lifetime, "iat": moment, "email": user["email"],
            "phone": "", "app_metadata": shown["app_metadata"],
            "user_metadata": shown["user_metadata"], "role": "authenticated", "aal": "aal1",
            "amr": session.amr, "session_id": session.id, "is_anonymous": False,
        }  # fmt: skip
        return {
            "access_token": jwt.sign(claims, self.config.jwt_secret),
            "token_type": "bearer",
            "expires_in": self.config.jwt_lifetime,
            "expires_at": moment + self.config.jwt_lifetime,
            "refresh_token": token,
            "user": shown,
        }


def _check_shape(token: str) -> None:
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
    message = "Invalid Refresh Token: Refresh Token Not Found"
    return AuthError(400, "refresh_token_not_found", message)
