"""Story 000: the app resumes in the organisation that was chosen last."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from local_supabase.demo import ORG_1, ORG_2, ORG_3, ORG_4, ORGANIZATIONS

from desk import App

HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def everybody_is_a_member(app: App) -> Iterator[None]:
    yield
    app.backend.control.set_org(ORG_1, "active")
    app.backend.control.set_membership("mentor@example.org", ORG_2, status="active")


def choose(app: App, name: str) -> None:
    app.see("Choose which organisation to use.")
    app.click(name, "list item", part=True)
    app.see("You this year", name, "Peer mentor")


def start_expired(app: App, hours: int = 2) -> None:
    """Start again after the token has ended, and show the finger."""
    app.stage.set(clock_ms=app.stage.clock_ms + hours * HOUR_MS)
    app.start()
    app.see("It has been a while. Please confirm that it is you.")
    app.unlock()


def test_ORG_1_ORG_4_the_newest_choice_is_resumed(app: App) -> None:
    """Given a choice, and another one in the session, when the app is opened again and biometrics
    succeed, then it shows the home of the newest one, without the selection."""
    app.start()
    app.sign_in("mentor@example.org")
    choose(app, "Mentorforeningen Nordlys")
    app.quit()

    start_expired(app)
    app.see("Mentorforeningen Nordlys", "Peer mentor")
    assert not app.sees("Choose which organisation to use.")
    app.click("Change organisation")
    app.click("Likeperson Vestland")
    app.see("Likeperson Vestland")
    app.kill()

    start_expired(app)
    app.see("Likeperson Vestland", "Peer mentor")
    assert not app.sees("Choose which organisation to use.")


def test_ORG_2_access_that_has_ended_is_explained(app: App) -> None:
    """Given a choice, when the membership has ended or the organisation is disabled, then the start
    leads to the selection with a message that says which and why."""
    control = app.backend.control
    app.start()
    app.sign_in("mentor@example.org")
    choose(app, "Likeperson Vestland")
    app.quit()

    control.set_membership("mentor@example.org", ORG_2, status="ended")
    app.start()
    app.see("Your access to Likeperson Vestland has ended. You can choose another organisation.")
    app.see("Access has ended")
    app.click("Mentorforeningen Nordlys", "list item", part=True)
    app.see("You this year", "Mentorforeningen Nordlys")
    app.quit()

    control.set_org(ORG_1, "disabled")
    app.start()
    app.see("Access to Mentorforeningen Nordlys is closed for now.")


def test_ORG_3_ORG_5_offline_from_the_cache_and_nothing_readable(app: App) -> None:
    """Given a choice, when the app starts offline, then the cached home comes with a banner that says
    how old it is; and no file of the app has the organisation's id, name or role."""
    app.start()
    app.sign_in("mentor@example.org")
    choose(app, "Likeperson Vestland")
    app.quit()

    app.stage.set(online=False)
    app.start()
    app.see("Likeperson Vestland", "Peer mentor")
    app.see("This information may be out of date.", "Last updated today")
    app.tab("Contacts")
    app.see("30 contacts")
    app.kill()
    assert readable(app.folder / "app") == []


def test_an_administrator_sees_the_figures_of_all_members(app: App) -> None:
    """Given activities of other members, when an administrator opens home, then it shows the sums of
    the year, the members and the contacts, counts an own activity at once, and works offline; a peer
    mentor sees the own figures only."""
    control = app.backend.control
    control.sql("delete from public.activities where org_id = %s", ORG_1)
    rows = (
        "insert into public.activities (org_id, user_id, type, occurred_at, minutes) "
        "select %s, id, 'visit', now(), 100 from auth.users where email = %s"
    )
    control.sql(rows, ORG_1, "mentor@example.org")
    control.sql(rows, ORG_1, "coordinator@example.org")
    app.start()
    app.sign_in("admin@example.org")
    app.click("Mentorforeningen Nordlys", "list item", part=True)
    app.see("The organisation this year", "3 h 20 min", "3 members", "30 contacts")
    app.stage.set(online=False)
    app.register(40)
    app.see("4 h", "40 min")
    app.quit()
    app.start()
    app.see("4 h", "3 members", "You are offline.")
    app.quit()

    app.stage.set(online=True)
    app.start()
    app.log_out()
    app.see("You are signed out.")
    app.sign_in("mentor@example.org")
    choose(app, "Mentorforeningen Nordlys")
    app.see("1 h 40 min")
    assert not app.sees("members")


def readable(folder: pathlib.Path) -> list[str]:
    """What a thief of the app's folder could read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == "holdfast.db" for path in files)
    ids = [ORG_1, ORG_2, ORG_3, ORG_4]
    words = [*ids, *ORGANIZATIONS.values(), "peer_mentor", "example.org", "Prøvesen"]
    return [
        f"{path.name}: {word}"
        for path in files
        for word in words
        if word.encode() in (content := path.read_bytes()) or word.encode("utf-16-le") in content
    ]
