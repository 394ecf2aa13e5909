"""The form: finds every contact, changes what its user changes, and keeps what is half-written."""

from __future__ import annotations

import datetime
import uuid
import zoneinfo
from collections.abc import Iterator

import pytest
from local_supabase.demo import ORG_3

from desk import ZONE, App

#: In the alphabet it comes after all others.
LAST = "Åshild Aaker"
#: As many contacts as the form once offered, twice over.
MANY = 430


@pytest.fixture
def last(app: App) -> Iterator[str]:
    """The id of the last one of many contacts."""
    control, contact = app.backend.control, str(uuid.uuid4())
    control.sql(
        "insert into public.contacts (org_id, name, relation) select %s, 'Kontakt ' || n, 'form'"
        " from generate_series(1, %s) as n",
        ORG_3, MANY,
    )  # fmt: skip
    control.sql(
        "insert into public.contacts (id, org_id, name, relation) values (%s, %s, %s, 'form')",
        contact, ORG_3, LAST,
    )  # fmt: skip
    yield contact
    control.sql("delete from public.activities where note like 'form%%'")
    control.sql("delete from public.contacts where relation = 'form'")


def stored(app: App, note: str) -> list[dict[str, object]]:
    query = "select minutes, contact_id::text from public.activities where note = %s"
    return app.backend.control.sql(query, note)


def begin(app: App) -> None:
    """Sign in, with all contacts on this computer."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.tab("Contacts")
    app.type("Search contacts", "åshild")
    app.see(LAST)


def save(app: App) -> None:
    """Save the form, and wait until it has closed."""
    app.click("Save", "push button")
    app.see_no_more("Save")


def nothing_is_offered(app: App) -> None:
    """The form is open, and empty."""
    app.see("Save")
    assert not app.sees("This is what you had written.")
    assert not {"77", "half-written", "78", "form: saved"}.intersection(
        text for _, _, text in app.desk.ask("texts")
    )


def choose(app: App, text: str) -> None:
    """Find a contact in the form, and take the first one."""
    app.click("With", "list item", part=True)
    app.type("Find a contact", text)
    app.see(LAST)
    app.click(LAST, "list item", part=True)


def test_FIX_28_every_contact_can_be_chosen(app: App, last: str) -> None:
    """Given more contacts than a list shows, when an activity is registered from the page of the last
    one, and another one with the form's search, then both are with that contact."""
    begin(app)
    app.click(LAST, "list item", part=True)
    app.click("Register an activity", "push button")
    app.see("With", LAST)
    app.type("Minutes", "10")
    app.type("Note", "form: page")
    save(app)

    app.tab("Home")
    app.click("Register an activity", "push button")
    app.see("Nobody in particular")
    choose(app, "ashild")
    app.type("Minutes", "11")
    app.type("Note", "form: search")
    save(app)
    app.see("Everything is sent")
    assert stored(app, "form: page") == [{"minutes": 10, "contact_id": last}]
    assert stored(app, "form: search") == [{"minutes": 11, "contact_id": last}]


@pytest.mark.parametrize("is_gone", [False, True])
def test_FIX_28_an_edit_changes_what_its_user_changes(app: App, last: str, is_gone: bool) -> None:
    """Given an activity that waits, with the last contact or with one that is no longer on this
    computer, when its minutes are edited, then its contact, its day and its note stay."""
    begin(app)
    app.click(LAST, "list item", part=True)
    app.stage.set(online=False)
    app.click("Register an activity", "push button")
    app.type("Minutes", "12")
    app.type("Note", "form: edit")
    save(app)
    if is_gone:
        control = app.backend.control
        # Nothing can be stored meanwhile; the contact's removal arrives.
        control.sql(
            "alter table public.activities add constraint held check (note <> 'form: edit')"
        )
        control.sql("update public.contacts set deleted_at = now() where id = %s", last)
        app.stage.set(online=True)
        app.see_no_more(LAST)
        control.sql("alter table public.activities drop constraint held")
    app.tab("Outbox")
    app.click("Edit: Visit, 12 min", "push button", part=True)
    app.see("A contact that is not kept here" if is_gone else LAST)
    app.type("Minutes", "13")
    save(app)
    app.stage.set(online=True)
    app.tab("Home")
    app.see("Everything is sent")
    assert stored(app, "form: edit") == [{"minutes": 13, "contact_id": last}]


def test_FIX_30_what_is_half_written_is_offered_again(app: App) -> None:
    """Given a form that is half-written, when the session is locked and unlocked, or the user goes back,
    then the form is offered as it was; when it is saved or begun anew, it is empty."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Register an activity", "push button")
    app.type("Minutes", "77")
    app.type("Note", "half-written")
    app.activate("lock")
    app.see("The app is locked. Please confirm that it is you.")
    assert not any("half-written" in text for _, _, text in app.desk.ask("texts"))
    app.unlock()
    app.see("This is what you had written.")
    app.see_written("77", "half-written")

    app.click("Back", "push button")
    app.see("You this year")
    app.click("Register an activity", "push button")
    app.see("This is what you had written.")
    app.see_written("77", "half-written")
    app.click("Start over", "push button")
    app.see_no_more("This is what you had written.")
    nothing_is_offered(app)
    app.click("Back", "push button")
    app.see("You this year")
    app.click("Register an activity", "push button")
    nothing_is_offered(app)

    app.type("Minutes", "78")
    app.type("Note", "form: saved")
    app.click("Back", "push button")
    app.see("You this year")
    app.click("Register an activity", "push button")
    app.see_written("78", "form: saved")
    save(app)
    app.click("Register an activity", "push button")
    nothing_is_offered(app)


def test_FIX_30_nobody_else_is_offered_what_is_half_written(app: App) -> None:
    """Given a form that is half-written, when the user logs out and somebody else signs in, or the
    same user does, then the form is empty."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Register an activity", "push button")
    app.type("Note", "half-written")
    app.click("Back", "push button")
    app.log_out()
    app.see("You are signed out. Sign in to continue.")
    for email, place in (("admin@example.org", "Frivillig Ås"), ("solo@example.org", "")):
        app.sign_in(email)
        if place:
            app.click(place, "list item", part=True)
        app.see("You this year")
        app.click("Register an activity", "push button")
        nothing_is_offered(app)
        app.click("Back", "push button")
        app.log_out()
        app.see("You are signed out. Sign in to continue.")


def test_FIX_30_what_is_half_written_is_in_no_file(app: App) -> None:
    """Given a form that is half-written, when the user goes back, the session is locked, and the program
    is killed, then no file of the app or of its desktop has what was written."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Register an activity", "push button")
    app.type("Note", "seven herons")
    app.see_written("seven herons")
    assert holding(app, "seven herons") == []
    app.click("Back", "push button")
    app.see("You this year")
    assert holding(app, "seven herons") == []
    app.activate("lock")
    app.see("The app is locked. Please confirm that it is you.")
    app.kill()
    assert holding(app, "seven herons") == []


def holding(app: App, text: str) -> list[str]:
    """The files below the app's folder and the user's home that have this text."""
    files = [path for place in (app.folder, app.desk.folder) for path in place.rglob("*")]
    assert any(path.name == "holdfast.db" for path in files)
    forms = (text.encode(), text.encode("utf-16-le"))
    return [
        str(path)
        for path in files
        if path.is_file() and any(form in path.read_bytes() for form in forms)
    ]


def moment(app: App, note: str) -> datetime.datetime:
    """When that activity was, on the desk's clock."""
    query = f"""select (occurred_at at time zone '{ZONE}')::text as at
      from public.activities where note = %s"""
    [row] = app.backend.control.sql(query, note)
    return datetime.datetime.fromisoformat(str(row["at"]))


def test_the_hour_and_minute_are_chosen(app: App) -> None:
    """Given the form, then it shows the time that it stores; when an hour and a minute are chosen, then
    these are stored, with the same day; in an edit, too, and what is not edited stays."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.stage.set(online=False)
    today = datetime.datetime.now(zoneinfo.ZoneInfo(ZONE)).date()
    app.click("Register an activity", "push button")
    app.type("Minutes", "20")
    app.type("Note", "form: time")
    app.choose_time(app.shown_time(), "09", "05")
    save(app)
    app.tab("Outbox")
    app.see("Visit, 20 min, today 09:05")
    app.click("Edit: Visit, 20 min", "push button", part=True)
    app.choose_time("09:05", "08", "40")
    save(app)
    app.see("Visit, 20 min, today 08:40")
    app.click("Edit: Visit, 20 min", "push button", part=True)
    app.type("Minutes", "21")
    save(app)
    app.stage.set(online=True)
    app.tab("Home")
    app.see("Everything is sent")
    assert moment(app, "form: time") == datetime.datetime.combine(today, datetime.time(8, 40))


def test_a_time_in_the_future_is_refused_at_the_time(app: App) -> None:
    """Given the form, when an hour of today is chosen that has not come, then the time says why that
    cannot be, and nothing is queued; an hour that has come is stored."""
    refusal = "This time has not come yet. Choose an earlier one."
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Register an activity", "push button")
    app.type("Minutes", "22")
    app.type("Note", "form: ahead")
    app.choose_time(app.shown_time(), "23", "50")
    app.see(refusal)
    app.click("Save", "push button")
    app.see(refusal, "Save")
    app.choose_time("23:50", "07", "50")
    app.see_no_more(refusal)
    save(app)
    app.see("Everything is sent")
    assert moment(app, "form: ahead").time() == datetime.time(7, 50)


def test_usual_durations_need_one_click(app: App) -> None:
    """Given the form, when the button of a usual duration is clicked, then the minutes are those."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Register an activity", "push button")
    for name, minutes in (("½ h", "30"), ("1 h", "60"), ("1½ h", "90")):
        app.click(f"{name}, {minutes} minutes", "push button")
        app.see_written(minutes)
    app.type("Note", "form: usual")
    save(app)
    app.see("Everything is sent")
    assert [row["minutes"] for row in stored(app, "form: usual")] == [90]
