"""Every message, banner and prompt in the language of the app (LAB-1)."""

from __future__ import annotations

from typing import Any

import pytest
from holdfast.types import Decision

from support.directory_fixtures import DirectoryFixtures
from support.phone import TOKEN_S
from support.users import MakePhone

LANGUAGES = ["nb", "nn", "en"]
OUTCOMES: list[Any] = [
    "failed", "cancelled", "lockout", "lockout_permanent", "not_enrolled", "unavailable",
    "invalidated",
]  # fmt: skip


def texts(phones: MakePhone, directory: DirectoryFixtures, language: str) -> dict[str, str]:
    """The texts that a user of an app in this language sees, by code."""
    read: dict[str, str] = {}

    def see(decision: Decision) -> None:
        if decision["message"] is not None:
            read[decision["message"]["code"]] = decision["message"]["text"]
        for banner in decision["banners"]:
            read[banner["code"]] = banner["text"]

    org = directory.organisation()
    person = directory.person(org)
    phone = phones(locale=language)
    app = phone.start()
    see(app.screen)
    app.sign_in(directory.person())
    see(app.screen)
    app.session_logout()
    app.sign_in(person)
    see(app.route_check({"route": "/admin"})["screen"])  # type: ignore[arg-type]
    app.go_offline()
    app.settle()
    app.register()
    see(app.screen)
    for reason in app.queue_explain()["reasons"]:
        read[reason["code"]] = reason["text"]
    see(app.session_lock())
    for outcome in OUTCOMES:
        app = phone.start(online=False)
        see(app.screen)
        see(app.unlock(outcome))
        for reason in app.queue_explain()["reasons"]:
            read[reason["code"]] = reason["text"]
    app.go_online()
    app.sign_in(person)
    phone.pass_time(TOKEN_S + 60)
    see(phone.start().screen)
    see(phone.app.touch() if phone.app else app.screen)
    phone.app.settle()  # type: ignore[union-attr]
    directory.control.set_org(org.id, "disabled")
    app = phone.start()
    app.settle()
    see(app.screen)
    directory.control.set_org(org.id, "active")
    directory.control.set_membership(person.id, org.id, status="ended")
    app = phone.start()
    app.settle()
    see(app.screen)
    directory.control.revoke_sessions(person.id)
    app = phone.start()
    app.settle()
    see(app.screen)
    app.sign_in_complete({"email": person.email, "password": "wrong-wrong"})
    see(app.screen)
    app.settle()
    see(app.screen)
    see(app.session_logout()["screen"])
    return {code: text.replace(org.name, "ORG") for code, text in read.items()}


def test_LAB_1_every_text_is_in_the_language_of_the_app(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    read = {language: texts(phones, directory, language) for language in LANGUAGES}
    codes = set(read["nb"])
    assert codes == set(read["nn"]) == set(read["en"])
    assert len(codes) >= 20, sorted(codes)
    for language in LANGUAGES:
        assert all(len(text) > 3 for text in read[language].values())
        assert all(code not in text for code, text in read[language].items() if "_" in code)
        assert "ORG" in read[language]["membership_revoked"]
    assert [
        code for code in codes if read["en"][code] in {read["nb"][code], read["nn"][code]}
    ] == []
    assert sum(read["nb"][code] != read["nn"][code] for code in codes) > len(codes) / 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_LAB_1_texts_are_short_and_calm(
    phones: MakePhone, directory: DirectoryFixtures, language: str
) -> None:
    for code, text in texts(phones, directory, language).items():
        assert len(text) <= 160, (code, text)
        assert "!" not in text, (code, text)
        assert not any(word in text.lower() for word in ("token", "http", "json", "error")), text
