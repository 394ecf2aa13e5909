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
