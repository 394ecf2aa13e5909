"""What Supabase's gateway refuses before a service sees the request."""

from __future__ import annotations

import functools
import json

from . import jwt
from .config import Config
from .messages import Reply, Request

_JSON = {"Content-Type": "application/json"}
NO_ROUTE = Reply(404, b'{"message":"no Route matched with those values"}', _JSON)


def _refused(message: str, hint: str) -> Reply:
    return Reply(401, json.dumps({"message": message, "hint": hint}).encode(), _JSON)


_NO_KEY = _refused(
    "No API key found in request", "No `apikey` request header or url param was found."
)
_BAD_KEY = _refused(
    "Invalid API key", "Double check your Supabase `anon` or `service_role` API key."
)


def too_large(request: Request, config: Config) -> Reply | None:
    """The refusal of a body that is larger than the configuration allows."""
    limit = config.max_body_bytes
    if limit is None or len(request.body) <= limit:
        return None
    return Reply(413, b"Payload Too Large", {"Content-Type": "text/plain"})


def without_key(request: Request, config: Config) -> Reply | None:
    """The refusal of a missing or unknown key; an access token does not count as one."""
    is_public = request.path in {"/auth/v1/authorize", "/auth/v1/health"}
    if is_public or not config.require_apikey:
        return None
    key = request.header("apikey") or request.parameters().get("apikey")
    if key is None:
        return _NO_KEY
    return None if _is_key(key, config.jwt_secret) else _BAD_KEY


@functools.lru_cache(maxsize=64)
def _is_key(key: str, secret: str) -> bool:
    try:
        return jwt.verify(key, secret).get("role") in {"anon", "service_role"}
    except jwt.BadToken:
        return False
