"""Password hashes of the local users, with few rounds: tests sign in thousands of times."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

_ROUNDS = 1000


def digest(password: str) -> str:
    """A salted hash."""
    salt = os.urandom(12)
    return f"pbkdf2${base64.b64encode(salt).decode()}${_stretch(password, salt)}"


def matches(password: str, stored: str | None) -> bool:
    """Whether the password matches the stored hash."""
    kind, _, rest = (stored or "").partition("$")
    salt, _, expected = rest.partition("$")
    return kind == "pbkdf2" and hmac.compare_digest(
        _stretch(password, base64.b64decode(salt)), expected
    )


def _stretch(password: str, salt: bytes) -> str:
    made = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _ROUNDS)
    return base64.b64encode(made).decode()
