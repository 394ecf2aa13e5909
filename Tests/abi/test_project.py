"""A folder belongs to one project: with another URL, its items would go to another server."""

from __future__ import annotations

import contextlib
import sqlite3
from typing import Any

import pytest
from holdfast import HoldfastError

from support.damage import destroy_header
from support.errors import error_of
from support.phone import App, Phone
from support.queue import add
from support.users import MakePhone, MakeUser, SignedIn

OTHER = "https://other.supabase.co"


def with_url(phone: Phone, url: str) -> App:
    """The app, opened with another URL and without a network."""
    phone.close()
    backend = {**phone.config["backend"], "url": url}
    phone.app = App(phone, {**phone.config, "backend": backend})
    return phone.app


def refusal(phone: Phone, url: str) -> HoldfastError:
    """The error of an open with this URL."""
    return error_of(with_url, phone, url)


def with_item(sign_in: MakeUser) -> tuple[SignedIn, str]:
    user = sign_in()
    item = add(user.offline())
    user.phone.close()
    return user, item


def still_there(user: SignedIn, item: str) -> None:
    """With its own URL the folder opens, the user is at home, and the item waits."""
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert [found["id"] for found in app.queue_list()["items"]] == [item]


def others_of(url: str) -> list[str]:
    """URLs of other projects than this one, which is http://127.0.0.1:PORT."""
    host, port = url.rsplit(":", 1)
    return [
        OTHER,
        f"{host}:{int(port) ^ 1}",
        url.replace("http:", "https:"),
        f"{url}/path",
        "http://127.0.0.1",
    ]


@pytest.mark.both_flavours
def test_FIX_16_a_folder_is_refused_with_the_url_of_another_project(sign_in: MakeUser) -> None:
    user, item = with_item(sign_in)
    own = user.phone.config["backend"]["url"]
    for url in others_of(own):
        error = refusal(user.phone, url)
        assert (error.status, error.code, error.field) == (
            1,
            "request.invalid_value",
            "/backend/url",
        ), url
        assert error.detail == {"project": own}, url
        assert own in str(error)
    still_there(user, item)


def test_FIX_16_a_folder_opens_with_every_spelling_of_its_url(phones: MakePhone) -> None:
    for number, (first, spellings) in enumerate(
        [
            (
                "https://abc.supabase.co",
                ["https://ABC.Supabase.co", "https://abc.supabase.co:443/"],
            ),
            ("http://localhost:80/base/", ["http://localhost/base", "http://LOCALHOST:80/base"]),
        ]
    ):
        phone = phones()
        with_url(phone, first)
        for url in spellings:
            with_url(phone, url)
        assert refusal(phone, f"{spellings[0]}/Base").field == "/backend/url", number


@pytest.mark.parametrize("damage", ["header", "cut short", "missing"])
def test_FIX_16_a_folder_knows_its_project_after_damage(sign_in: MakeUser, damage: str) -> None:
    user, item = with_item(sign_in)
    path = user.phone.folder / "holdfast.db"
    if damage == "missing":
        # Then nothing of the old project is sent: the new file does not know the items
        path.unlink()
        app = with_url(user.phone, OTHER)
        app.session_resume()
        assert app.screen["screen"] == "sign_in"
        return
    destroy_header(user.phone.folder)
    if damage == "cut short":
        path.rename(path.with_name("holdfast.db.damaged"))
    for _ in range(2):
        assert refusal(user.phone, OTHER).field == "/backend/url"
    still_there(user, item)


def test_FIX_16_damage_to_the_project_s_name_closes_no_folder(sign_in: MakeUser) -> None:
    user, item = with_item(sign_in)
    path = user.phone.folder / "holdfast.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        find = "SELECT value FROM meta WHERE name = 'project'"
        [project] = database.execute(find).fetchone()
    values: list[Any] = [None, 7, "x", b"", project[:8], project[:-1], project + b"x"]
    values += [
        project[:at] + bytes([project[at] ^ 32]) + project[at + 1 :] for at in range(len(project))
    ]
    for value in values:
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute("UPDATE meta SET value = ? WHERE name = 'project'", (value,))
        with_url(user.phone, user.phone.config["backend"]["url"])
        user.phone.close()
        with contextlib.closing(sqlite3.connect(path)) as database:
            assert database.execute(find).fetchone() == (project,)
    still_there(user, item)


def test_FIX_16_a_running_app_does_not_follow_a_folder_to_another_project(
    user: SignedIn, phones: MakePhone
) -> None:
    other = phones()
    with_url(other, OTHER)
    other.close()
    for log in user.phone.folder.glob("holdfast.db-*"):
        log.unlink()
    (other.folder / "holdfast.db").replace(user.phone.folder / "holdfast.db")
    for _ in range(2):
        assert error_of(user.app.session_status).code == "storage.failed"


def moved_cache(source: Phone, target: Phone) -> None:
    """Move the cache of one folder into the other one, in place of its own."""
    for path in target.folder.glob("cache.db*"):
        path.unlink()
    for path in source.folder.glob("cache.db*"):
        path.rename(target.folder / path.name)


def names(app: App) -> list[str]:
    return [str(contact["name"]) for contact in app.contact_search({"query": ""})["contacts"]]


@pytest.mark.parametrize("keys", ["own keys", "the same device key"])
def test_FIX_16_the_cache_of_another_project_is_not_shown(
    sign_in: MakeUser, phones: MakePhone, keys: str
) -> None:
    user = sign_in(contacts=5, policy={"biometric": "off"})
    cached = names(user.app)
    assert len(cached) == 5
    user.phone.close()
    phone = phones(policy={"biometric": "off"})
    if keys == "the same device key":
        phone.keychain.path.write_bytes(user.phone.keychain.path.read_bytes())
    app = phone.start()
    app.sign_in(user.person)
    app.go_offline()
    phone.close()
    moved_cache(user.phone, phone)
    app = phone.start(online=False)
    assert app.screen["screen"] == "home"
    assert names(app) == []
    assert app.summary_get()["summary"] is None
    # and the file is as it was: with its own key they are there
    phone.close()
    moved_cache(phone, user.phone)
    app = user.restart(online=False)
    assert names(app) == cached
