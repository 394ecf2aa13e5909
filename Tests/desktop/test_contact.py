"""The page of a contact: the phone number can be used."""

from __future__ import annotations

from desk import App


def open_contact(app: App) -> None:
    app.start()
    app.sign_in()
    app.see("Besøksvenn Østfold")
    app.tab("Contacts")
    app.type("Search contacts", "testas")
    app.click("Cæcilie Testås", "list item", part=True)


def test_a_phone_number_is_copied_and_called(app: App) -> None:
    """Given the page of a contact with a phone number, when it is copied, then it can be pasted; when it
    is called, then the desktop's program for calls gets it."""
    open_contact(app)
    app.see("Phone", "+47 000 00002")
    app.click("Call: +47 000 00002", "push button")
    assert app.opened() == "tel:+4700000002"
    app.click("Copy: +47 000 00002", "push button")
    app.see("Copied.")
    app.click("Register an activity", "push button")
    app.see("Save")
    app.keys("ctrl+v")  # the form opens in the field of the minutes
    app.see_written("+47 000 00002")


def test_what_is_no_phone_number_has_no_buttons(app: App) -> None:
    """Given a contact whose number may not be seen, or no network, then nothing can be called."""
    app.backend.control.sql("update public.contact_details set phone = null")
    try:
        open_contact(app)
        app.see("Phone", "Address", "Prøveveien")
        assert not [text for text in app.texts() if "Call" in text or "Copy" in text]
    finally:
        app.backend.control.sql(
            "update public.contact_details set phone = '+47 000 ' || right(id::text, 5)"
        )
    app.stage.set(online=False)
    app.click("Back", "push button")
    app.click("Cæcilie Testås", "list item", part=True)
    app.see("Phone")
    assert not [text for text in app.texts() if "Call" in text or "Copy" in text]
