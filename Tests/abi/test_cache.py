"""The cache: what it holds, when it is erased or rebuilt, and that it follows the server."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase

from support import attacker, contact_data
from support.contact_data import pull
from support.directory_fixtures import DirectoryFixtures, Organisation
from support.held import return_to_foreground, total, unlock
from support.phone import App
from support.queue import add, code_of, item_of, stored
from support.sizes import crossed, sampled
from support.users import MakePhone, MakeUser, SignedIn, signed_in


def lost(app: App) -> list[dict[str, object]]:
    """The notices about a lost cache."""
    return [
        event for event in app.of_type("storage_recovered") if event["reason"] == "cache_recovered"
    ]


DAMAGE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 64),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:700]),
    "half": lambda path: path.write_bytes(path.read_bytes()[:8192]),
    "empty": lambda path: path.write_bytes(b""),
    "newer": lambda path: [
        run(path, f"PRAGMA {name} = 99") for name in ("user_version", "application_id")
    ],
    "other": lambda path: run(path, "DROP TABLE dataset"),
}


def run(path: Path, statement: str) -> None:
    """Run SQL on the cache file while the library does not know."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize("damage", sampled(sorted(DAMAGE), 3))
def test_CAC_4_a_damaged_cache_is_rebuilt_automatically(
    sign_in: MakeUser, directory: DirectoryFixtures, damage: str
) -> None:
    user = sign_in(contacts=200)
    user.app.go_offline()
    item = user.app.register()
    user.phone.close()
    for path in user.phone.folder.glob("cache.db-*"):
        path.unlink()
    DAMAGE[damage](user.phone.folder / "cache.db")
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 0
    assert app.queue_get({"id": item})["item"]["state"] == "pending"
    app.go_online()
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 200
    assert stored(directory, user.person) == [item]
    # One notice reports it, and the queue is unaffected.
    assert len(lost(app)) == 1
    user.restart().settle()
    assert lost(user.app) == []
    assert [path for path in user.phone.folder.iterdir() if "holdfast.db." in path.name] == []


def test_CAC_4_a_page_found_damaged_during_use_is_rebuilt(sign_in: MakeUser) -> None:
    user = sign_in(contacts=2_000)
    user.phone.close()
    path = user.phone.folder / "cache.db"
    data = bytearray(path.read_bytes())
    for page in range(8, len(data) // 4096, 3):
        data[page * 4096 : page * 4096 + 200] = bytes(200)
    path.write_bytes(bytes(data))
    app = user.restart()
    assert app.contact_search({"query": "a"})["total"] < 2_000
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 2_000
    assert len(lost(app)) == 1


def test_CAC_4_a_cache_deleted_while_the_app_runs_is_rebuilt(sign_in: MakeUser) -> None:
    user = sign_in(contacts=20)
    for path in user.phone.folder.glob("cache.db*"):
        path.unlink()
    assert total(user.app) == 0
    user.app.settle()
    assert total(user.app) == 20
    assert len(lost(user.app)) == 1


def test_the_cache_is_erased_when_the_user_changes(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    assert contact_data.left_on_disk(user.phone.folder, blobs) == len(blobs) > 300
    person = directory.person(directory.organisation())
    user.app.session_adopt({"session": user.phone.session(person)})
    assert contact_data.left_on_disk(user.phone.folder, blobs) == 0
    user.app.settle()
    assert total(user.app) == 0


def test_the_cache_stays_when_the_same_user_signs_in_again(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    blobs = contact_data.sealed(user.phone.folder)
    user.start_as(user.person)
    user.app.go_offline()
    assert contact_data.left_on_disk(user.phone.folder, blobs) >= 300
    assert total(user.app) == 300


@pytest.mark.parametrize("sends", ["asked", "everything"])
def test_CAC_2_no_withheld_column_is_on_the_disk(
    sign_in: MakeUser, directory: DirectoryFixtures, sends: str
) -> None:
    # Given a contact with withheld columns, and a server that may send them unasked
    user = sign_in()
    secret = {"phone": "+47 471 11 222", "address": "Kirkeveien 4711", "national_id": "01019912345"}
    contact = directory.contact(user.org, "Ragna Prøve", **secret)

    if sends == "everything":
        user.phone.network.rewrite("pull", lambda rows: [{**row, **secret} for row in rows])
    pull(user, after_s=60)
    user.app.contact_get({"id": contact, "live": True})
    user.app.settle()
    [event] = user.app.of_type("contact")
    assert event["contact"]["phone"] == secret["phone"]
    key = user.phone.keychain.stored("session")
    for running in (True, False):
        if not running:
            user.phone.close()
        opened = attacker.decrypted(user.phone.folder, key)["contacts"]
        assert "Ragna Prøve".encode() in opened
        for value in secret.values():
            assert value.encode() not in opened
    for path in user.phone.folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not [value for value in secret.values() if value.encode() in data]


# Random changes on both sides ---------------------------------------------------------------------


SEEDS = crossed(range(12), fast=lambda seed: seed < 2)
STEPS = 30
DAY_S = 86_400


class World:
    """A server whose rows change at random, and an app that pulls at random moments."""

    def __init__(
        self, user: SignedIn, directory: DirectoryFixtures, dsn: str, chance: random.Random
    ) -> None:
        self.user = user
        self.directory = directory
        self.chance = chance
        self.elsewhere = directory.organisation()
        self.dsn = dsn
        #: Open transactions, and the latest step at which each must commit.
        self.late: list[psycopg.Connection] = []
        self.names = iter(contact_data.people(10_000, chance.randrange(1 << 30)))
        user.phone.network.alter.append(self.lose_some)
        self.bad = 0.0

    def lose_some(self, request: HttpRequest, answer: Answer) -> Answer:
        """Lose this answer with the current probability."""
        return {"error": "timeout"} if self.chance.random() < self.bad else answer

    def ids(self) -> list[str]:
        """The ids of the server's contacts."""
        return sorted(contact_data.truth(self.directory.control, self.user.org.id))

    # The server -------------------------------------------------------------------------------

    def insert(self, connection: psycopg.Connection | None = None) -> None:
        name, place, relation = next(self.names)
        query = "insert into contacts (org_id, name, municipality, relation) values (%s,%s,%s,%s)"
        values = (self.user.org.id, name, place, relation)
        if connection is None:
            self.directory.control.sql(query, *values)
        else:
            connection.execute(query, values)

    def change(self, connection: psycopg.Connection | None = None) -> None:
        ids = self.ids()
        if not ids:
            return
        query = "update contacts set name = %s where id = %s"
        values = (next(self.names)[0], self.chance.choice(ids))
        if connection is None:
            if not self.late:
                self.directory.control.sql(query, *values)
        else:
            connection.execute("set local lock_timeout = '200ms'")
            try:
                connection.execute(query, values)
            except psycopg.errors.LockNotAvailable:
                connection.rollback()

    def mark(self) -> None:
        self.on_some("update contacts set deleted_at = now() where id = %s")

    def delete(self) -> None:
        self.on_some("delete from contacts where id = %s")

    def move(self) -> None:
        self.on_some("update contacts set org_id = %s where id = %s", self.elsewhere)

    def on_some(self, query: str, target: Organisation | None = None) -> None:
        """Skipped while a transaction is open, since it may lock the row."""
        ids = self.ids()
        if ids and not self.late:
            some = self.chance.choice(ids)
            self.directory.control.sql(query, *([target.id, some] if target else [some]))

    def open_late(self) -> None:
        connection = psycopg.connect(self.dsn)
        self.late.append(connection)
        for _ in range(self.chance.randint(1, 3)):
            (self.insert if self.chance.random() < 0.6 else self.change)(connection)

    def commit_late(self) -> None:
        while self.late:
            connection = self.late.pop()
            connection.commit()
            connection.close()

    def revoke(self) -> None:
        for status in ("ended", "active"):
            self.directory.control.set_membership(
                self.user.person.id, self.user.org.id, role=self.user.role, status=status
            )
            return_to_foreground(self.user)
            if status == "ended" and self.bad == 0:
                assert self.user.app.screen["screen"] == "select_org"
        if self.user.app.screen["screen"] == "select_org":
            self.user.app.sync_now()
            self.user.app.settle()

    # The app ----------------------------------------------------------------------------------

    def pull(self) -> None:
        self.user.phone.pass_time(self.chance.choice([5, 30, 900]))
        self.user.app.sync_now()
        self.user.app.settle()

    def some_steps(self) -> None:
        """Run the app for a few steps and close it in the middle of its work."""
        self.user.app.sync_now()
        for _ in range(self.chance.randint(1, 4)):
            self.user.app.step()
        self.restart()

    def restart(self) -> None:
        self.user.restart()
        unlock(self.user)

    def a_day(self) -> None:
        self.user.phone.pass_time(DAY_S)
        self.restart()
        self.user.app.settle()

    def storm(self) -> None:
        self.bad = self.chance.choice([0.0, 0.3, 0.7])


@pytest.fixture
def open_world(
    sign_in: MakeUser, directory: DirectoryFixtures, backend: LocalSupabase, seed: int
) -> Iterator[World]:
    """A world that ends its open transactions at the end."""
    user = sign_in(policy={"session_window_s": 30 * DAY_S, "offline_limit_s": 60 * DAY_S})
    world = World(user, directory, backend.dsn, random.Random(seed))
    with ExitStack() as stack:
        stack.callback(lambda: [connection.close() for connection in world.late])
        yield world


@pytest.mark.parametrize("seed", SEEDS)
def test_CAC_1_the_cache_converges_to_the_server(open_world: World, seed: int) -> None:
    world = open_world
    world.directory.control.set(max_rows=world.chance.choice([3, 10, 1000]))
    contact_data.fill(world.directory.control, world.user.org.id, 20, seed)
    moves = [
        (world.insert, 6), (world.change, 5), (world.mark, 3), (world.delete, 3), (world.move, 2),
        (world.open_late, 3), (world.commit_late, 3), (world.revoke, 1), (world.pull, 6),
        (world.some_steps, 4), (world.a_day, 1), (world.storm, 2),
    ]  # fmt: skip
    for _ in range(STEPS):
        [(move, _)] = world.chance.choices(moves, [weight for _, weight in moves])
        move()
    world.commit_late()
    world.bad = 0.0
    world.user.app.settle()
    world.user.phone.pass_time(3600)
    world.user.app.settle()
    world.a_day()
    world.pull()
    assert world.user.app.screen["screen"] == "home", world.user.app.screen
    expected = contact_data.truth(world.directory.control, world.user.org.id)
    assert contact_data.cached(world.user.app) == expected
    for query in ("a", "berg", "an os"):
        assert {
            contact["id"]
            for contact in world.user.app.contact_search({"query": query, "limit": 200})["contacts"]
        } == contact_data.hits(expected, query)


def test_a_membership_that_vanishes_and_is_not_the_chosen_one_is_over(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    first, second = directory.organisation(contacts=3), directory.organisation(contacts=300)
    person = directory.person(first, second)
    user = signed_in(phones, person, second)
    phone, app = user.phone, user.app
    of_second = contact_data.sealed(phone.folder)
    assert len(of_second) > 300
    app.go_offline()
    item = add(app)
    app.org_select({"org_id": first.id})
    # (The server takes no uploads, so that only the list of memberships can tell.)
    directory.control.respond("/rest/v1/activities", 503, times=-1)
    app.go_online()
    app.settle()
    assert contact_data.left_on_disk(phone.folder, of_second) == len(of_second)
    assert item_of(app, item)["state"] == "pending"
    directory.control.sql(
        "delete from memberships where user_id = %s and org_id = %s", person.id, second.id
    )
    return_to_foreground(user)
    assert contact_data.left_on_disk(phone.folder, of_second) == 0
    assert code_of(app, item) == "waiting_organisation"
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 3
