"""The Prefer header, and its response header Preference-Applied."""

from __future__ import annotations

import dataclasses

from .rest_errors import RestError

_VALUES = {
    "resolution": {"ignore-duplicates", "merge-duplicates"},
    "return": {"representation", "headers-only", "minimal"},
    "count": {"exact", "planned", "estimated"},
    "missing": {"default", "null"},
    "handling": {"strict", "lenient"},
    "tx": {"commit", "rollback"},
}


@dataclasses.dataclass
class Preferences:
    """Each preference as sent, or None. The first of several values wins, as in PostgREST."""

    resolution: str | None = None
    missing: str | None = None
    returning: str | None = None
    count: str | None = None
    handling: str | None = None
    timezone: str | None = None
    max_affected: int | None = None

    def applied(self, *names: str) -> dict[str, str]:
        """The Preference-Applied header for those of the named preferences that were sent."""
        spelled = {
            "resolution": self.resolution,
            "missing": self.missing,
            "return": self.returning,
            "count": self.count,
            "handling": self.handling,
            "timezone": self.timezone,
            "max-affected": self.max_affected,
        }
        parts = [f"{k}={v}" for k, v in spelled.items() if v is not None and k in names]
        return {"Preference-Applied": ", ".join(parts)} if parts else {}


def parse(headers: list[str], timezones: frozenset[str]) -> Preferences:
    """Read all Prefer headers. Unknown preferences are ignored unless handling=strict."""
    found: dict[str, str] = {}
    unknown = []
    for item in (part.strip() for header in headers for part in header.split(",")):
        name, _, value = item.partition("=")
        known = (
            value in _VALUES.get(name, ())
            or (name == "timezone" and value in timezones)
            or (name == "max-affected" and value.isdigit())
        )
        if known:
            found.setdefault(name, value)
        elif item:
            unknown.append(item)
    if unknown and found.get("handling") == "strict":
        raise RestError(
            400,
            "PGRST122",
            "Invalid preferences given with handling=strict",
            "Invalid preferences: " + ", ".join(unknown),
        )
    affected = found.get("max-affected")
    return Preferences(
        resolution=found.get("resolution"),
        missing=found.get("missing"),
        returning=found.get("return"),
        count=found.get("count"),
        handling=found.get("handling"),
        timezone=found.get("timezone"),
        max_affected=int(affected) if affected and found.get("handling") == "strict" else None,
    )
