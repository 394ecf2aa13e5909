"""The sealed blocks of the search index: what they hold, and what a damaged one costs."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from support import attacker, contact_data, tamper
from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures
from support.phone import App
from support.sizes import sampled
from support.users import MakePhone, MakeUser, SignedIn, signed_in

#: Contacts in one block.
BLOCK = 250


def stamps(folder: Path) -> dict[int, int]:
    """The blocks of the cache file."""
    return dict(attacker.rows(folder / "cache.db", "SELECT number, stamp FROM contact_block"))


def change(folder: Path, *statements: str) -> None:
    """Change the cache file while the library does not know."""
    with contextlib.closing(sqlite3.connect(folder / "cache.db")) as database, database:
        for statement in statements:
            database.execute(statement)


def total(app: App, query: str = "") -> int:
    return app.contact_search({"query": query})["total"]


@pytest.fixture
def user(sign_in: MakeUser) -> SignedIn:
    """A user with four blocks of contacts."""
    return sign_in(contacts=3 * BLOCK + 50)


def test_a_search_after_an_unlock_opens_blocks_and_writes_none(user: SignedIn) -> None:
    before = stamps(user.phone.folder)
    assert len(before) == 4
    user.app.session_lock()
    user.app.touch()
    assert total(user.app) == 3 * BLOCK + 50
    assert stamps(user.phone.folder) == before


def test_one_changed_contact_rewrites_one_block(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    before = stamps(user.phone.folder)
    [first, *_] = contact_data.truth(directory.control, user.org.id)
    directory.control.sql("update contacts set name = 'Ragnfrid Ny' where id = %s", first)
    pull(user, after_s=60)
    after = stamps(user.phone.folder)
    assert len([number for number in before if before[number] != after[number]]) == 1
    assert total(user.app, "ragnfrid") == 1
    assert total(user.app) == 3 * BLOCK + 50


def seal_of(folder: Path, number: int) -> bytes:
    query = f"SELECT sealed FROM contact_block WHERE number = {number}"
    [(sealed,)] = attacker.rows(folder / "cache.db", query)
    return bytes(sealed)


def flip(folder: Path) -> None:
    changed = tamper.flipped(seal_of(folder, 1), 500)
    change(folder, f"UPDATE contact_block SET sealed = x'{changed.hex()}' WHERE number = 1")


def cut(folder: Path) -> None:
    change(folder, "UPDATE contact_block SET sealed = substr(sealed, 1, 100) WHERE number = 1")


def swap(folder: Path) -> None:
    one, other = seal_of(folder, 0), seal_of(folder, 1)
    for number, sealed in ((0, other), (1, one)):
        change(
            folder, f"UPDATE contact_block SET sealed = x'{sealed.hex()}' WHERE number = {number}"
        )


HARM: dict[str, Callable[[Path], None]] = {
    "flipped": flip,
    "cut off": cut,
    "swapped": swap,
    "removed": lambda folder: change(folder, "DELETE FROM contact_block WHERE number = 2"),
    "all removed": lambda folder: change(folder, "DELETE FROM contact_block"),
    "moved": lambda folder: change(folder, "UPDATE contact_block SET number = 9 WHERE number = 1"),
    "empty": lambda folder: change(folder, "UPDATE contact_block SET sealed = x''"),
    "a text": lambda folder: change(folder, "UPDATE contact_block SET sealed = 'a', stamp = 'b'"),
}


@pytest.mark.parametrize("harm", sampled(HARM, 3))
def test_CAC_4_a_damaged_block_is_made_again_from_the_rows(
    user: SignedIn, directory: DirectoryFixtures, harm: str
) -> None:
    user.phone.close()
    HARM[harm](user.phone.folder)
    app = user.restart(online=False)
    rows = contact_data.truth(directory.control, user.org.id)
    assert total(app) == len(rows)
    for query in ("a", "an os", "berg"):
        assert total(app, query) == len(contact_data.hits(rows, query))
    before = stamps(user.phone.folder)
    assert total(user.restart(online=False)) == len(rows)
    assert stamps(user.phone.folder) == before


def test_CAC_2_a_column_that_is_network_only_later_is_found_in_no_block(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in()
    directory.contact(user.org, "Kari Prøve", municipality="Guovdageaidnu")
    pull(user, after_s=60)
    assert total(user.app, "guovda") == 1
    contacts = {"table": "contacts", "columns": ["name"], "needs_network": ["municipality"]}
    user.phone.config["backend"]["contacts"] = contacts
    app = user.restart(online=False)
    assert total(app, "guovda") == 0
    assert total(app, "kari") == 1


def test_LCK_3_a_block_of_another_organisation_does_not_open(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(), directory.organisation()
    directory.contact(first, "Ragnfrid Prøve")
    directory.contact(second, "Kari Prøve")
    user = signed_in(phones, directory.person(first, second), first)
    phone, app = user.phone, user.app
    assert total(app, "ragnfrid") == 1
    app.org_select({"org_id": second.id})
    app.settle()
    assert total(app, "kari") == 1
    phone.close()
    [(one, mine), (other, its)] = attacker.rows(
        phone.folder / "cache.db", "SELECT org, sealed FROM contact_block"
    )
    for org, sealed in ((one, its), (other, mine)):
        change(
            phone.folder,
            f"UPDATE contact_block SET sealed = x'{sealed.hex()}' WHERE org = x'{org.hex()}'",
        )
    app = phone.start(online=False)
    if app.screen["screen"] == "unlock":
        app.touch()
    assert (total(app, "ragnfrid"), total(app, "kari"), total(app)) == (0, 1, 1)
