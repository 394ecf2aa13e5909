"""What a screen says."""

from __future__ import annotations

from typing import Any


def why(decision: dict[str, Any]) -> str | None:
    """The code of what the screen says; None: it needs no explanation."""
    return (decision["message"] or {}).get("code")
