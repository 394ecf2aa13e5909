"""Every screen fits a narrow phone, also with large text."""

from __future__ import annotations

import pathlib
import time
from collections.abc import Iterator

import pytest
from local_supabase import LocalSupabase
from local_supabase.demo import ORG_1

from desk import App, Desk

WIDTH = 360
#: What is refused by a rule of the server waits in the outbox, with three buttons.
RULE = "alter table public.activities add constraint narrow check (minutes <> 78) not valid"
#: A year of much work: 1,199 h 10 min.
YEAR = (
    "insert into public.activities (org_id, user_id, type, occurred_at, minutes) "
    "select %s, id, 'visit', now(), 1439 from auth.users, generate_series(1, 50) where email = %s"
)


@pytest.fixture(scope="module", params=[1.0, 1.5], ids=["text", "large-text"])
def narrow(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("narrow"), text=request.param)
    yield desk
    desk.close()


@pytest.mark.parametrize("language", ["en", "nb", "nn"])
def test_every_screen_fits_360_points(
    narrow: Desk, backend: LocalSupabase, tmp_path: pathlib.Path, language: str
) -> None:
    """Given a window of 360 points, when every screen is visited, then nothing sticks out."""
    app = App(narrow, backend, tmp_path / "app", LANGUAGE=language)
    backend.control.sql("delete from public.activities")
    backend.control.sql(RULE)
    backend.control.sql(YEAR, ORG_1, "admin@example.org")
    try:
        assert visit(app, language) == {}
    finally:
        backend.control.sql("alter table public.activities drop constraint narrow")
        backend.control.sql("delete from public.activities where minutes > 1436")
        app.close()


def visit(app: App, language: str) -> dict[str, list[str]]:
    """Go through every screen. Returns what sticks out of each."""
    from pictures import words

    say = words(language)
    found: dict[str, list[str]] = {}

    def look(screen: str, *expected: str) -> None:
        app.see(*(say.get(text, text) for text in expected))
        app.narrow(WIDTH)
        for _ in range(20):  # until the layout has followed the window
            if not (wide := app.sticking_out(WIDTH)):
                return
            time.sleep(0.25)
        found[screen] = wide

    def click(name: str, role: str = "push button") -> None:
        app.click(say.get(name, name), role, part=role == "list item")

    app.start()
    look("sign-in", "Welcome", "BankID")
    click("E-mail and password")
    look("password", "E-mail address", "Forgot your password?")
    app.type(say["E-mail address"], "admin@example.org")
    app.type(say["Password"], "holdfast-demo")
    click("Sign in")
    look("organisations", "Mentorforeningen Nordlys")
    click("Mentorforeningen Nordlys", "list item")
    look("administrator's home", "The organisation this year", "1199 ")
    click("Contacts", "page tab")
    app.type(say["Search contacts"], "cæcilie testås")
    click("Cæcilie Testås", "list item")
    look("contact", "Call", "+47 000")
    click("Back")
    click("Home", "page tab")
    click("Register an activity")
    app.type(say["Minutes"], "78")
    look("form", "Save", "1½ h")
    click("Save")
    look("home with what was refused", say["%d could not be sent"].replace("%d", "1"))
    app.stage.set(online=False)
    click("Register an activity")
    app.type(say["Minutes"], "1379")
    click("Save")
    look("offline", say["%d not sent yet"].replace("%d", "1"))
    click("Outbox", "page tab")
    look("outbox", "Waiting", "Send again")
    click("Contacts", "page tab")
    look("contacts", "Cæcilie Testås")
    click("Cæcilie Testås", "list item")
    look("contact without a network", "Private details")
    click("Back")
    click("Activities", "page tab")
    look("activities", "Show more", "Last updated")
    sent = f"{say['Visit']}, {say['%d h %d min'] % (23, 59)}"
    app.click(f"{say['Remove']}: {sent}", "push button", part=True)
    look("removal", "It is removed for your organisation, too.")
    click("Keep")
    app.click(f"{say['Edit']}: {sent}", "push button", part=True)
    app.type(say["Minutes"], "1438")
    click("Save")
    app.see_no_more(say["Edit the registration"])
    app.backend.control.sql("update public.activities set minutes = 1437 where minutes = 1439")
    app.stage.set(online=True)
    look("conflict", "Use mine", "Keep theirs")
    click("Settings")
    look("settings", "Lock now", "admin@example.org")
    click("Log out")
    look("question", "Stay")
    click("Stay")
    click("Lock now")
    look("unlock", "Unlock")
    click("Unlock")
    look("reader", "Cancel")
    return found
