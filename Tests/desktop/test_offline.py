"""Stories 002 and 004: the app is of use without a network, for a peer mentor and an administrator."""

from __future__ import annotations

import pytest

from desk import App

HOUR_MS = 3_600_000
PEOPLE = {
    "solo@example.org": ("Besøksvenn Østfold", "Peer mentor"),
    "admin@example.org": ("Frivillig Ås", "Administrator"),
}


@pytest.mark.parametrize("email", PEOPLE)
def test_OFF_1_to_OFF_9_a_day_without_a_network(app: App, email: str) -> None:
    """Given somebody who signed in online, when the network is gone, the app is opened again and
    biometrics succeed, then it works from the cache, and sends by itself when the network returns."""
    name, role = PEOPLE[email]
    control = app.backend.control
    app.start()
    app.sign_in(email)
    if email.startswith("admin"):
        app.click(name, "list item", part=True)
    app.see(name, role)
    app.tab("Contacts")
    app.see("30 contacts")
    app.quit()

    app.stage.set(online=False, clock_ms=2 * HOUR_MS)
    app.start()
    app.unlock()
    app.see(name, role)
    app.see("You are offline. What you register is kept and sent later.")
    app.register(15, note=email)
    app.see("Some of what you have registered is not sent yet.")

    app.tab("Contacts")
    app.type("Search contacts", "asta")  # Aså, without the ring; nobody has it
    app.see("No contact has this name or municipality.")
    app.type("Search contacts", "ås")
    app.see("contacts")
    app.type("Search contacts", "bjorn proves")
    app.type("Search contacts", "testas")
    app.see("Testås")
    app.click("Testås", "list item", part=True)
    app.see("Some details are shown only when you are connected. What we have saved is shown here.")
    app.see("Phone, Address, National identity number")
    app.click("Back", "push button")

    control.clear_requests()
    app.stage.set(online=True)
    app.see("Done: what was waiting has been sent.")
    app.tab("Home")
    app.see(name, "Everything is sent")  # no prompt, no other screen
    assert control.count("/auth/v1/token", query="grant_type=refresh_token") == 1
    rows = control.sql("select minutes from public.activities where note = %s", email)
    assert rows == [{"minutes": 15}]


def test_OFF_6_network_only_fields_are_fetched_while_the_page_is_open(app: App) -> None:
    """Given a network, when a contact is opened, then its network-only fields come from the server."""
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.tab("Contacts")
    app.type("Search contacts", "testas")
    app.see("Testås")
    app.click("Testås", "list item", part=True)
    app.see("Phone", "+47 000", "Address", "Prøveveien")
    app.see("National identity number", "Not available to you")


def test_QUE_4_what_is_refused_is_explained_edited_and_sent(app: App) -> None:
    """Given an activity that the server refuses, then the outbox says why and names the field; when it
    is edited, then it is sent."""
    control = app.backend.control
    rule = "alter table public.activities add constraint short check (minutes <> 77)"
    control.sql(rule)
    try:
        app.start()
        app.sign_in()
        app.see("Besøksvenn Østfold")
        app.register(77, note="refused")
        app.see("Done, but something could not be sent.")
        app.tab("Outbox")
        app.see("Could not be sent", "The rules do not allow this.")
        app.click("Edit: Visit, 1 h 17 min", "push button", part=True)
        app.type("Minutes", "0")
        app.click("Save", "push button")
        app.see("Write the number of minutes, from 1 to 1440.")
        app.type("Minutes", "76")
        app.click("Save", "push button")
        app.see("Done: what was waiting has been sent.")
    finally:
        control.sql("alter table public.activities drop constraint short")
    query = "select minutes from public.activities where note = 'refused'"
    assert control.sql(query) == [{"minutes": 76}]
