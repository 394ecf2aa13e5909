"""My activities: what is registered can be seen, changed and taken back, with or without a network."""

from __future__ import annotations

from typing import Any

import pytest
from local_supabase.demo import ORG_3

from desk import App


def begin(app: App) -> None:
    """Sign in, without activities of earlier tests."""
    app.backend.control.sql("delete from public.activities where org_id = %s", ORG_3)
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")


def stored(app: App, note: str) -> list[dict[str, Any]]:
    query = """select minutes, deleted_at is not null as gone from public.activities
      where note = %s"""
    return list(app.backend.control.sql(query, note))


def wait_for_row(app: App, note: str, **row: object) -> None:
    """Wait until the only row of this note is this."""
    app.wait(lambda: stored(app, note) == [row], f"not stored: {row}")


def edit(app: App, before: str, minutes: int) -> None:
    """Change the minutes of an activity on the list."""
    app.click(f"Edit: {before}", "push button", part=True)
    app.type("Minutes", str(minutes))
    app.click("Save", "push button")
    app.see("Changed.")


def test_COR_1_what_was_sent_is_seen_changed_and_taken_back(app: App) -> None:
    """Given an activity that was sent, when its minutes are edited, then the list and PostgreSQL have
    them; when it is taken back, then it is gone from both, and from the sum."""
    begin(app)
    app.register(30, note="cor: sent")
    app.see("Everything is sent")
    app.tab("Activities")
    edit(app, "Visit, 30 min", 90)
    app.see("Visit, 1 h 30 min, today")
    wait_for_row(app, "cor: sent", minutes=90, gone=False)
    app.click("Remove: Visit, 1 h 30 min", "push button", part=True)
    app.see("It is removed for your organisation, too.")
    app.click("Remove", "push button")
    wait_for_row(app, "cor: sent", minutes=90, gone=True)
    app.see("You have registered nothing yet.")
    app.tab("Home")
    app.see("0 min")


def test_COR_1_without_a_network_a_correction_waits(app: App) -> None:
    """Given activities that were sent, when the app starts without a network, then they are listed; one
    is changed and one is taken back; both wait, and are sent with the network."""
    begin(app)
    app.register(31, note="cor: change")
    app.register(32, note="cor: removal")
    app.see("Everything is sent")
    app.tab("Activities")
    app.see("Visit, 31 min", "Visit, 32 min")
    app.quit()
    app.stage.set(online=False)
    app.start()
    app.tab("Activities")
    edit(app, "Visit, 31 min", 33)
    app.see("Visit, 33 min", "Your change waits to be sent.")
    app.click("Remove: Visit, 32 min", "push button", part=True)
    app.click("Remove", "push button")
    app.see("Will be removed.")
    app.tab("Outbox")
    app.see("A change of an activity", "Minutes: 33 min", "A removal of an activity")
    app.stage.set(online=True)
    wait_for_row(app, "cor: change", minutes=33, gone=False)
    wait_for_row(app, "cor: removal", minutes=32, gone=True)
    app.see("Everything is sent")


@pytest.mark.parametrize(("choice", "minutes"), [("Use mine", 90), ("Keep the other", 45)])
def test_COR_2_of_two_changes_the_user_chooses(app: App, choice: str, minutes: int) -> None:
    """Given a change that waits, when somebody else changes the same minutes, then both are shown, and
    what the user chooses is stored and listed."""
    begin(app)
    note = f"cor: {choice}"
    app.register(30, note=note)
    app.see("Everything is sent")
    app.stage.set(online=False)
    app.tab("Activities")
    edit(app, "Visit, 30 min", 90)
    app.backend.control.sql("update public.activities set minutes = 45 where note = %s", note)
    app.stage.set(online=True)
    app.see("Minutes: you have 1 h 30 min, the other has 45 min")
    assert stored(app, note) == [{"minutes": 45, "gone": False}]
    app.click(f"{choice}: Visit", "push button", part=True)
    wait_for_row(app, note, minutes=minutes, gone=False)
    app.see("Visit, 1 h 30 min" if minutes == 90 else "Visit, 45 min")
    app.see_no_more("the other has")


def test_what_is_edited_and_not_saved_is_offered_after_a_lock(app: App) -> None:
    """Given an edit of a stored activity that is half-written, when the session is locked and unlocked,
    then the form is offered as it was."""
    begin(app)
    app.register(34, note="cor: lock")
    app.see("Everything is sent")
    app.tab("Activities")
    app.click("Edit: Visit, 34 min", "push button", part=True)
    app.type("Minutes", "35")
    app.activate("lock")
    app.see("The app is locked. Please confirm that it is you.")
    assert not app.sees("Visit, 34 min")
    app.unlock()
    app.see("Edit the registration", "This is what you had written.")
    app.see_written("35")
    app.click("Save", "push button")
    wait_for_row(app, "cor: lock", minutes=35, gone=False)


def test_a_long_list_goes_on(app: App) -> None:
    """Given more activities than a page, when the list is opened, then it begins with the newest, and
    goes on when asked."""
    app.backend.control.sql("delete from public.activities where org_id = %s", ORG_3)
    app.backend.control.sql(
        "insert into public.activities (org_id, user_id, type, occurred_at, minutes)"
        " select %s, id, 'walk', now() - n * interval '1 minute', 600 + n"
        " from auth.users, generate_series(1, 59) as n where email = 'solo@example.org'",
        ORG_3,
    )
    app.start()
    app.sign_in()
    app.see("59")
    app.tab("Activities")
    app.see("Walk, 10 h 1 min", "Walk, 10 h 50 min", "Show more")
    assert not app.sees("Walk, 10 h 59 min")
    app.click("Show more", "push button")
    app.see("Walk, 10 h 59 min")
    app.see_no_more("Show more")
