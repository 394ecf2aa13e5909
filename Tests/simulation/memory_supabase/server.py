"""The whole server: a gateway, the two services, and the control for tests."""

from __future__ import annotations

import datetime
import email.utils
import random
from collections.abc import Callable

from local_supabase import gateway, jwt
from local_supabase.auth import Auth
from local_supabase.config import Config
from local_supabase.messages import Reply, Request

from .control import MemoryControl
from .database import Database
from .rest import Rest


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
        refusal = gateway.too_large(request, self.config)
        if refusal is not None:
            return refusal
        for prefix, service in (("/auth/v1", self.auth), ("/rest/v1", self.rest)):
            if not request.path.startswith(prefix + "/"):
                continue
            refusal = gateway.without_key(request, self.config)
            return refusal or service.handle(request, request.path.removeprefix(prefix))
        return gateway.NO_ROUTE
