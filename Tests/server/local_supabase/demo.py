"""The demo's organisations, users and contacts: made-up names, and fixed ids for tests."""

from __future__ import annotations

from typing import Any

#: Password of every demo user.
PASSWORD = "holdfast-demo"

ORGANIZATIONS = {
    "0f000000-0000-4000-8000-000000000001": "Mentorforeningen Nordlys",
    "0f000000-0000-4000-8000-000000000002": "Likeperson Vestland",
    "0f000000-0000-4000-8000-000000000003": "Besøksvenn Østfold",
    "0f000000-0000-4000-8000-000000000004": "Frivillig Ås",
}
ORG_1, ORG_2, ORG_3, ORG_4 = ORGANIZATIONS

USERS = {
    "mentor@example.org": "0a000000-0000-4000-8000-000000000001",
    "solo@example.org": "0a000000-0000-4000-8000-000000000002",
    "admin@example.org": "0a000000-0000-4000-8000-000000000003",
    "coordinator@example.org": "0a000000-0000-4000-8000-000000000004",
    "nobody@example.org": "0a000000-0000-4000-8000-000000000005",
}
MEMBERSHIPS = [
    ("mentor@example.org", ORG_1, "peer_mentor"),
    ("mentor@example.org", ORG_2, "peer_mentor"),
    ("solo@example.org", ORG_3, "peer_mentor"),
    ("admin@example.org", ORG_1, "org_admin"),
    ("admin@example.org", ORG_4, "org_admin"),
    ("coordinator@example.org", ORG_1, "coordinator"),
]

_FIRST = [
    "Åse",
    "Bjørn",
    "Cæcilie",
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
    "Tårn",
    "Ådne",
]
_LAST = ["Prøvesen", "Eksempelvik", "Testås", "Øvingsdal", "Demoløkken", "Mønsterbråten", "Prøvé"]
_PLACES = ["Tromsø", "Bærum", "Ålesund", "Bø", "Vadsø", "Ås", "Sør-Fron", "Oslo"]
_RELATIONS = ["pårørende", "deltaker", "nabo", "foresatt"]

CONTACTS_PER_ORGANIZATION = 30


def contact(org: str, number: int) -> dict[str, Any]:
    """Make a contact from a number."""
    first, last = _FIRST[number % len(_FIRST)], _LAST[number % len(_LAST)]
    suffix = f" {number}" if number >= len(_FIRST) * len(_LAST) else ""
    return {
        "id": f"{org[:8]}-{org[-4:]}-4000-8000-{number:012d}",
        "org_id": org,
        "name": f"{first} {last}{suffix}",
        "municipality": _PLACES[number % len(_PLACES)],
        "relation": _RELATIONS[number % len(_RELATIONS)],
    }


def contact_details(org: str, number: int) -> dict[str, Any]:
    """Make the network-only columns of that contact. The national ids are invalid on purpose."""
    return {
        "id": f"{org[:8]}-{org[-4:]}-4000-9000-{number:012d}",
        "contact_id": contact(org, number)["id"],
        "org_id": org,
        "phone": f"+47 000 {number:05d}",
        "address": f"Prøveveien {number + 1}",
        "national_id": f"000000{number:05d}",
    }
