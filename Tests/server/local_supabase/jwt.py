"""JSON Web Tokens signed with HS256: just what a Supabase project with a shared secret uses."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import json
from typing import Any


class BadToken(Exception):
    """The token's form, algorithm or signature is wrong. `reason` is one of the constants below."""

    def __init__(self, reason: str, parts: int = 3) -> None:
        super().__init__(reason)
        self.reason = reason
        self.parts = parts


PARTS = "parts"
GARBAGE = "garbage"
UNSIGNED = "unsigned"
SIGNATURE = "signature"


def encode_bytes(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_bytes(text: str) -> bytes:
    """The reverse of `encode_bytes`; raises ValueError."""
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def sign(claims: dict[str, Any], secret: str) -> str:
    """A compact token with these claims."""
    head = encode_bytes(b'{"alg":"HS256","typ":"JWT"}')
    text = f"{head}.{encode_bytes(json.dumps(claims, separators=(',', ':')).encode())}"
    return f"{text}.{encode_bytes(_mac(text, secret))}"


def verify(token: str, secret: str) -> dict[str, Any]:
    """The claims of a correctly signed token; says nothing about its times. Raises BadToken."""
    return dict(_verified(token, secret))


@functools.lru_cache(maxsize=256)
def _verified(token: str, secret: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3:
        raise BadToken(PARTS, len(parts))
    try:
        head = json.loads(decode_bytes(parts[0]))
        claims = json.loads(decode_bytes(parts[1]))
        signature = decode_bytes(parts[2])
        algorithm = head["alg"]
    except (ValueError, TypeError, KeyError) as error:
        raise BadToken(GARBAGE) from error
    if not isinstance(claims, dict):
        raise BadToken(GARBAGE)
    if algorithm == "none":
        raise BadToken(UNSIGNED)
    if algorithm != "HS256" or not hmac.compare_digest(
        _mac(f"{parts[0]}.{parts[1]}", secret), signature
    ):
        raise BadToken(SIGNATURE)
    return claims


def _mac(text: str, secret: str) -> bytes:
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest()
