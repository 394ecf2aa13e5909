"""What every user needs: keys instead of a mouse, and another language."""

from __future__ import annotations

from desk import App


def test_LAB_1_the_language_changes_without_a_sign_in(app: App) -> None:
    """Given a session, when another language is chosen, then the library and the app speak it, and the
    next start too."""
    app.start()
    app.sign_in()
    app.see("You this year")
    app.stage.set(online=False)
    app.click("Settings", "push button")
    app.click("Language")  # from English, the last of the list, to Bokmål
    app.keys("Up", "Up", "Return")
    app.see("Du er uten nett. Det du registrerer, blir tatt vare på og sendt senere.", "Du i år")
    app.quit()
    app.start()
    app.see("Du i år", "Registrer en aktivitet")


def test_everything_goes_by_keyboard(app: App) -> None:
    """Given a session, when only keys are pressed, then an activity is registered and the app locked."""
    app.start()
    app.sign_in()
    app.see("You this year")
    app.keys("ctrl+n")
    app.see("Minutes", "Save")
    app.keys("3", "5", "Return")  # the form opens in its first field to fill
    query = "select count(*) as rows from public.activities where minutes = 35"
    app.wait(lambda: app.backend.control.sql(query) == [{"rows": 1}], "nothing is stored")
    app.keys("ctrl+l")
    app.see("The app is locked. Please confirm that it is you.")


def test_every_button_has_a_word(app: App) -> None:
    """Given a user of several organisations, when every page is visited, then no button has a picture
    alone."""
    app.start()
    app.sign_in("mentor@example.org")
    app.click("Mentorforeningen Nordlys", "list item", part=True)
    app.see("You this year", "Change organisation")
    assert app.desk.ask("wordless") == []
    app.tab("Contacts")
    app.type("Search contacts", "testas")
    app.see("Cæcilie Testås")
    assert app.desk.ask("wordless") == []
    app.click("Cæcilie Testås", "list item", part=True)
    app.see("Phone", "+47 000")
    assert app.desk.ask("wordless") == []
    app.click("Register an activity", "push button")
    app.see("Save")
    assert app.desk.ask("wordless") == []
    app.click("Back", "push button")
    app.tab("Outbox")
    app.see("Everything is sent")
    assert app.desk.ask("wordless") == []
    app.click("Settings", "push button")
    app.see("Lock now")
    assert app.desk.ask("wordless") == []
