"""Draws the pictures of docs/tour.md: each of PICTURES in two languages, light and dark.

Usage: pictures.py FOLDER [nb-light ...]. Every text that a picture must have is waited for, so a picture that is made
shows what its name says.
"""

from __future__ import annotations

import pathlib
import re
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests/server"), str(ROOT / "examples/desktop/panel")]

from local_supabase import LocalSupabase  # noqa: E402

from desk import App, Desk  # noqa: E402

HOUR_MS = 3_600_000
LANGUAGES = ("nb", "en")
SCHEMES = ("light", "dark")
#: The pictures, and the screen that each shows: the name of its .ui file.
PICTURES = {
    "1-sign-in": "sign_in",
    "2-organisation": "select_org",
    "3-home": "home",
    "4-contacts": "contacts",
    "5-contact": "contact",
    "6-register": "entry",
    "7-offline": "home",
    "8-outbox": "outbox",
    "9-settings": "settings",
    "10-unlock": "unlock",
    "11-activities": "activities",
    "12-conflict": "activities",
}
#: How the library's notice after a sync begins.
DONE = {"nb": "Ferdig", "en": "Done"}
_LINE = re.compile(r'\{"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)",\s*"((?:[^"\\]|\\.)*)"\}')


def words(language: str) -> dict[str, str]:
    """The app's words: English to the language."""
    text = (ROOT / "examples/desktop/src/words.inc").read_text()
    lines: list[tuple[str, str, str]] = _LINE.findall(text)
    return {en: {"en": en, "nb": nb, "nn": nn}[language] for en, nb, nn in lines}


class Painter:
    """One language and one scheme."""

    def __init__(self, app: App, language: str, scheme: str, folder: pathlib.Path) -> None:
        self.app, self.language, self.folder = app, language, folder
        self.suffix = f"{language}-{scheme}.png"
        self.words = words(language)

    def say(self, english: str) -> str:
        """The word on the screen."""
        return self.words.get(english, english)

    def take(self, name: str, *expected: str) -> None:
        """Take a picture of PICTURES once these words are on the screen."""
        assert name in PICTURES
        self.app.see(*(self.say(text) for text in expected))
        time.sleep(0.8)  # for the eye: transitions end
        self.app.desk.picture(self.folder / f"{name}-{self.suffix}")

    def click(self, english: str, role: str | None = None) -> None:
        """Click on this word."""
        self.app.click(self.say(english), role, part=role == "list item")

    def wait_for_quiet(self) -> None:
        """Wait until the notice has left, and no other one has come for a while."""
        since = time.monotonic()
        while time.monotonic() - since < 4:
            if self.app.sees(DONE[self.language]):
                since = time.monotonic()
            time.sleep(0.5)

    def register(self, minutes: str, note: str) -> None:
        """Fill the form and save it."""
        self.click("Register an activity", "push button")
        self.app.type(self.say("Minutes"), minutes)
        self.app.type(self.say("Note"), note)
        self.click("Save", "push button")
        self.app.see(self.say("You this year"))

    def conflict(self, note: str) -> None:
        """Change 45 minutes without a network, and let somebody else change the same."""
        self.click("Activities", "page tab")
        entry = f"{self.say('Edit')}: {self.say('Visit')}, {self.say('%d min').replace('%d', '45')}"
        self.app.click(entry, "push button", part=True)
        self.app.type(self.say("Minutes"), "90")
        self.click("Save", "push button")
        self.app.see_no_more(self.say("Edit the registration"))
        change = "update public.activities set minutes = 75 where note = %s"
        self.app.backend.control.sql(change, note)
        self.app.stage.set(online=True)
        self.app.see(self.say("Use mine"))
        self.app.see_no_more(self.say("Changed."))
        self.wait_for_quiet()

    def tour(self) -> None:
        """Walk through the app."""
        app = self.app
        app.start()
        self.take("1-sign-in", "Welcome", "BankID")
        app.click(self.say("E-mail and password"))
        app.type(self.say("E-mail address"), "mentor@example.org")
        app.type(self.say("Password"), "holdfast-demo")
        self.click("Sign in", "push button")
        self.take("2-organisation", "Mentorforeningen Nordlys", "Likeperson Vestland")
        self.click("Mentorforeningen Nordlys", "list item")
        app.see(self.say("You this year"))
        self.register("45", "En tur i parken")
        self.register("60", "")
        app.see(self.say("Everything is sent"))
        self.wait_for_quiet()
        self.take("3-home", "2")
        self.click("Activities", "page tab")
        self.take("11-activities", "Last updated", "En tur i parken")
        self.click("Contacts", "page tab")
        app.type(self.say("Search contacts"), "å")
        self.take("4-contacts", "Testås")
        self.click("Testås", "list item")
        self.take("5-contact", "+47 000")
        app.stage.set(online=False)
        self.click("Register an activity", "push button")
        app.type(self.say("Minutes"), "30")
        app.type(self.say("Note"), "Kaffe og en prat")
        self.take("6-register", "Save")
        self.click("Save", "push button")
        self.click("Home", "page tab")
        app.see_no_more(self.say("Registered."))
        self.take("7-offline", "You this year")
        self.click("Outbox", "page tab")
        self.take("8-outbox", "Waiting")
        self.conflict("En tur i parken")
        self.take("12-conflict", "Use mine")
        self.click("Settings", "push button")
        self.take("9-settings", "Lock now")
        self.click("Lock now", "push button")
        self.take("10-unlock", "Unlock")


def main() -> None:
    """Draw all."""
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:]
    for scheme in SCHEMES:
        with tempfile.TemporaryDirectory() as home:
            desk = Desk(pathlib.Path(home), dark=scheme == "dark")
            try:
                for language in LANGUAGES:
                    if wanted and f"{language}-{scheme}" not in wanted:
                        continue
                    with (
                        LocalSupabase(demo=True) as backend,
                        tempfile.TemporaryDirectory() as place,
                    ):
                        app = App(desk, backend, pathlib.Path(place) / "a", LANGUAGE=language)
                        try:
                            Painter(app, language, scheme, folder).tour()
                        finally:
                            app.close()
            finally:
                desk.close()


if __name__ == "__main__":
    main()
