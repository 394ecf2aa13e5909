"""A day of a peer mentor, from the click to the row in PostgreSQL (story 002, OFF-1, OFF-2, OFF-4)."""

from __future__ import annotations

import calendar
import datetime
import time
import zoneinfo

from desk import ZONE, App


def now() -> datetime.datetime:
    """The time on the desk."""
    return datetime.datetime.now(zoneinfo.ZoneInfo(ZONE))


def rows(app: App, note: str) -> list[dict[str, object]]:
    query = "select type, minutes, note from public.activities where note = %s"
    return app.backend.control.sql(query, note)


def test_OFF_1_OFF_4_what_is_registered_offline_is_stored_once(app: App) -> None:
    """Given a peer mentor without a network, when an activity is registered, the app is killed and
    started again offline, and the network returns, then the row is in PostgreSQL once."""
    app.start()
    app.see("Welcome", "BankID", "Vipps")
    app.sign_in()
    app.see("Besøksvenn Østfold", "Peer mentor")

    app.stage.set(online=False)
    app.see("You are offline. What you register is kept and sent later.")
    app.register(45, note="offline, killed")
    app.see("1 not sent yet")
    app.kill()
    assert rows(app, "offline, killed") == []

    app.start()
    app.see("1 not sent yet", "You are offline.")
    app.tab("Outbox")
    app.see("Visit, 45 min, today")

    app.stage.set(online=True)
    app.see("Done: what was waiting has been sent.")
    app.see("Everything is sent")
    assert rows(app, "offline, killed") == [
        {"type": "visit", "minutes": 45, "note": "offline, killed"}
    ]


def test_KEEP_4_RES_6_lock_unlock_and_log_out(app: App) -> None:
    """Given a session, when it is locked, then only the right finger opens it; when the user logs out,
    then the reader has no key."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Settings", "push button")
    app.click("Lock now", "push button")
    app.see("The app is locked. Please confirm that it is you.")
    assert not app.sees("Besøksvenn Østfold")

    app.unlock(accepted=False)
    app.see("We did not recognise you. Please sign in to continue.", "BankID")
    app.unlock()
    app.see("Besøksvenn Østfold")

    app.stage.set(online=False)
    app.register(30)
    app.log_out("1 registration is not sent.")
    app.see("You are signed out. Sign in to continue.")
    assert not app.stage.has_key


def test_a_day_in_the_future_is_refused_at_the_day(app: App) -> None:
    """Given the form, when the calendar is leafed to the next month, then the day says why that cannot
    be, and nothing is queued; when it is leafed back, then the activity is stored."""
    today = now()
    year, month = (today.year, today.month + 1) if today.month < 12 else (today.year + 1, 1)
    day = min(today.day, calendar.monthrange(year, month)[1])
    ahead = f"{day} {calendar.month_name[month]}"
    refusal = "This day is in the future. Choose today or an earlier day."
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Register an activity", "push button")
    app.type("Minutes", "40")
    app.type("Note", "next month")

    app.click(f"{today.day} {today:%B}", "push button")
    app.see(str(today.year), "Sun")
    app.keys("ctrl+Right", "Escape")
    app.see(ahead, refusal)
    app.click("Save", "push button")
    time.sleep(1)  # what is queued would be sent now
    app.see(refusal, "Save")
    assert rows(app, "next month") == []

    app.click(ahead, "push button")
    app.see(str(year), "Sun")
    app.keys("ctrl+Left", "Escape")
    app.see_no_more(refusal)
    app.click("Save", "push button")
    app.see("You this year", "Everything is sent")
    query = "select occurred_at <= now() as past from public.activities where note = 'next month'"
    assert app.backend.control.sql(query) == [{"past": True}]


def test_an_edit_moves_an_activity_to_another_day(app: App) -> None:
    """Given an activity that waits, when its day is changed, then the outbox and PostgreSQL have that
    day, and the time of the day stays."""
    today = now()
    year, month = (today.year, today.month - 1) if today.month > 1 else (today.year - 1, 12)
    day = min(today.day, calendar.monthrange(year, month)[1])
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.stage.set(online=False)
    before = now().replace(second=0, microsecond=0)
    app.register(35, note="another day")
    after = now()
    app.tab("Outbox")
    app.click("Edit: Visit, 35 min", "push button", part=True)
    app.click(f"{today.day} {today:%B}", "push button")
    app.see(str(today.year), "Sun")
    app.keys("ctrl+Left", "Escape")
    app.see(f"{day} {calendar.month_name[month]}")
    app.click("Save", "push button")
    app.see("Changed.", f"Visit, 35 min, {day} {calendar.month_name[month]} at ")

    app.click("Edit: Visit, 35 min", "push button", part=True)
    app.see(f"{day} {calendar.month_name[month]}")
    app.type("Minutes", "36")
    app.click("Save", "push button")
    app.see(f"Visit, 36 min, {day} {calendar.month_name[month]} at ")
    app.stage.set(online=True)
    app.see("Done: what was waiting has been sent.")
    query = f"""select minutes, occurred_at at time zone '{ZONE}' as at
      from public.activities where note = 'another day'"""
    [row] = app.backend.control.sql(query)
    at = datetime.datetime.fromisoformat(str(row["at"]))
    assert (row["minutes"], at.date()) == (36, datetime.date(year, month, day))
    assert before.time() <= at.time() <= after.time()
