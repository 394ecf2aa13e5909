"""The session that the C programs start from."""

from __future__ import annotations

import base64
import json
import time

USER = "0a000000-0000-4000-8000-000000000001"
#: Items added before the measurement, as in bench.h.
WARM_UP = 10


def session() -> str:
    """Return a session in the form of the auth service; its signature is never verified."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    claims = {"sub": USER, "exp": int(time.time()) + 36000, "pad": "x" * 600}
    token = f"{part({'alg': 'HS256'})}.{part(claims)}.{'s' * 43}"
    return json.dumps(
        {
            "session": {
                "access_token": token,
                "refresh_token": "abcdefghijkl",
                "token_type": "bearer",
                "expires_in": 36000,
                "user": {"id": USER},
            }
        }
    )
