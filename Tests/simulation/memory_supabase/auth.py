"""The auth service at /auth/v1 over sessions in memory."""

from __future__ import annotations

import datetime
import json
import uuid
from typing import Any

from local_supabase import auth_errors, auth_flows, auth_sessions, jwt
from local_supabase.auth import read_object
from local_supabase.auth_errors import AuthError, OAuthError
from local_supabase.auth_users import timestamp
from local_supabase.config import Config
from local_supabase.messages import Reply, Request

from .database import Database
from .sessions import Session, Sessions

JSON = {"Content-Type": "application/json"}
User = dict[str, Any]


class Auth:
    """Grants, the endpoints of a signed-in user, and the page of the simulated providers."""

    def __init__(self, database: Database, config: Config) -> None:
        self.database = database
        self.config = config
        self.sessions = Sessions(database, config)
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
        }  # fmt: skip
        handler = routes.get((request.method, path))
        if handler is None:
            return Reply(405 if any(known == path for _, known in routes) else 404)
        try:
            return handler(request)
        except (AuthError, OAuthError) as error:
            return auth_errors.reply(request, error)

    # Users ----------------------------------------------------------------------------------------

    def create(
        self, email: str, password: str | None, provider: str = "email", user_id: str | None = None
    ) -> User:
        """A new confirmed user."""
        moment = self.database.now()
        user: User = {
            "id": user_id or self.database.new_id(), "email": email.lower(), "password": password,
            "provider": provider, "banned_until": None, "created": moment, "last_sign_in": None,
        }  # fmt: skip
        self.database.users[user["id"]] = user
        return user

    def by_email(self, email: str) -> User | None:
        """Return the user with this address, ignoring case."""
        users = self.database.users.values()
        return next((u for u in users if u["email"] == email.lower()), None)

    def _shown(self, user: User) -> User:
        created = timestamp(user["created"])
        shown = {
            "id": user["id"], "aud": "authenticated", "role": "authenticated",
            "email": user["email"], "phone": "", "user_metadata": {}, "identities": [],
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
            session, following = self.sessions.refresh(token, auth_sessions.check_shape)
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
        shown = self._shown(self.database.users[session.user])
        following = token or session.tokens[-1].text
        issuer = f"{request.base_url}/auth/v1"
        body = self.sessions.body(session, following, shown, issuer) | extra
        return Reply(200, json.dumps(body).encode(), dict(JSON))

    def _start(self, user: User, method: str, provider: str | None = None) -> Session:
        session = self.sessions.start(user, method, provider)
        user["last_sign_in"] = self.database.now()
        return session

    def _password(self, request: Request) -> Reply:
        sent = read_object(request, {"email": str, "phone": str, "password": str})
        user = self.by_email(sent.get("email") or "")
        if user is None or user["password"] is None or user["password"] != sent.get("password"):
            raise AuthError(400, "invalid_credentials", "Invalid login credentials")
        return self._signed_in(request, self._start(user, "password"), weak_password=None)

    def _signup(self, request: Request) -> Reply:
        sent = read_object(request, {"email": str, "password": str, "data": dict})
        user = self.create(sent.get("email") or "", sent.get("password"))
        return self._signed_in(request, self._start(user, "password"))

    def _exchange(self, request: Request) -> Reply:
        sent = read_object(request, {"auth_code": str, "code_verifier": str})
        code, verifier = sent.get("auth_code") or "", sent.get("code_verifier") or ""
        if not code or not verifier:
            message = "invalid request: both auth code and code verifier should be non-empty"
            raise AuthError(400, "validation_failed", message)
        flow = self.flows.get(code)
        if flow is None or flow["user"] not in self.database.users:
            message = "invalid flow state, no valid flow state found"
            raise AuthError(404, "flow_state_not_found", message)
        age = datetime.timedelta(seconds=self.config.flow_state_lifetime)
        if self.database.now() > flow["since"] + age:
            message = "invalid flow state, flow state has expired"
            raise AuthError(422, "flow_state_expired", message)
        if not auth_flows.verifies(verifier, flow["challenge"], flow["method"]):
            message = "code challenge does not match previously saved code verifier"
            raise AuthError(400, "bad_code_verifier", message)
        user = self.database.users[flow["user"]]
        session = self._start(user, "oauth", flow["provider"])
        del self.flows[code]
        return self._signed_in(request, session)

    def _identity(self, request: Request) -> Reply:
        sent = read_object(request, {"id_token": str, "provider": str, "nonce": str})
        claims, provider = auth_flows.read_identity(sent, self.database.now().timestamp())
        user = self.by_email(claims["email"]) or self.create(claims["email"], None, provider)
        return self._signed_in(request, self._start(user, "oauth", provider))

    def _take_from_bucket(self) -> None:
        burst = self.config.rate_limit_burst
        if burst is None:
            self._filled_at = None
            return
        moment = self.database.now().timestamp()
        if self._filled_at is None:
            self._tokens, self._filled_at = float(burst), moment
        gained = (moment - self._filled_at) / self.config.rate_limit_refill_s
        self._tokens, self._filled_at = min(float(burst), self._tokens + gained), moment
        if self._tokens < 1:
            raise AuthError(429, "over_request_rate_limit", "Request rate limit reached")
        self._tokens -= 1

    # The signed-in user ---------------------------------------------------------------------------

    def _bearer(self, request: Request) -> tuple[User, Session]:
        scheme, _, token = (request.header("authorization") or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            message = "This endpoint requires a valid Bearer token"
            raise AuthError(401, "no_authorization", message)
        try:
            claims = jwt.verify(token, self.config.jwt_secret)
            expired = claims.get("exp", 0) <= self.database.now().timestamp()
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
        user = self.database.users.get(user_id)
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

    # The providers --------------------------------------------------------------------------------

    def _authorize(self, request: Request) -> Reply:
        asked = request.parameters()
        refusal = self.refusals.pop(0) if self.refusals else None
        done = auth_flows.check_authorize(asked, refusal, self.config)
        if done is not None:
            return done
        email = asked.get("user") or asked.get("login_hint") or self.config.provider_user
        if not email:
            people = [u["email"] for u in self.database.users.values()]
            return auth_flows.page(people[:50], asked)
        provider = asked["provider"]
        user = self.by_email(email) or self.create(email, None, provider)
        code = self.database.new_id()
        self.flows[code] = {
            "user": user["id"], "challenge": asked["code_challenge"], "provider": provider,
            "method": asked["code_challenge_method"].lower(), "since": self.database.now(),
        }  # fmt: skip
        return auth_flows.redirect(asked["redirect_to"], {"code": code})
