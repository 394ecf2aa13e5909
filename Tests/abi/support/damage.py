"""Damage to the main file of a closed app, and what a start makes of it."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

from .phone import App
from .users import SignedIn

PAGE = 4096


def destroy_header(folder: Path) -> None:
    """Overwrite the first page of the main file with zeros; its app must be closed."""
    path = folder / "holdfast.db"
    data = path.read_bytes()
    path.write_bytes(bytes(PAGE) + data[PAGE:])


def restart_after(user: SignedIn, sql: str | None = None) -> App:
    """Change the queue by this statement, destroy the file's header, and start the app offline."""
    user.phone.close()
    if sql is not None:
        path = user.phone.folder / "holdfast.db"
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            assert database.execute(sql).rowcount > 0
    destroy_header(user.phone.folder)
    user.app = user.phone.start(online=False)
    assert user.app.opened["recovered"]
    return user.app


def listed(app: App) -> list[str]:
    """The ids of the queue's items."""
    return [item["id"] for item in app.queue_list({"limit": 500})["items"]]


def recovered(app: App) -> list[dict[str, Any]]:
    """The notices `storage_recovered` that this app has been given."""
    app.settle()
    return app.of_type("storage_recovered")


def change(user: SignedIn, *statements: str) -> None:
    """Close the app, and change rows of its file by these statements."""
    user.phone.close()
    path = user.phone.folder / "holdfast.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        for sql in statements:
            assert database.execute(sql).rowcount > 0


def home(user: SignedIn) -> None:
    """Go online, and sign in if the session was lost."""
    user.app.go_online()
    if user.app.screen["screen"] != "home":
        user.app.sign_in(user.person)
    user.app.settle()


def overwrite(folder: Path, page: int) -> None:
    """Overwrite a page of the main file (from 1) with ones, while its app runs.

    Another process writes: SQLite's locks of this one end when it closes a descriptor of the file.
    """
    ones = b"\1" * PAGE
    place = [f"of={folder / 'holdfast.db'}", f"bs={PAGE}", f"seek={page - 1}", "conv=notrunc"]
    subprocess.run(["dd", "status=none", *place], input=ones, check=True)


def empty_log(folder: Path) -> None:
    """Copy the log into the main file, so that damage to it is seen; open apps read it again."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database:
        with database:
            database.execute("UPDATE meta SET value = value WHERE name = 'event_seq'")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def root_of(folder: Path, table: str) -> int:
    """The first page of a table."""
    with contextlib.closing(sqlite3.connect(folder / "holdfast.db")) as database:
        find = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return int(database.execute(find, (table,)).fetchone()[0])
