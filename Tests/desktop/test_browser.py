"""BankID and Vipps: the browser opens, and returns to the app on loopback (SES-13)."""

from __future__ import annotations

import pathlib
import re
import urllib.error
import urllib.request

import pytest

from desk import PATIENCE_S, App


def opened_url(app: App) -> str:
    """The URL with which the desktop's browser was started."""
    file = pathlib.Path(app.desk.environment["HOME"]) / "opened"
    app.wait(lambda: file.exists() and file.read_text().strip(), "the browser was not opened")
    url = file.read_text().strip()
    file.unlink()
    return url


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
    url = opened_url(app)
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
    url = opened_url(app)
    pass_provider(app, re.sub("code_challenge=[^&]+", "code_challenge=" + "A" * 43, url))
    app.see("That sign-in was not started here. Please start again in this app.")
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(
            app.redirect.replace("signed-in", "other") + "?code=1", timeout=PATIENCE_S
        )
    pass_provider(app, url)  # the sign-in under way goes on
    app.see("You this year", "Besøksvenn Østfold")
