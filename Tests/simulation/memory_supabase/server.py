"""The whole server: a gateway, the two services, and the control for tests."""

from __future__ import annotations

import datetime
import email.utils
import random
from collections.abc import Callable

from local_supabase import jwt
from local_supabase.auth import Auth
from local_supabase.config import Config
from local_supabase.messages import Reply, Request

from .control import MemoryControl
from .database import Database
from .rest import Rest

_NO_KEY = b'{"message":"No API key found in request"}'
_BAD_KEY = b'{"message":"Invalid API key"}'
_NO_ROUTE = b'{"message":"no Route matched with those values"}'
_JSON = {"Content-Type": "application/json"}


class MemoryServer:
    """A function from requests to replies. `now` is its clock, in seconds since 1970."""

    def __init__(self, now: Callable[[], float], chance: random.Random | None = None) -> None:
        self.config = Config()
        self.database = Database(
            lambda: datetime.datetime.fromtimestamp(now(), datetime.UTC), chance or random.Random()
        )
        self.auth = Auth(self.database, self.config)
        self.rest = Rest(self.database, self.config)
        self.control = MemoryControl(self.database, self.auth, self.config)
        self.anon_key = self._key("anon")
        self.service_key = self._key("service_role")

    def _key(self, role: str) -> str:
        claims = {"iss": "supabase", "role": role, "iat": 1700000000, "exp": 4000000000}
        return jwt.sign(claims, self.config.jwt_secret)

    def handle(self, request: Request) -> Reply:
        """Answer one request."""
        reply = self._route(request)
        moment = self.database.now() + datetime.timedelta(seconds=self.config.date_offset_s)
        date = email.utils.format_datetime(moment, usegmt=True)
        return Reply(reply.status, reply.body, {"Date": date, **reply.headers})

    def _route(self, request: Request) -> Reply:
        limit = self.config.max_body_bytes
        if limit is not None and len(request.body) > limit:
            return Reply(413, b"Payload Too Large", {"Content-Type": "text/plain"})
        for prefix, service in (("/auth/v1", self.auth), ("/rest/v1", self.rest)):
            if not request.path.startswith(prefix + "/"):
                continue
            path = request.path.removeprefix(prefix)
            if self.config.require_apikey and path != "/authorize":
                key = request.header("apikey")
                if key is None:
                    return Reply(401, _NO_KEY, dict(_JSON))
                if key not in {self.anon_key, self.service_key}:
                    return Reply(401, _BAD_KEY, dict(_JSON))
            return service.handle(request, path)
        return Reply(404, _NO_ROUTE, dict(_JSON))
