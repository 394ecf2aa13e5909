"""Damage to the main file of a closed app, and what a start makes of it."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

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
