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


def register_many(app: App, count: int) -> None:
    """Let the user have registered so many walks, each a minute before the one that is listed above it."""
    app.backend.control.sql("delete from public.activities where org_id = %s", ORG_3)
    app.backend.control.sql(
        "insert into public.activities (org_id, user_id, type, occurred_at, minutes)"
        " select %s, id, 'walk', now() - n * interval '1 minute', 600 + n"
        " from auth.users, generate_series(1, %s) as n where email = 'solo@example.org'",
        ORG_3,
        count,
    )


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
    app.see_no_more("Edit the registration")


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


@pytest.mark.parametrize(("choice", "minutes"), [("Use mine", 90), ("Keep theirs", 45)])
def test_COR_2_of_two_changes_the_user_chooses(app: App, choice: str, minutes: int) -> None:
    """Given a change that waits, when somebody else changes the same minutes, then what was before and
    both changes are shown, and what the user chooses is stored and listed."""
    begin(app)
    note = f"cor: {choice}"
    app.register(30, note=note)
    app.see("Everything is sent")
    app.stage.set(online=False)
    app.tab("Activities")
    edit(app, "Visit, 30 min", 90)
    app.backend.control.sql("update public.activities set minutes = 45 where note = %s", note)
    app.stage.set(online=True)
    app.see("Minutes: It was 30 min. Somebody else wrote 45 min, you wrote 1 h 30 min.")
    assert stored(app, note) == [{"minutes": 45, "gone": False}]
    app.click(f"{choice}: Visit", "push button", part=True)
    wait_for_row(app, note, minutes=minutes, gone=False)
    app.see("Visit, 1 h 30 min" if minutes == 90 else "Visit, 45 min")
    app.see_no_more("Somebody else wrote")


@pytest.mark.parametrize(("choice", "gone"), [("Remove anyway", True), ("Keep it", False)])
def test_COR_2_what_is_removed_here_and_changed_elsewhere_is_asked_for(
    app: App, choice: str, gone: bool
) -> None:
    """Given a removal that waits, when somebody else changes the activity, then the user sees what they
    wrote, and chooses whether it is removed."""
    begin(app)
    note = f"cor: {choice}"
    app.register(36, note=note)
    app.see("Everything is sent")
    app.stage.set(online=False)
    app.tab("Activities")
    app.click("Remove: Visit, 36 min", "push button", part=True)
    app.click("Remove", "push button")
    app.see("Will be removed.")
    app.backend.control.sql("update public.activities set minutes = 46 where note = %s", note)
    app.stage.set(online=True)
    app.see("Somebody has changed this activity since. Remove it anyway?")
    app.see("Minutes: It was 36 min. Somebody else wrote 46 min.")
    assert not app.sees("you wrote")
    app.click(f"{choice}: Visit", "push button", part=True)
    wait_for_row(app, note, minutes=46, gone=gone)
    app.see("You have registered nothing yet." if gone else "Edit: Visit, 46 min")
    app.see_no_more("Somebody")


def test_COR_2_what_others_wrote_while_the_form_was_open_stays(app: App) -> None:
    """Given the form of a stored activity, when somebody else writes a note, the app hears of it, and
    then the minutes are saved, then the note is theirs."""
    begin(app)
    app.register(37, note="cor: before")
    app.see("Everything is sent")
    app.tab("Activities")
    app.click("Edit: Visit, 37 min", "push button", part=True)
    app.see_written("37")
    write_elsewhere(app, "cor: theirs", minutes=37)
    app.type("Minutes", "38")
    app.click("Save", "push button")
    app.see("Visit, 38 min", "cor: theirs")
    wait_for_row(app, "cor: theirs", minutes=38, gone=False)


def write_elsewhere(app: App, note: str, *, minutes: int) -> None:
    """Let somebody else write a note, and the app ask for what is new."""
    app.backend.control.sql(
        "update public.activities set note = %s where minutes = %s", note, minutes
    )
    pull(app)


def pull(app: App) -> None:
    """Let the app ask for what is new, as after a tunnel, until it has it."""
    app.stage.set(online=False)
    app.backend.control.clear_requests()
    app.stage.set(online=True)
    app.wait(lambda: has_pulled(app), "the app does not ask for the activities")


def has_pulled(app: App) -> bool:
    """Whether the app has asked for more than the rows that it got: it has those."""
    asked = app.backend.control.requests("/rest/v1/activities", "GET")
    rows = [request["rows_out"] for request in asked if request["status"] == 200]
    return any(rows) and rows[-1] == 0


def test_COR_2_what_others_wrote_while_the_form_was_open_is_told_before_it_is_overwritten(
    app: App,
) -> None:
    """Given the form of a stored activity, when somebody else changes the minutes, the app hears of it,
    and then other minutes are saved, then the form says theirs first; saved again, the user's are stored."""
    begin(app)
    app.register(54, note="cor: unseen")
    app.see("Everything is sent")
    app.tab("Activities")
    app.click("Edit: Visit, 54 min", "push button", part=True)
    app.see_written("54")
    app.backend.control.sql("update public.activities set minutes = 55 where note = 'cor: unseen'")
    pull(app)
    app.type("Minutes", "56")
    app.click("Save", "push button")
    app.see("Minutes: It was 54 min. Somebody else wrote 55 min, you wrote 56 min.")
    assert stored(app, "cor: unseen") == [{"minutes": 55, "gone": False}]
    app.click("Save", "push button")
    wait_for_row(app, "cor: unseen", minutes=56, gone=False)


def test_COR_2_what_others_wrote_while_a_removal_was_asked_for_is_told(app: App) -> None:
    """Given the question whether an activity is removed, when somebody else changes it and the app hears
    of it, then the answer is asked for again."""
    begin(app)
    app.register(57, note="cor: asked")
    app.see("Everything is sent")
    app.tab("Activities")
    app.click("Remove: Visit, 57 min", "push button", part=True)
    app.see("It is removed for your organisation, too.")
    app.backend.control.sql("update public.activities set minutes = 58 where note = 'cor: asked'")
    pull(app)
    app.click("Remove", "push button")
    app.see("Somebody has changed this activity since. Remove it anyway?")
    assert stored(app, "cor: asked") == [{"minutes": 58, "gone": False}]
    app.click("Remove", "push button")
    wait_for_row(app, "cor: asked", minutes=58, gone=True)


@pytest.mark.parametrize("done", ["edited", "removed"])
def test_COR_2_the_first_answer_about_ones_own_activity_is_no_change_of_others(
    app: App, done: str
) -> None:
    """Given an activity that was sent and not read back, when it is read while its form or the question
    is open, then it is saved or removed: the server writes the same values otherwise."""
    begin(app)
    fault = app.backend.control.respond("/rest/v1/activities", 503, method="GET", times=1000)
    note = f"cor: own, {done}"
    app.register(59, note=note)
    app.see("Everything is sent")
    app.tab("Activities")
    app.click(
        "Edit: Visit, 59 min" if done == "edited" else "Remove: Visit, 59 min",
        "push button",
        part=True,
    )
    app.see("Edit the registration" if done == "edited" else "Remove this registration?")
    app.backend.control.clear_faults(fault)
    pull(app)
    if done == "edited":
        app.choose_time(app.shown_time(), "07", "15")
        app.click("Save", "push button")
        app.see("Visit, 59 min, today 07:15")
    else:
        app.click("Remove", "push button")
    wait_for_row(app, note, minutes=59, gone=done == "removed")


def test_COR_2_what_others_wrote_stays_beside_a_draft(app: App) -> None:
    """Given the form of a stored activity that was left before it was saved, when somebody else writes a
    note, then the form is offered with it and with what was written, and both are stored."""
    begin(app)
    app.register(47, note="cor: old")
    app.see("Everything is sent")
    app.tab("Activities")
    app.click("Edit: Visit, 47 min", "push button", part=True)
    app.type("Minutes", "48")
    app.click("Back", "push button")
    write_elsewhere(app, "cor: new", minutes=47)
    app.see("cor: new")
    app.click("Edit: Visit, 47 min", "push button", part=True)
    app.see("This is what you had written.")
    app.see_written("48", "cor: new")
    app.click("Save", "push button")
    wait_for_row(app, "cor: new", minutes=48, gone=False)


def test_COR_8_what_was_deleted_elsewhere_is_told(app: App) -> None:
    """Given a change that waits, when somebody else deletes the activity, then the user is told, and the
    change can only be dropped."""
    begin(app)
    app.register(39, note="cor: deleted")
    app.see("Everything is sent")
    app.stage.set(online=False)
    app.tab("Activities")
    edit(app, "Visit, 39 min", 40)
    app.backend.control.sql(
        "update public.activities set deleted_at = now() where note = 'cor: deleted'"
    )
    app.stage.set(online=True)
    app.see("Somebody has deleted this in the meantime.", "Drop my change: Visit, 40 min")
    assert not app.sees("Send again") and not app.sees("Remove:")
    app.click("Drop my change: Visit", "push button", part=True)
    app.see("You have registered nothing yet.")
    wait_for_row(app, "cor: deleted", minutes=39, gone=True)


def test_COR_3_a_change_that_the_server_refuses_can_be_dropped_or_edited(app: App) -> None:
    """Given a change to minutes that the organisation does not take, when it is refused, then the list
    offers no removal of the activity; edited to other minutes, it is stored."""
    rule = "alter table public.activities add constraint odd check (minutes <> 42) not valid"
    begin(app)
    app.backend.control.sql(rule)
    try:
        app.register(41, note="cor: refused")
        app.see("Everything is sent")
        app.tab("Activities")
        edit(app, "Visit, 41 min", 42)
        app.see("Drop my change: Visit, 42 min", "Send again: Visit, 42 min")
        assert not app.sees("Remove: Visit")
        edit(app, "Visit, 42 min", 43)
        wait_for_row(app, "cor: refused", minutes=43, gone=False)
    finally:
        app.backend.control.sql("alter table public.activities drop constraint odd")


def test_before_the_first_answer_nobody_says_that_there_is_nothing(app: App) -> None:
    """Given a server that does not give the activities, when the list is opened, then it does not say
    that nothing was registered; once the server does, they are there, with their age."""
    app.backend.control.sql("delete from public.activities where org_id = %s", ORG_3)
    fault = app.backend.control.respond("/rest/v1/activities", 503, method="GET", times=1000)
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.tab("Activities")
    app.see("There is nothing here yet. It will be fetched when you are connected.")
    assert not app.sees("You have registered nothing yet.")
    assert not app.sees("Last updated")
    app.backend.control.clear_faults(fault)
    app.stage.set(online=False)
    app.stage.set(online=True)
    app.see("You have registered nothing yet.", "Last updated today")


def test_the_keyboard_goes_on_where_it_was(app: App) -> None:
    """Given a list, when an activity is edited, then the focus is on it again; when the list goes on,
    then the focus is on the first activity that is new."""
    register_many(app, 52)
    app.start()
    app.sign_in()
    app.see("52")
    app.tab("Activities")
    app.see("Show more")
    app.press("Edit: Walk, 10 h 3 min")
    app.see_written("603")
    app.type("Minutes", "59")
    app.keys("Return")
    app.see_no_more("Edit the registration")
    app.wait(lambda: "Walk, 59 min" in app.focused(), "the focus has left the activity")
    app.press("Show more", "shift+Tab")
    app.wait(lambda: "Walk, 10 h 51 min" in app.focused(), "the focus is not on what is new")


def test_what_is_sent_says_so_to_a_screen_reader(app: App) -> None:
    """Given an activity, when it is sent, then the picture beside it is read out as that."""
    begin(app)
    app.stage.set(online=False)
    app.register(44)
    app.tab("Activities")
    app.see("Visit, 44 min")
    assert ["image", "Sent"] not in pictures(app)
    app.stage.set(online=True)
    app.wait(lambda: ["image", "Sent"] in pictures(app), f"no picture says it: {pictures(app)}")


def pictures(app: App) -> list[list[str]]:
    return [[role, name] for role, name, _ in app.desk.ask("texts") if role in ("image", "icon")]


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
    register_many(app, 59)
    app.start()
    app.sign_in()
    app.see("59")
    app.tab("Activities")
    app.see("Walk, 10 h 1 min", "Walk, 10 h 50 min", "Show more")
    assert not app.sees("Walk, 10 h 59 min")
    app.click("Show more", "push button")
    app.see("Walk, 10 h 59 min")
    app.see_no_more("Show more")
