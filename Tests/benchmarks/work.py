"""The work of bench.c for contenders in Python."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

USER = "0a000000-0000-4000-8000-000000000001"
ORG = "0f000000-0000-4000-8000-000000000001"
#: Items added before the measurement, as in bench.h.
WARM_UP = 10
#: A user of the local backend's demo with one organisation.
EMAIL = "solo@example.org"
PASSWORD = "holdfast-demo"

_FIRST = [
    "Åse",
    "Bjørn",
    "Cecilie",
    "Dag",
    "Eléa",
    "Frøydis",
    "Gørild",
    "Håkon",
    "Ærlend",
    "Jørgen",
    "Kåre",
    "Lærke",
    "Mårten",
    "Néa",
    "Øystein",
    "Pål",
    "Ragnhild",
    "Sølve",
    "Tuva",
    "Ådne",
]
_LAST = ["Prøvesen", "Eksempelvik", "Testås", "Øvingsdal", "Demoløkken", "Mønsterbråten", "Prøvé"]
_PLACES = ["Tromsø", "Bærum", "Ålesund", "Bø", "Vadsø", "Ås", "Sør-Fron", "Oslo"]
_TYPED = [
    "kår",
    "ås",
    "øystein",
    "prøve 12",
    "bjørn tromsø",
    "mønster",
    "n",
    "eksempel bo",
    "4711",
    "håkon oslo",
    "finnes ikke",
    "vik 99",
    "é",
    "demo",
    "gør",
]


def visit(number: int) -> str:
    """Return the request that registers a visit."""
    payload = {
        "type": "visit",
        "minutes": number % 1440 + 1,
        "occurred_at": f"2026-11-21T10:{number % 60:02d}:00Z",
        "note": "Kaffe og prat på kjøkkenet",
    }
    return json.dumps({"kind": "activity", "payload": payload})


def contact(number: int) -> dict[str, Any]:
    return {
        "id": f"0c000000-0000-4000-8000-{number:012d}",
        "org_id": ORG,
        "name": f"{_FIRST[number % len(_FIRST)]} {_LAST[number % len(_LAST)]} {number}",
        "municipality": _PLACES[number % len(_PLACES)],
        "relation": "pårørende",
    }


def query(number: int) -> str:
    return _TYPED[number % len(_TYPED)]


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


def session_texts() -> tuple[str, str, str]:
    """Return the part of a session that a cold start reads: tokens, choice, memberships."""
    given = json.loads(session())["session"]
    tokens = {name: given[name] for name in ("access_token", "refresh_token")}
    membership = {"org_id": ORG, "name": "Mentorforeningen Nordlys", "role": "peer_mentor"}
    return (
        json.dumps({**tokens, "user_id": USER, "lifetime_ms": 36_000_000}),
        json.dumps({"org_id": ORG}),
        json.dumps({"memberships": [{**membership, "active": True, "org_active": True}]}),
    )
