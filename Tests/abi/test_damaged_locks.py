"""What a lock depends on cannot be read: then the session counts as locked."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable

import pytest
from holdfast import HoldfastError

from support.damage import destroy_header
from support.phone import App
from support.queue import add
from support.screens import seen
from support.users import SignedIn

#: Values that the library cannot have stored in a column of numbers.
VALUES = ["'x'", "x'00'", "1.5", "-9223372036854775808", "9223372036854775807"]


def enters_background(user: SignedIn) -> None:
    """The app is killed in the background, and stays away for long."""
    user.app.session_background()
    user.phone.close()
    user.phone.pass_time(600)


#: The columns of a lock, what happens before, and the reason that is shown.
LOCKS: dict[str, tuple[str, Callable[[SignedIn], None], str]] = {
    "flag": ("locked = {0}", lambda user: user.phone.close(), "user_locked"),
    "absence": (
        "background_wall_ms = {0}, background_monotonic_ms = {0}",
        enters_background,
        "background_timeout",
    ),
    "window": (
        "authenticated_ms = {0}, authenticated_monotonic_ms = {0}",
        lambda user: user.phone.close(),
        "session_window",
    ),
    "clock": ("seen_wall_ms = {0}", lambda user: user.phone.close(), "clock_moved_back"),
}


def refuses(app: App) -> bool:
    """Whether the app shows no data."""
    try:
        app.queue_list()
    except HoldfastError as error:
        return error.code == "session.locked"
    return False


@pytest.mark.both_flavours
@pytest.mark.parametrize("lock", LOCKS)
def test_TST_7_a_lock_that_cannot_be_read_counts_as_locked(user: SignedIn, lock: str) -> None:
    item = add(user.offline())
    columns, before, reason = LOCKS[lock]
    before(user)
    folder, whole = user.phone.folder, user.phone.folder.with_suffix(".whole")
    folder.rename(whole)
    keys = user.phone.keychain.path.read_bytes()
    opened = []
    # (a number that the flag never has is a lock, too)
    for value in [*VALUES, "2"] if lock == "flag" else VALUES:
        for header in ("whole", "destroyed"):
            shutil.copytree(whole, folder)
            user.phone.keychain.path.write_bytes(keys)
            with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database, database:
                database.execute(f"UPDATE session SET {columns.format(value)}")
            if header == "destroyed":
                destroy_header(folder)
            app = user.phone.start(online=False)
            shown = seen(app.screen)
            if shown != ("unlock", reason) or not refuses(app):
                opened.append((value, header, shown))
            app.touch()
            assert [found["id"] for found in app.queue_list()["items"]] == [item]
            user.phone.close()
            shutil.rmtree(folder)
    assert not opened
