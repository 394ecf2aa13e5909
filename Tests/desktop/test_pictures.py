"""The pictures of docs/tour.md are of this app: no screen is without one."""

from __future__ import annotations

import pathlib

from pictures import LANGUAGES, PICTURES, SCHEMES

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: What is around a screen, or on it for a moment only.
FRAMES = {"main", "window", "wait"}


def test_every_screen_has_a_picture_in_each_language_and_scheme() -> None:
    """Given the screens of the app, then each has a picture, and every picture is there and no other."""
    screens = {path.stem for path in (ROOT / "examples/desktop/ui").glob("*.ui")} - FRAMES
    assert set(PICTURES.values()) == screens
    wanted = {
        f"{name}-{language}-{scheme}.png"
        for name in PICTURES
        for language in LANGUAGES
        for scheme in SCHEMES
    }
    assert {path.name for path in (ROOT / "docs/pictures").iterdir()} == wanted


def test_the_tour_shows_every_picture() -> None:
    """Given docs/tour.md, then it shows each of the pictures once, in Bokmål and light."""
    tour = (ROOT / "docs/tour.md").read_text()
    times = {name: tour.count(f"(pictures/{name}-nb-light.png)") for name in PICTURES}
    assert times == dict.fromkeys(PICTURES, 1)
