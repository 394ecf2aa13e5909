"""A system that tells neither the id of a boot nor when a process began: one without /proc.

Tests/packages/test_surroundings.py runs these tests, and those of several processes, there.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.screens import seen
from support.users import MakeUser, SignedIn

pytestmark = pytest.mark.skipif(
    Path("/proc/self").exists(), reason="Tests/packages/test_surroundings.py runs it without /proc"
)


def test_RES_4_the_absence_counts_where_boots_have_no_id(user: SignedIn) -> None:
    user.phone.pass_time(600)
    user.app.session_background()
    user.phone.reboot(1200)
    user.phone.boot_id = None
    screen = user.restart().screen
    assert seen(screen) == ("unlock", "background_timeout")


def test_LCK_5_the_window_counts_where_boots_have_no_id(sign_in: MakeUser) -> None:
    user = sign_in(policy={"session_window_s": 600})
    proved = user.phone.monotonic_ms
    user.phone.reboot(1200)
    user.phone.boot_id = None
    user.phone.monotonic_ms = proved + 1000
    screen = user.restart().screen
    assert seen(screen) == ("unlock", "session_window")
    user.app.touch()
    user.app.settle()
    assert user.app.screen["screen"] == "home"
    user.phone.pass_time(601)
    user.phone.set_wall_clock(-100)
    screen = user.restart().screen
    assert seen(screen) == ("unlock", "session_window")
