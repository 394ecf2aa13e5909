"""What the server must have said before something is shown or erased (LCK-8; findings 6, 7)."""

from __future__ import annotations

import json

from holdfast.transport import Answer
from holdfast.types import HttpRequest

from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.phone import TOKEN_S
from support.screens import seen, why
from support.users import MakeUser, SignedIn

DAY_S = 86_400


def test_LCK_8_memberships_that_nobody_confirmed_are_not_shown(sign_in: MakeUser) -> None:
    policy = {"session_window_s": 100 * DAY_S, "offline_limit_s": 14 * DAY_S, "biometric": "off"}
    user = sign_in(contacts=2, policy=policy)

    def silent(request: HttpRequest) -> Answer | None:
        return {"error": "timeout"} if request["purpose"] == "guard" else None

    user.phone.network.instead.append(silent)
    for _ in range(13):
        user.phone.pass_time(DAY_S)
        user.app.session_foreground()
        user.app.settle()
    assert user.app.contact_search({"query": ""})["total"] == 2
    user.phone.pass_time(DAY_S + 60)
    app = user.restart()
    app.settle()
    assert app.session_status()["state"] == "active"
    assert app.screen["screen"] == "wait"
    assert app.screen["org"] is None
    assert app.org_list()["orgs"] == []
    for call in (lambda: app.contact_search({"query": ""}), app.summary_get):
        assert error_of(call).code == "org.none"
    assert error_of(app.org_select, {"org_id": user.org.id}).code == "org.not_a_member"
    user.phone.network.instead.clear()
    app.settle_until("screen")
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 2


def test_LCK_8_a_list_that_became_too_old_in_use_lets_nobody_wait_for_ever(
    sign_in: MakeUser,
) -> None:
    policy = {"session_window_s": 100 * DAY_S, "offline_limit_s": 14 * DAY_S, "biometric": "off"}
    user = sign_in(contacts=2, policy=policy)
    app = user.app

    def silent(request: HttpRequest) -> Answer | None:
        return {"error": "timeout"} if request["purpose"] == "guard" else None

    user.phone.network.instead.append(silent)
    for _ in range(15):
        app.wait(DAY_S)
    assert app.screen["screen"] == "wait"
    app.wait(3)
    assert seen(app.screen) == ("wait", "server_unreachable")
    user.phone.network.instead.clear()
    app.settle_until("screen")
    assert app.screen["screen"] == "home"


def test_finding_7_only_this_users_object_validates_the_session(user: SignedIn) -> None:
    other = {"portal": "please log in"}
    headers = {"content-type": "application/json"}

    def portal(request: HttpRequest) -> Answer | None:
        if request["purpose"] != "validate":
            return None
        return {"status": 200, "headers": headers, "body": json.dumps(other)}

    user.phone.network.instead.append(portal)
    app = user.restart()
    app.settle()
    assert "validation" in app.session_status()["owed"]
    user.phone.network.instead.clear()
    app.wait(60)
    assert app.session_status()["owed"] == []


def test_finding_7_one_empty_list_does_not_erase_a_cache(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=2)
    headers = {"content-type": "application/json"}

    def confused(request: HttpRequest) -> Answer | None:
        if request["purpose"] == "guard":
            return {"status": 200, "headers": headers, "body": "[]"}
        return {"error": "timeout"} if request["purpose"] == "validate" else None

    user.phone.network.instead.append(confused)
    user.phone.pass_time(120)
    app = user.restart()
    app.settle()
    user.phone.network.instead.clear()
    assert app.contact_search({"query": ""})["total"] == 2
    directory.control.sql("delete from memberships where user_id = %s", user.person.id)
    app.settle_until("org_access_changed")
    assert app.screen["screen"] == "select_org"


def test_TST_2_a_list_that_a_denied_upload_asked_for_is_as_old_as_itself(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(policy={"offline_limit_s": TOKEN_S, "session_window_s": TOKEN_S})
    app, phone = user.app, user.phone
    phone.pass_time(TOKEN_S - 600)
    phone.network.forget()
    body = json.dumps({"code": "42501", "message": "permission denied"})
    directory.control.respond("/rest/v1/activities", 403, body=body, times=1, method="POST")
    app.register()
    app.settle()
    assert (phone.network.count("guard"), phone.network.count("validate")) == (1, 0)
    assert app.org_list()["as_of_ms"] == phone.now_ms
    phone.network.up = False
    phone.pass_time(TOKEN_S - 600)
    app = user.restart(online=False)
    assert app.screen["screen"] == "unlock"
    assert app.touch()["screen"] == "home"
    assert app.org_list()["orgs"] != []
    phone.pass_time(601)
    assert why(user.restart(online=False).screen) == "offline_limit"
