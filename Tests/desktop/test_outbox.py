"""The outbox: each entry is recognised by its person and its note."""

from __future__ import annotations

from desk import App


def test_an_entry_shows_its_person_and_its_note(app: App) -> None:
    """Given an activity with a contact and a note that waits, and one without either, when the outbox is
    opened, then the first shows both, and the other says neither."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.tab("Contacts")
    app.type("Search contacts", "testas")
    app.click("Cæcilie Testås", "list item", part=True)
    app.stage.set(online=False)
    app.click("Register an activity", "push button")
    app.type("Minutes", "50")
    app.type("Note", "Coffee & a <long> talk")
    app.click("Save", "push button")
    app.tab("Home")
    app.register(51)
    app.tab("Outbox")
    [first, other] = [entry(app, minutes) for minutes in (50, 51)]
    assert first[1:3] == ["With Cæcilie Testås", "Coffee & a <long> talk"]
    assert other[1:] == ["Waits to be sent."]


def entry(app: App, minutes: int) -> list[str]:
    """The lines of the entry of so many minutes."""
    app.see(f"Visit, {minutes} min")
    lines: list[str] = app.desk.ask("lines", name=f"Visit, {minutes} min")
    return [line for text in lines for line in text.split("\n")]


def test_a_long_note_is_shortened(app: App) -> None:
    """Given a note of 4000 characters, when the outbox is opened, then it shows how the note begins."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.stage.set(online=False)
    app.register(52, note="å" * 4000)
    app.tab("Outbox")
    [_, note, _] = entry(app, 52)
    assert note == "å" * 120 + "…"


def test_offline_is_said_once(app: App) -> None:
    """Given an activity that waits and no network, when home and the outbox are opened, then each says
    once that there is no network; the page of a contact, too."""
    offline = "You are offline."
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.stage.set(online=False)
    app.register(53)
    app.see("1 not sent yet", offline)
    assert count(app, offline) == 1
    app.tab("Outbox")
    app.see("Visit, 53 min", offline)
    assert count(app, offline) == 1
    app.tab("Contacts")
    app.type("Search contacts", "testas")
    app.click("Cæcilie Testås", "list item", part=True)
    app.see("Phone")
    assert count(app, "connect") == 1, "|".join(app.texts())


def count(app: App, text: str) -> int:
    """How many texts on the screen say this."""
    return sum(text in seen for seen in app.texts())
