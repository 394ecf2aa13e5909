"""A sign-in can be cancelled at any moment (ATK-15, B10)."""

from __future__ import annotations

from typing import Any, cast

import pytest

from support.directory_fixtures import PASSWORD, DirectoryFixtures, Person
from support.phone import App, Phone
from support.screens import seen, why
from support.sign_in import begin, browse, finish, refused
from support.users import SignedIn
from support.waking import another


def cancel(app: App) -> tuple[bool, str]:
    """Cancel; returns whether a sign-in was under way, and the screen."""
    reply = app.sign_in_cancel()
    return reply["cancelled"], reply["screen"]["screen"]


def test_ATK_15_a_callback_after_a_cancel_is_refused(phone: Phone, person: Person) -> None:
    app = phone.start()
    callback = browse(begin(app)["url"])
    assert cancel(app) == (True, "sign_in")
    assert refused(app, callback) == "sign_in.cancelled"

    app = phone.start()
    assert refused(app, callback) == "sign_in.cancelled"
    assert app.poll()["requests"] == []
    finish(app, browse(begin(app)["url"]))
    assert app.screen["screen"] == "home"


def test_ATK_15_a_cancelled_sign_in_leaves_no_verifier(phone: Phone) -> None:
    """A cancelled sign-in is known for 15 minutes."""
    app = phone.start()
    callback = "app.example://signed-in?code=1"
    assert refused(app, callback) == "sign_in.state_mismatch"
    begin(app)
    cancel(app)
    assert refused(app, callback) == "sign_in.cancelled"
    phone.pass_time(901)
    assert refused(app, callback) == "sign_in.expired"
    # A cancel removes those that are out of time
    cancel(app)
    assert refused(app, callback) == "sign_in.state_mismatch"


def test_ATK_15_cancelling_is_idempotent(phone: Phone) -> None:
    app = phone.start()
    # With no sign-in under way
    assert cancel(app) == (False, "sign_in")
    begin(app)
    assert cancel(app) == (True, "sign_in")
    assert cancel(app) == (False, "sign_in")
    # A sign-in that is out of time is not under way
    begin(app)
    phone.pass_time(901)
    assert cancel(app) == (False, "sign_in")
    assert app.poll()["events"] == []


def take(app: App) -> Any:  # noqa: ANN401
    """The only request of a poll."""
    [request] = app.poll()["requests"]
    return request


def test_ATK_15_an_answer_after_a_cancel_signs_nobody_in(
    phone: Phone, person: Person, directory: DirectoryFixtures
) -> None:
    app = phone.start()
    assert app.sign_in_complete({"email": person.email, "password": PASSWORD})["screen"] == "wait"
    request = take(app)
    assert request["purpose"] == "sign_in"
    assert cancel(app) == (True, "sign_in")
    assert app.complete(cast(Any, {"id": request["id"], **phone.network(request)})) == {}
    revoke = take(app)
    assert revoke["purpose"] == "revoke"
    app.complete(cast(Any, {"id": revoke["id"], **phone.network(revoke)}))
    app.settle()
    assert directory.control.requests("/auth/v1/logout", "POST")
    assert app.session_status()["state"] == "signed_out"
    assert app.session_status()["owed"] == []
    assert app.of_type("screen") == []
    # Also not after a restart
    assert phone.start().screen["screen"] == "sign_in"


@pytest.mark.parametrize(
    "answer", [{"error": "cancelled"}, {"status": 400, "headers": {}, "body": "{}"}]
)
def test_ATK_15_a_refusal_after_a_cancel_changes_nothing(
    phone: Phone, person: Person, answer: dict[str, Any]
) -> None:
    app = phone.start()
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    request = take(app)
    cancel(app)
    app.complete(cast(Any, {"id": request["id"], **answer}))
    assert app.settle() == []
    assert why(app.screen) == "session_missing"


def test_ATK_15_a_new_sign_in_does_not_wait_for_the_cancelled_one(
    phone: Phone, person: Person
) -> None:
    app = phone.start()
    app.sign_in_complete({"email": "somebody@example.org", "password": "wrong-wrong"})
    first = take(app)
    cancel(app)
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    app.settle()
    assert app.screen["screen"] == "home"
    app.complete(cast(Any, {"id": first["id"], **phone.network(first)}))
    app.settle()
    assert (app.screen["screen"], app.session_status()["state"]) == ("home", "active")


def test_ATK_15_before_the_request_is_sent_a_cancel_leaves_none(
    phone: Phone, person: Person
) -> None:
    app = phone.start()
    app.sign_in_complete({"email": person.email, "password": PASSWORD})
    assert cancel(app) == (True, "sign_in")
    assert app.poll()["requests"] == []
    assert app.poll()["wake_in_ms"] is None


def test_ATK_15_a_cancel_over_an_open_session_shows_it_again(user: SignedIn) -> None:
    app = user.app
    item = app.register()
    screen = app.sign_in_complete({"email": user.person.email, "password": PASSWORD})
    assert why(screen) == "signing_in"
    reply = app.sign_in_cancel()
    assert reply["cancelled"]
    assert (reply["screen"]["screen"], reply["screen"]["route"]) == ("home", user.home)
    app.settle()
    assert app.of_type("sync_completed")[-1]["ids"] == [item]
    # With nothing under way it shows the same
    assert cancel(app) == (False, "home")


def test_ATK_15_a_cancel_of_one_handle_reaches_the_browser_flow_of_another(phone: Phone) -> None:
    app = phone.start()
    begin(app)
    with another(phone) as other:
        assert cancel(other) == (True, "sign_in")
    assert refused(app, "app.example://signed-in?code=1") == "sign_in.cancelled"


def test_ATK_15_without_a_network_a_sign_in_can_be_cancelled(phone: Phone) -> None:
    app = phone.start(online=False)
    begin(app)
    screen = app.sign_in_complete({"email": "a@example.org", "password": PASSWORD})
    assert seen(screen) == ("sign_in", "sign_in_offline")
    assert cancel(app) == (True, "sign_in")
