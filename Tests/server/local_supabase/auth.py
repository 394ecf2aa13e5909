"""The auth service at /auth/v1: its routes and grants, over accounts and sessions in memory.

The simulation's server has the same service. Where PostgreSQL has the rows, `auth_mirror.py` tells
it the users.
"""

from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

from . import auth_errors, auth_flows, jwt
from .accounts import Accounts, User
from .auth_errors import AuthError, OAuthError
from .auth_sessions import Session, Sessions
from .config import Config
from .messages import Reply, Request

JSON = {"Content-Type": "application/json"}
_NOT_FOUND = Reply(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})


class Auth:
    """Grants, the endpoints of a signed-in user, and the page of the simulated providers."""

    def __init__(self, accounts: Accounts, config: Config) -> None:
        self.accounts = accounts
        self.config = config
        self.sessions = Sessions(accounts, config)
        #: PKCE code -> user, challenge, method, provider, time of issue.
        self.flows: dict[str, dict[str, Any]] = {}
        #: Parameters of the error redirects that the next calls of /authorize answer with.
        self.refusals: list[dict[str, str]] = []
        self._tokens = 0.0
        self._filled_at: float | None = None

    def handle(self, request: Request, path: str) -> Reply:
        """Answer one request; `path` is what follows /auth/v1."""
        routes = {
            ("POST", "/token"): self._token, ("POST", "/signup"): self._signup,
            ("GET", "/user"): self._get_user, ("POST", "/logout"): self._logout,
            ("GET", "/authorize"): self._authorize,
            ("GET", "/verify"): self._verify, ("GET", "/health"): self._health,
            ("GET", "/settings"): self._settings, ("GET", "/.well-known/jwks.json"): self._keys,
        }  # fmt: skip
        handler = routes.get((request.method, path))
        if handler is None:
            return Reply(405) if any(known == path for _, known in routes) else _NOT_FOUND
        try:
            return handler(request)
        except (AuthError, OAuthError) as error:
            return auth_errors.reply(request, error)

    # Users ----------------------------------------------------------------------------------------

    def create(
        self,
        email: str,
        password: str | None,
        provider: str = "email",
        user_id: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> User:
        """A new confirmed user."""
        moment = self.accounts.now()
        user: User = {
            "id": user_id or self.accounts.new_id(), "email": email.lower(), "password": password,
            "provider": provider, "banned_until": None, "created": moment,
            "last_sign_in": None, "metadata": metadata or {},
        }  # fmt: skip
        self.accounts.users[user["id"]] = user
        return user

    def by_email(self, email: str) -> User | None:
        """Return the user with this address, ignoring case."""
        users = self.accounts.users.values()
        return next((u for u in users if u["email"] == email.lower()), None)

    def find(self, user: str) -> User | None:
        """Return the user with this id or address."""
        return self.accounts.users.get(user) or self.by_email(user)

    def remove(self, user: User) -> None:
        """Delete the user with all sessions."""
        self.sessions.end(user["id"])
        del self.accounts.users[user["id"]]

    def ban(self, user: User, seconds: float) -> None:
        """Ban the user for this long; 0 lifts the ban."""
        until = self.accounts.now() + datetime.timedelta(seconds=seconds) if seconds else None
        user["banned_until"] = until

    def expire(self, user: User) -> None:
        """Let every later refresh of the user's sessions fail with session_expired."""
        for session in self.sessions.of(user["id"]):
            session.not_after = self.accounts.now() - datetime.timedelta(seconds=1)

    def refuse(self, times: int, parameters: dict[str, str]) -> None:
        """Let the next calls of /authorize redirect with this error."""
        refusal = {
            "error": "access_denied", "error_code": "access_denied", "error_description": "Refused",
        }  # fmt: skip
        self.refusals += [refusal | parameters] * times

    def _shown(self, user: User) -> User:
        created = timestamp(user["created"])
        shown = {
            "id": user["id"], "aud": "authenticated", "role": "authenticated",
            "email": user["email"], "phone": "", "user_metadata": user["metadata"], "identities": [],
            "app_metadata": {"provider": user["provider"], "providers": [user["provider"]]},
            "is_anonymous": False, "created_at": created, "updated_at": created,
            "email_confirmed_at": created, "confirmed_at": created,
        }  # fmt: skip
        if user["last_sign_in"] is not None:
            shown["last_sign_in_at"] = timestamp(user["last_sign_in"])
        return shown

    # Grants ---------------------------------------------------------------------------------------

    def _token(self, request: Request) -> Reply:
        self._take_from_bucket()
        grant = request.parameters().get("grant_type", "")
        if grant == "refresh_token":
            sent = read_object(request, {"refresh_token": str})
            token = sent.get("refresh_token") or ""
            session, following = self.sessions.refresh(token)
            return self._signed_in(request, session, following)
        if grant == "password":
            return self._password(request)
        if grant == "pkce":
            return self._exchange(request)
        if grant == "id_token":
            return self._identity(request)
        raise AuthError(400, "invalid_credentials", "unsupported_grant_type")

    def _signed_in(
        self, request: Request, session: Session, token: str | None = None, **extra: object
    ) -> Reply:
        shown = self._shown(self.accounts.users[session.user])
        following = token or session.tokens[-1].text
        issuer = f"{request.base_url}/auth/v1"
        body = self.sessions.body(session, following, shown, issuer) | extra
        return Reply(200, json.dumps(body).encode(), dict(JSON))

    def _start(self, user: User, method: str, provider: str | None = None) -> Session:
        session = self.sessions.start(user, method, provider)
        user["last_sign_in"] = self.accounts.now()
        return session

    def _password(self, request: Request) -> Reply:
        sent = read_object(request, {"email": str, "phone": str, "password": str})
        user = self.by_email(sent.get("email") or "")
        if user is None or user["password"] is None or user["password"] != sent.get("password"):
            raise AuthError(400, "invalid_credentials", "Invalid login credentials")
        return self._signed_in(request, self._start(user, "password"), weak_password=None)

    def _signup(self, request: Request) -> Reply:
        sent = read_object(request, {"email": str, "password": str, "data": dict})
        email, password = sent.get("email") or "", sent.get("password") or ""
        if "@" not in email:
            message = "Unable to validate email address: invalid format"
            raise AuthError(400, "validation_failed", message)
        if len(password) < 6:
            message, weak = "Password should be at least 6 characters.", {"reasons": ["length"]}
            raise AuthError(422, "weak_password", message, weak_password=weak)
        if self.by_email(email) is not None:
            raise AuthError(422, "user_already_exists", "User already registered")
        user = self.create(email, password, metadata=sent.get("data"))
        return self._signed_in(request, self._start(user, "password"))

    def _exchange(self, request: Request) -> Reply:
        sent = read_object(request, {"auth_code": str, "code_verifier": str})
        code, verifier = sent.get("auth_code") or "", sent.get("code_verifier") or ""
        if not code or not verifier:
            message = "invalid request: both auth code and code verifier should be non-empty"
            raise AuthError(400, "validation_failed", message)
        flow = self.flows.get(code)
        if flow is None or flow["user"] not in self.accounts.users:
            message = "invalid flow state, no valid flow state found"
            raise AuthError(404, "flow_state_not_found", message)
        age = datetime.timedelta(seconds=self.config.flow_state_lifetime)
        if self.accounts.now() > flow["since"] + age:
            message = "invalid flow state, flow state has expired"
            raise AuthError(422, "flow_state_expired", message)
        if not auth_flows.verifies(verifier, flow["challenge"], flow["method"]):
            message = "code challenge does not match previously saved code verifier"
            raise AuthError(400, "bad_code_verifier", message)
        user = self.accounts.users[flow["user"]]
        session = self._start(user, "oauth", flow["provider"])
        del self.flows[code]
        return self._signed_in(request, session)

    def _identity(self, request: Request) -> Reply:
        sent = read_object(request, {"id_token": str, "provider": str, "nonce": str})
        claims, provider = auth_flows.read_identity(sent, self.accounts.now().timestamp())
        user = self.by_email(claims["email"]) or self.create(claims["email"], None, provider)
        return self._signed_in(request, self._start(user, "oauth", provider))

    def _take_from_bucket(self) -> None:
        """A token bucket shared by all grants. Like GoTrue, its 429 has no Retry-After."""
        burst = self.config.rate_limit_burst
        if burst is None:
            self._filled_at = None
            return
        moment = self.accounts.now().timestamp()
        if self._filled_at is None:
            self._tokens, self._filled_at = float(burst), moment
        gained = (moment - self._filled_at) / self.config.rate_limit_refill_s
        self._tokens, self._filled_at = min(float(burst), self._tokens + gained), moment
        if self._tokens < 1:
            raise AuthError(429, "over_request_rate_limit", "Request rate limit reached")
        self._tokens -= 1

    # The signed-in user ---------------------------------------------------------------------------

    def _bearer(self, request: Request) -> tuple[User, Session]:
        """Return user and session of the access token. The order of checks is GoTrue's."""
        scheme, _, token = (request.header("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            message = "This endpoint requires a valid Bearer token"
            raise AuthError(401, "no_authorization", message)
        try:
            claims = jwt.verify(token, self.config.jwt_secret)
            expired = claims.get("exp", 0) <= self.accounts.now().timestamp()
        except (jwt.BadToken, TypeError) as error:
            message = "invalid JWT: unable to parse or verify signature"
            raise AuthError(403, "bad_jwt", message) from error
        if expired:
            raise AuthError(403, "bad_jwt", "invalid JWT: token is expired")
        try:
            user_id, session_id = (
                str(uuid.UUID(str(claims.get(n)))) for n in ("sub", "session_id")
            )
        except ValueError as error:
            raise AuthError(400, "bad_jwt", "invalid claim: sub claim must be a UUID") from error
        user = self.accounts.users.get(user_id)
        if user is None:
            raise AuthError(403, "user_not_found", "User from sub claim in JWT does not exist")
        if self.sessions.is_banned(user):
            raise AuthError(403, "user_banned", "User is banned")
        session = self.sessions.all.get(session_id)
        if session is None or session.user != user_id:
            message = "Session from session_id claim in JWT does not exist"
            raise AuthError(403, "session_not_found", message)
        return user, session

    def _get_user(self, request: Request) -> Reply:
        user, _ = self._bearer(request)
        return Reply(200, json.dumps(self._shown(user)).encode(), dict(JSON))

    def _logout(self, request: Request) -> Reply:
        scope = request.parameters().get("scope", "global") or "global"
        user, session = self._bearer(request)
        if scope not in {"global", "local", "others"}:
            raise AuthError(400, "validation_failed", f"Unsupported logout scope '{scope}'")
        self.sessions.end(
            user["id"],
            but=session.id if scope == "others" else None,
            only=session.id if scope == "local" else None,
        )
        return Reply(204)

    # Without an access token ----------------------------------------------------------------------

    def _authorize(self, request: Request) -> Reply:
        asked = request.parameters()
        refusal = self.refusals.pop(0) if self.refusals else None
        done = auth_flows.check_authorize(asked, refusal, self.config)
        if done is not None:
            return done
        email = asked.get("user") or asked.get("login_hint") or self.config.provider_user
        if not email:
            people = [u["email"] for u in self.accounts.users.values()]
            return auth_flows.page(people[:50], asked)
        provider = asked["provider"]
        user = self.by_email(email) or self.create(email, None, provider)
        code = self.accounts.new_id()
        self.flows[code] = {
            "user": user["id"], "challenge": asked["code_challenge"], "provider": provider,
            "method": asked["code_challenge_method"].lower(), "since": self.accounts.now(),
        }  # fmt: skip
        return auth_flows.redirect(asked["redirect_to"], {"code": code})

    def _verify(self, request: Request) -> Reply:
        """A link of a mail. No mail is sent here, so every link has expired."""
        asked = request.parameters()
        if not asked.get("token") or not asked.get("type"):
            raise AuthError(400, "validation_failed", "Verify requires a token and a type")
        return auth_flows.expired_link(asked.get("redirect_to", ""), self.config)

    def _health(self, _: Request) -> Reply:
        shown = {"version": "local", "name": "GoTrue", "description": "Local stand-in for GoTrue"}
        return Reply(200, json.dumps(shown).encode(), dict(JSON))

    def _settings(self, _: Request) -> Reply:
        shown = {
            "external": {"bankid": True, "vipps": True, "email": True, "phone": False},
            "disable_signup": False,
            "mailer_autoconfirm": True,
        }
        return Reply(200, json.dumps(shown).encode(), dict(JSON))

    def _keys(self, _: Request) -> Reply:
        return Reply(200, b'{"keys":[]}', dict(JSON))


def timestamp(value: datetime.datetime) -> str:
    """Format as Go does: RFC 3339 in UTC, without trailing zeros of the fraction."""
    text = value.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").rstrip("0").rstrip(".")
    return text + "Z"


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
