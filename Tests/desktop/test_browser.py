"""BankID and Vipps: the browser opens, and returns to the app on loopback (SES-13)."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import pytest

from desk import PATIENCE_S, App


def pass_provider(app: App, url: str) -> str:
    """Be the person in the browser. Returns the page on which the browser ends."""
    app.backend.control.sign_in_as("solo@example.org")
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE_S) as page:
            return str(page.read().decode())
    finally:
        app.backend.control.sign_in_as(None)


@pytest.mark.parametrize("method", ["BankID", "Vipps"])
def test_SES_13_the_browser_returns_to_the_app(app: App, method: str) -> None:
    """Given the sign-in, when BankID or Vipps is chosen and the app is killed while the browser is open,
    then the browser's return completes the sign-in after the next start."""
    app.start()
    app.click(method, "push button")
    app.see("Continue in the browser.")
    url = app.opened()
    if method == "Vipps":
        app.kill()
        app.start()
        app.see("Welcome")
    assert "You can close this page and return to the app." in pass_provider(app, url)
    app.see("You this year", "Besøksvenn Østfold")


def test_SES_13_a_foreign_code_is_refused(app: App) -> None:
    """Given a sign-in under way, when the redirect comes with the code of another device, then nobody is
    signed in, and the sign-in goes on; another path is not answered."""
    app.start()
    app.click("BankID", "push button")
    app.see("Continue in the browser.")
    url = app.opened()
    pass_provider(app, re.sub("code_challenge=[^&]+", "code_challenge=" + "A" * 43, url))
    app.see("That sign-in was not started here. Please start again in this app.")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(
            app.redirect.replace("signed-in", "other") + "?code=1", timeout=PATIENCE_S
        )
    pass_provider(app, url)  # the sign-in under way goes on
    app.see("You this year", "Besøksvenn Østfold")


def test_a_forgotten_password_is_renewed_in_the_browser(app: App) -> None:
    """Given the form of the password and a page for new ones, when the password was forgotten, then the
    browser opens that page."""
    app.environment["HOLDFAST_NEW_PASSWORD_URL"] = "http://127.0.0.1:1/new-password"
    app.start()
    app.click("E-mail and password")
    app.click("Forgot your password?", "push button")
    assert app.opened() == "http://127.0.0.1:1/new-password"
    app.see("Continue in the browser.")


def test_without_a_page_for_new_passwords_a_person_is_named_who_helps(app: App) -> None:
    """Given no page for new passwords, when the password was forgotten, then the app says who helps."""
    app.start()
    app.click("E-mail and password")
    app.click("Forgot your password?", "push button")
    app.see("Ask your coordinator for a new password, or sign in another way.")
