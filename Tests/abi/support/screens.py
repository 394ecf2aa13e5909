"""What a screen shows, in short."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .phone import App


def why(screen: Mapping[str, Any]) -> str | None:
    """The code of what the screen says; None: it needs no explanation."""
    return screen["message"] and str(screen["message"]["code"])


def seen(screen: Mapping[str, Any]) -> tuple[str, str | None]:
    """The screen, and the code of what it says."""
    return str(screen["screen"]), why(screen)


def shown(app: App) -> tuple[str, str | None]:
    """The same of the present screen."""
    return seen(app.screen)
