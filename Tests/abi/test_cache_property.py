"""Property test: after random changes on both sides, the cache equals the server's data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase

from support import contact_data
from support.directory_fixtures import DirectoryFixtures, Organisation
from support.users import MakeUser, SignedIn

SEEDS = range(12)
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
            self.user.app.session_background()
            self.user.app.session_foreground()
            self.user.app.settle()
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
            self.user.app.runner.step()
        self.restart()

    def restart(self) -> None:
        self.user.restart()
        if self.user.app.screen["screen"] == "unlock":
            self.user.app.touch()

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
    # When everything is committed, no answer is lost, and a day has passed
    world.commit_late()
    world.bad = 0.0
    world.user.app.settle()
    world.user.phone.pass_time(3600)
    world.user.app.settle()
    world.a_day()
    world.pull()
    # Then the cache equals the server's rows
    assert world.user.app.screen["screen"] == "home", world.user.app.screen
    expected = contact_data.truth(world.directory.control, world.user.org.id)
    assert contact_data.cached(world.user.app) == expected
    # and every search finds exactly the expected contacts
    for query in ("a", "berg", "an os"):
        assert {
            contact["id"]
            for contact in world.user.app.contact_search({"query": query, "limit": 200})["contacts"]
        } == contact_data.hits(expected, query)
