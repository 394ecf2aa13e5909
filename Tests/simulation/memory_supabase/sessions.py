"""Users, sessions and the rotation of refresh tokens, by the rules measured on GoTrue.

The parent of the newest token is always forgiven and gets that token again; any other used token is
good for the reuse interval after its own revocation; later it ends the whole family.
"""

from __future__ import annotations

import datetime
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from local_supabase import jwt
from local_supabase.auth_errors import AuthError
from local_supabase.auth_sessions import TOKEN_LENGTH
from local_supabase.config import Config

from .database import Database

_ALPHABET = string.ascii_lowercase + string.digits
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


class Sessions:
    """All sessions of the server."""

    def __init__(self, database: Database, config: Config) -> None:
        self.database = database
        self.config = config
        self.all: dict[str, Session] = {}
        #: Refresh token -> session, also of deleted sessions: the invariants look them up.
        self.of_token: dict[str, str] = {}

    def _now(self) -> Moment:
        return self.database.now()

    def is_banned(self, user: dict[str, Any]) -> bool:
        """Whether the user is banned now."""
        until: Moment | None = user["banned_until"]
        return until is not None and until > self._now()

    def start(self, user: dict[str, Any], method: str, provider: str | None = None) -> Session:
        """Create a session with its first token."""
        if self.is_banned(user):
            raise AuthError(400, "user_banned", "User is banned")
        proof: dict[str, Any] = {"method": method, "timestamp": int(self._now().timestamp())}
        if provider is not None:
            proof["provider"] = provider
        session = Session(self.database.new_id(), user["id"], self._now(), [proof])
        self.all[session.id] = session
        self._add_token(session, None)
        return session

    def _add_token(self, session: Session, parent: str | None) -> str:
        text = "".join(self.database.chance.choice(_ALPHABET) for _ in range(TOKEN_LENGTH))
        session.tokens.append(Token(text, parent, self._now()))
        self.of_token[text] = session.id
        return text

    def refresh(self, text: str, check_shape: Callable[[str], None]) -> tuple[Session, str]:
        """Rotate a token; return its session and the next token."""
        check_shape(text)
        session = self.all.get(self.of_token.get(text, ""))
        if session is None:
            message = "Invalid Refresh Token: Refresh Token Not Found"
            raise AuthError(400, "refresh_token_not_found", message)
        if self.is_banned(self.database.users[session.user]):
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

    def end(self, user: str, *, but: str | None = None, only: str | None = None) -> None:
        """Delete the user's sessions: all, all but one, or one alone."""
        for session in [s for s in self.all.values() if s.user == user]:
            if session.id != but and (only is None or session.id == only):
                del self.all[session.id]

    def body(
        self, session: Session, token: str, shown: dict[str, Any], issuer: str
    ) -> dict[str, Any]:
        """Return the answer of every successful grant."""
        user = self.database.users[session.user]
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
