"""Stories 001 and 003: the session is resumed, renewed, switched and ended as the user expects."""

from __future__ import annotations

from desk import PATIENCE_S, App

HOUR_MS = 3_600_000


def test_RES_2_RES_3_an_expired_session_asks_for_a_finger_and_is_renewed(app: App) -> None:
    """Given an expired token, when the app starts and biometrics succeed, then the server renews the
    session, and home appears."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.quit()
    app.stage.set(clock_ms=2 * HOUR_MS)
    app.backend.control.clear_requests()
    app.start()
    app.see("It has been a while. Please confirm that it is you.")
    app.unlock()
    app.see("Besøksvenn Østfold")
    refreshes = app.backend.control.count("/auth/v1/token", query="grant_type=refresh_token")
    assert refreshes == 1


def test_KEEP_3_KEEP_7_a_session_that_the_server_ended(app: App) -> None:
    """Given a session that was ended elsewhere, when the app returns, then it says so and keeps what is
    registered."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.stage.set(online=False)
    app.register(20, note="kept")
    app.backend.control.revoke_sessions("solo@example.org")
    app.quit()
    app.stage.set(online=True, clock_ms=2 * HOUR_MS)
    app.start()
    app.unlock()
    app.see("Your session has ended. Please sign in again; what you have registered is kept.")
    app.sign_in()
    app.see("Done: what was waiting has been sent.")
    query = "select minutes from public.activities where note = 'kept'"
    assert app.backend.control.sql(query) == [{"minutes": 20}]


def test_RES_6_a_prompt_that_is_cancelled_offers_the_methods(app: App) -> None:
    """Given a locked session, when the user cancels the prompt, then BankID and Vipps are offered, and
    unlocking beside them."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Settings")
    app.click("Lock now")
    app.see("The app is locked. Please confirm that it is you.")
    app.click("Unlock", "push button")
    app.see("Put your finger on the reader.")
    app.click("Cancel", "push button")
    app.see("Unlocking was cancelled. Please sign in to continue.", "BankID", "Vipps", "Unlock")
    app.unlock()
    app.see("Besøksvenn Østfold")


def test_a_lock_takes_the_prompt_of_an_unlock_back(app: App) -> None:
    """The prompt stayed, and a finger on the reader released a key that nobody needed."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.click("Settings")
    app.click("Lock now")
    app.see("The app is locked. Please confirm that it is you.")
    app.click("Unlock", "push button")
    app.see("Put your finger on the reader.")
    assert app.stage.waiting_for_finger.wait(PATIENCE_S)
    # When something else than the window, which is behind the prompt, locks
    app.activate("lock")
    app.see_no_more("Put your finger on the reader.")
    app.see("The app is locked. Please confirm that it is you.")
    app.unlock()
    app.see("Besøksvenn Østfold")


def test_the_app_says_who_is_signed_in(app: App) -> None:
    """Given a session, then home and the settings say whose it is, also after a start without a network
    whose token has expired; a log-out forgets it."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold", "Peer mentor · solo@example.org")
    app.click("Settings", "push button")
    app.see("Signed in", "solo@example.org")
    app.quit()
    app.stage.set(online=False, clock_ms=2 * HOUR_MS)
    app.start()
    app.unlock()
    app.see("Peer mentor · solo@example.org")
    app.stage.set(online=True)
    app.log_out()
    app.see("You are signed out. Sign in to continue.")
    assert not app.sees("solo@example.org")
    found = app.keyring("search", "--all", "--unlock")
    assert "attribute.name = device" in found
    assert "solo@example.org" not in found
    app.sign_in("nobody@example.org")
    app.see("Organisation")
    assert not app.sees("solo@example.org")
