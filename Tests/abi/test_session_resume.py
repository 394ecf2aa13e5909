"""Cold start: the first screen, from the disk alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support import tamper
from support.directory_fixtures import PASSWORD, DirectoryFixtures
from support.errors import error_of
from support.network import real_now_ms
from support.phone import ROUTES, TOKEN_S
from support.screens import seen, why
from support.sign_in import begin, browse, finish
from support.sizes import sampled
from support.tamper import flipped
from support.users import MakePhone, MakeUser, SignedIn

ROLES = list(ROUTES)
HALF_AN_HOUR = 1800


@pytest.mark.both_flavours
@pytest.mark.parametrize("role", ROLES)
def test_RES_1_active_session_resumes_home(sign_in: MakeUser, role: str) -> None:
    user = sign_in(role)
    user.phone.pass_time(HALF_AN_HOUR)
    app = user.restart()
    assert seen(app.screen) == ("home", None)
    assert app.screen["route"] == ROUTES[role]["home"]
    assert app.screen["org"] == {"id": user.org.id, "name": user.org.name, "role": role}
    assert app.screen["banners"] == []
    assert app.screen["deadline_ms"] is None
    assert user.phone.network.sent == []
    assert user.phone.keychain.calls["load", "biometric"] == 0
    events = app.settle()
    assert [event for event in events if event["type"] == "screen"] == []
    assert "guard" in user.phone.network.purposes()
    assert user.phone.network.count("refresh") == 0


def test_RES_1_the_session_window_counts_from_the_last_proof_of_the_user(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": 1000})
    user.phone.pass_time(999)
    assert seen(user.restart().screen) == ("home", None)
    user.phone.pass_time(2)
    app = user.restart()
    assert seen(app.screen) == ("unlock", "session_window")
    app.touch()
    app.settle()
    user.phone.pass_time(999)
    assert seen(user.restart().screen) == ("home", None)


@pytest.mark.both_flavours
def test_RES_2_expired_token_asks_for_biometrics(sign_in: MakeUser) -> None:
    user = sign_in(contacts=1)
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart()
    assert seen(app.screen) == ("unlock", "token_expired")
    assert (app.screen["route"], app.screen["org"]) == (None, None)
    assert app.session_status()["state"] == "locked"
    assert app.session_status()["user_id"] is None
    app.settle()
    assert user.phone.network.sent == []
    for call in (app.org_list, app.summary_get, app.queue_list):
        assert error_of(call).code == "session.locked"


def test_RES_2_a_token_is_valid_until_its_last_second(user: SignedIn) -> None:
    user.phone.pass_time(TOKEN_S - 30)
    assert seen(user.restart().screen) == ("home", None)


@pytest.mark.parametrize("away_s", [60, 2 * TOKEN_S])
def test_RES_4_the_same_rules_decide_after_a_device_restart(sign_in: MakeUser, away_s: int) -> None:
    kept = sign_in()
    rebooted = sign_in()
    kept.phone.pass_time(away_s)
    rebooted.phone.reboot(off_for_s=away_s)
    # When the app starts on both
    # Then both show the same screen: the restarted monotonic clock has no effect
    first, second = kept.restart().screen, rebooted.restart().screen
    assert seen(first) == seen(second)
    assert second["screen"] == ("home" if away_s < TOKEN_S else "unlock")
    assert rebooted.phone.keychain.calls["load", "device"] >= 1


@pytest.mark.parametrize("biometric", ["preferred", "off"])
@pytest.mark.parametrize("is_late", [False, True])
def test_RES_4_a_start_in_time_ends_the_time_in_the_background(
    sign_in: MakeUser, biometric: str, *, is_late: bool
) -> None:
    # Given a process that is killed in the background
    user = sign_in(policy={"biometric": biometric})
    user.app.session_background()
    user.phone.pass_time(60)
    user.phone.keychain.unlocked_since_boot = not is_late
    app = user.restart()
    if is_late:
        # When the key store has the keys a little later
        assert app.screen["screen"] == "wait"
        user.phone.keychain.unlocked_since_boot = True
        app.settle()
    assert app.screen["screen"] == "home"
    # Then nobody is locked out in the middle of their work
    user.phone.pass_time(300)
    app.settle()
    assert app.screen["screen"] == "home"
    assert app.session_status()["state"] == "active"


def test_RES_4_time_in_the_background_counts_across_a_restart(user: SignedIn) -> None:
    user.app.session_background()
    user.phone.reboot(off_for_s=299)
    assert user.restart().screen["screen"] == "home"
    user.app.session_background()
    user.phone.reboot(off_for_s=301)
    app = user.restart()
    assert seen(app.screen) == ("unlock", "background_timeout")


def test_RES_4_an_app_that_says_again_that_it_has_left_is_not_back(sign_in: MakeUser) -> None:
    user = sign_in()
    for _ in range(2):
        user.app.session_background()
        user.phone.pass_time(200)
    user.app.session_foreground()
    assert seen(user.app.screen) == (
        "unlock",
        "background_timeout",
    )


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("starts", [True, False])
def test_RES_4_a_sign_in_that_fails_in_the_background_does_not_end_the_time_there(
    user: SignedIn, *, starts: bool, killed: bool
) -> None:
    # Given an app in the background, started there or not, and a sign-in that proves nothing
    app = user.app if starts else user.phone.open()
    app.session_background()
    user.phone.directory.control.sign_in_as(user.person.email)
    callback = browse(begin(app)["url"])
    user.phone.network.up = False
    finish(app, callback)
    user.phone.network.up = True
    # When its user comes too late
    user.phone.pass_time(301)
    if killed:
        app = user.restart()
    else:
        app.session_foreground()
    # Then the session is locked
    assert seen(app.screen) == ("unlock", "background_timeout")


AT_ONCE = {"lock_on_background": "at_once"}


@pytest.mark.parametrize(
    ("policy", "away_s", "returned", "restarted"),
    [
        ({}, 301, "unlock", "unlock"),
        ({}, 10, "home", "home"),
        (AT_ONCE, 301, "unlock", "unlock"),
        (AT_ONCE, 10, "home", "unlock"),
        ({**AT_ONCE, "biometric": "off"}, 10, "home", "sign_in"),
    ],
)
def test_RES_4_after_a_sign_in_that_is_answered_in_the_background_the_time_there_counts(
    phones: MakePhone,
    directory: DirectoryFixtures,
    policy: dict[str, str],
    away_s: int,
    returned: str,
    restarted: str,
) -> None:
    for is_restarted, expected in ((False, returned), (True, restarted)):
        # Given a user who leaves the app before the answer to their sign-in is there
        person = directory.person(directory.organisation())
        phone = phones(policy=policy)
        app = phone.start()
        app.sign_in_complete({"email": person.email, "password": PASSWORD})
        app.session_background()
        app.settle()
        # When the app is back
        phone.pass_time(away_s)
        if is_restarted:
            phone.close()
            app = phone.start()
        else:
            app.session_foreground()
        # Then it is as after any time in the background
        assert app.screen["screen"] == expected


def test_RES_4_a_sign_in_ends_the_time_that_its_browser_took(user: SignedIn) -> None:
    app = user.app
    app.session_background()
    user.phone.directory.control.sign_in_as(user.person.email)
    callback = browse(begin(app)["url"])
    user.phone.pass_time(301)
    finish(app, callback)
    app.session_foreground()
    assert seen(app.screen) == ("home", None)
    user.phone.pass_time(301)
    app.settle()
    assert seen(app.screen) == ("home", None)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda stored: b"",
    "one byte": lambda stored: stored[:1],
    "truncated": lambda stored: stored[:-1],
    "halved": lambda stored: stored[: len(stored) // 2],
    "first bit": lambda stored: flipped(stored, 0),
    "middle bit": lambda stored: flipped(stored, len(stored) // 2),
    "last bit": lambda stored: flipped(stored, len(stored) - 1),
    "longer": lambda stored: stored + b"\0",
    "noise": lambda stored: bytes(len(stored)),
}


@pytest.mark.parametrize("damage", sampled(DAMAGE, 3))
def test_RES_5_a_damaged_token_is_cleared_and_sign_in_offered(user: SignedIn, damage: str) -> None:
    queued = user.offline().register()
    user.phone.close()
    tamper.write(user.phone.folder, DAMAGE[damage](tamper.stored(user.phone.folder)))
    app = user.restart()
    assert seen(app.screen) == ("sign_in", "session_corrupt")
    assert {"bankid", "vipps"} <= {method["id"] for method in app.screen["methods"]}
    assert app.screen["message"] is not None
    assert not {"session", "biometric"} & set(user.phone.keychain.names())
    user.phone.close()
    assert tamper.read(user.phone.folder) is None
    assert tamper.read(user.phone.folder, "wrap_session") is None
    app = user.restart()
    assert seen(app.screen) == ("sign_in", "session_missing")
    app.go_offline()
    user.phone.network.up = True
    app.sign_in(user.person)
    app.go_online()
    app.settle_until("sync_completed")
    assert [str(row["id"]) for row in user.phone.directory.activities(user.person)] == [queued]


def test_RES_5_a_token_sealed_with_another_key_is_refused(sign_in: MakeUser) -> None:
    user, stranger = sign_in(), sign_in()
    user.phone.close()
    stranger.phone.close()
    foreign = tamper.stored(stranger.phone.folder)
    tamper.write(user.phone.folder, foreign)
    screen = user.restart().screen
    assert seen(screen) == ("sign_in", "session_corrupt")


def test_RES_5_a_missing_token_leads_to_the_sign_in(phones: MakePhone, sign_in: MakeUser) -> None:
    app = phones().start()
    assert seen(app.screen) == ("sign_in", "session_missing")
    assert [method["id"] for method in app.screen["methods"]] == ["bankid", "vipps", "email"]
    user = sign_in()
    user.phone.close()
    tamper.write(user.phone.folder, None)
    screen = user.restart().screen
    assert screen["screen"] == "sign_in"
    assert why(screen) in {"session_missing", "session_corrupt"}


def test_RES_7_a_device_not_yet_unlocked_waits(user: SignedIn) -> None:
    queued = user.offline().register()
    user.phone.reboot()
    user.phone.keychain.unlocked_since_boot = False
    app = user.restart(online=False)
    assert seen(app.screen) == ("wait", "keystore_locked")
    assert app.screen["deadline_ms"] is not None
    status = app.session_status()
    assert (status["state"], status["user_id"]) == ("locked", None)
    assert user.phone.keychain.names() == {"device", "session", "biometric"}
    assert tamper.stored(user.phone.folder)
    user.phone.keychain.unlocked_since_boot = True
    screen = app.session_resume()
    assert seen(screen) == ("home", None)
    assert app.queue_get({"id": queued})["item"]["state"] == "pending"


def test_RES_7_the_wait_is_followed_by_a_decision(user: SignedIn) -> None:
    user.phone.reboot()
    user.phone.keychain.unlocked_since_boot = False
    app = user.restart()
    deadline = app.screen["deadline_ms"]
    assert deadline is not None
    user.phone.keychain.unlocked_since_boot = True
    app.wait(max(0, deadline - user.phone.now_ms) / 1000 + 1)
    decisions = app.of_type("screen")
    assert decisions, "no decision followed the wait"
    assert decisions[-1]["screen"]["screen"] == "home"


def test_KEEP_2_opening_asks_for_biometrics_if_the_policy_says_so(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": 0})
    user.phone.pass_time(1)
    app = user.restart()
    assert seen(app.screen) == ("unlock", "session_window")
    assert app.touch()["screen"] == "home"


@pytest.mark.both_flavours
def test_KEEP_2_without_biometrics_an_expired_token_is_refreshed_silently(
    sign_in: MakeUser,
) -> None:
    user = sign_in(policy={"biometric": "off"})
    assert user.phone.keychain.names() == {"device", "session"}
    user.phone.pass_time(TOKEN_S + 60)
    app = user.restart()
    app.settle()
    assert app.screen["screen"] == "home"
    assert user.phone.network.count("refresh") == 1


def test_KEEP_3_the_offline_limit_leads_to_the_sign_in(sign_in: MakeUser) -> None:
    user = sign_in(policy={"offline_limit_s": 86_400})
    queued = user.offline().register()
    user.phone.pass_time(86_401)
    app = user.restart(online=False)
    assert seen(app.screen) == ("sign_in", "offline_limit")
    message = app.screen["message"]
    assert message is not None
    assert message["code"] == "offline_limit"
    assert len(message["text"]) > 10
    user.phone.network.up = True
    app.network_report({"online": True})
    app.sign_in(user.person)
    app.settle()
    assert [str(row["id"]) for row in user.phone.directory.activities(user.person)] == [queued]


@pytest.mark.parametrize("locale", ["en", "nb", "nn"])
def test_KEEP_3_the_offline_limit_ends_no_session_and_blames_no_network(
    sign_in: MakeUser, directory: DirectoryFixtures, locale: str
) -> None:
    # Given a server that does not answer, and a device with a network
    user = sign_in(policy={"offline_limit_s": 86_400}, locale=locale)
    directory.control.respond("/", 503, times=-1)
    user.phone.pass_time(86_401)
    app = user.restart()
    app.settle()
    # Then
    assert seen(app.screen) == ("sign_in", "offline_limit")
    assert app.screen["message"] is not None
    words = app.screen["message"]["text"].lower().split()
    assert not {"offline", "nett", "nettet", "network"} & set(words)
    assert app.session_status()["state"] == "locked"
    assert user.phone.keychain.names() == {"device", "session", "biometric"}


def test_KEEP_3_the_limit_also_counts_when_the_app_comes_to_the_foreground(
    sign_in: MakeUser,
) -> None:
    user = sign_in(policy={"offline_limit_s": 86_400, "background_timeout_s": 10**8})
    user.app.session_background()
    user.phone.pass_time(86_401)
    screen = user.app.session_foreground()
    assert seen(screen) == ("sign_in", "offline_limit")


def test_KEEP_6_a_long_time_in_the_background_locks(sign_in: MakeUser) -> None:
    user = sign_in(contacts=2)
    app = user.app
    [contact] = app.contact_search({"query": "", "limit": 1})["contacts"]
    app.session_background()
    user.phone.pass_time(301)
    user.phone.network.forget()

    def refused() -> list[str]:
        codes = []
        for name, request in [
            ("contact_search", {"query": ""}),
            ("contact_get", {"id": contact["id"]}),
            ("summary_get", {}),
            ("queue_list", {}),
            ("queue_export", {}),
            ("queue_add", {"kind": "activity", "payload": {"type": "visit", "minutes": 1}}),
            ("org_list", {}),
            ("org_select", {"org_id": user.org.id}),
        ]:
            error = error_of(getattr(app, name), request)
            codes.append(error.code)
        return codes

    assert refused() == ["session.locked"] * 8
    screen = app.session_foreground()
    assert seen(screen) == ("unlock", "background_timeout")
    assert refused() == ["session.locked"] * 8
    assert app.route_check({"route": "/mentor"})["screen"]["screen"] == "unlock"  # type: ignore[typeddict-item]
    app.settle()
    assert user.phone.network.sent == []
    assert app.touch()["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 2


def test_KEEP_6_a_short_time_in_the_background_does_not_lock(user: SignedIn) -> None:
    for _ in range(3):
        user.app.session_background()
        user.phone.pass_time(300)
        screen = user.app.session_foreground()
        assert seen(screen) == ("home", None)


def test_KEEP_6_setting_the_clock_back_does_not_extend_the_time(user: SignedIn) -> None:
    user.app.session_background()
    user.phone.pass_time(301)
    user.phone.set_wall_clock(-3600)
    assert user.app.session_foreground()["screen"] == "unlock"


@pytest.mark.both_flavours
def test_RES_1_a_session_resumes_with_the_system_s_clock(sign_in: MakeUser) -> None:
    # The other tests use the manual clock; this one uses the system's.
    user = sign_in(clock="system")
    before = real_now_ms()
    app = user.restart()
    assert seen(app.screen) == ("home", None)
    status = app.session_status()
    assert status["expires_ms"] is not None
    assert abs(status["expires_ms"] - before - TOKEN_S * 1000) < 30_000
    assert abs(status["clock_offset_ms"]) < 5_000
