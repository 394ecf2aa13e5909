"""Fixtures: one running backend for the whole session, reset to its defaults after every test."""

from __future__ import annotations

import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import httpx
import hypothesis
import pytest
from local_supabase import LocalSupabase, demo

from memory_supabase import MemorySupabase

# No deadline: the machine may be busy. No example database: the tests write no files.
hypothesis.settings.register_profile("backend", deadline=None, database=None)
hypothesis.settings.load_profile("backend")

HERE = pathlib.Path(__file__).resolve().parent
SERVER = HERE.parent / "server"


@pytest.fixture(scope="session")
def server() -> Iterator[LocalSupabase]:
    """The running backend with demo data."""
    with LocalSupabase(demo=True) as running:
        yield running


@pytest.fixture(scope="session")
def memory() -> Iterator[MemorySupabase]:
    """The server in memory of Tests/simulation, with the same data."""
    with MemorySupabase(demo=True) as running:
        yield running


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests marked `both_servers` against each server."""
    shared = metafunc.definition.get_closest_marker("both_servers")
    alone = metafunc.definition.get_closest_marker("postgres_only")
    if shared and not alone and "server_kind" in metafunc.fixturenames:
        metafunc.parametrize("server_kind", ["postgres", "memory"])


@pytest.fixture
def server_kind() -> str:
    """The server that a test talks to."""
    return "postgres"


@pytest.fixture
def backend(request: pytest.FixtureRequest, server_kind: str) -> Iterator[LocalSupabase]:
    """The backend without faults, with an empty request log and default settings."""
    server = request.getfixturevalue("memory" if server_kind == "memory" else "server")
    before = server.control.config()
    server.control.clear_requests()
    yield server
    server.control.clear_faults()
    server.control.set(**before)


class Person:
    """A signed-in user with a client for the data service."""

    def __init__(self, backend: LocalSupabase, email: str, password: str = demo.PASSWORD) -> None:
        self.email = email
        answer = httpx.post(
            f"{backend.auth_url}/token?grant_type=password",
            json={"email": email, "password": password},
            headers={"apikey": backend.anon_key},
        )
        assert answer.status_code == 200, answer.text
        self.session: dict[str, Any] = answer.json()
        self.id = self.session["user"]["id"]
        self.token = self.session["access_token"]
        self.rest = httpx.Client(
            base_url=backend.rest_url,
            timeout=30,
            headers={"apikey": backend.anon_key, "Authorization": f"Bearer {self.token}"},
        )

    def insert(
        self, rows: Any, *, prefer: str = "return=representation", **query: str
    ) -> httpx.Response:
        """POST to activities."""
        return self.rest.post(
            "/activities", params={"select": "id", **query}, json=rows, headers={"Prefer": prefer}
        )

    def submit(self, items: Any) -> httpx.Response:
        """Call submit_activities."""
        return self.rest.post("/rpc/submit_activities", json={"items": items})

    def activities(self, **query: str) -> list[dict[str, Any]]:
        """GET activities."""
        answer = self.rest.get("/activities", params=query)
        assert answer.status_code == 200, answer.text
        return list(answer.json())


def activity(org: str = demo.ORG_1, **fields: Any) -> dict[str, Any]:
    """Return a valid activity."""
    return {
        "id": str(uuid.uuid4()),
        "org_id": org,
        "type": "samtale",
        "occurred_at": "2026-03-01T10:00:00Z",
        "minutes": 30,
        **fields,
    }


@pytest.fixture
def org(backend: LocalSupabase) -> str:
    """A new organisation, so that tests do not see each other's rows."""
    return backend.control.add_org("Testlag Ås")


@pytest.fixture
def mentor(backend: LocalSupabase, org: str) -> Person:
    """A peer mentor of the new organisation."""
    return member(backend, org, "peer_mentor")


def member(backend: LocalSupabase, org: str, role: str) -> Person:
    """Create a user with this role in an organisation."""
    email = f"u{uuid.uuid4().hex[:12]}@example.org"
    backend.control.add_user(email)
    backend.control.set_membership(email, org, role=role)
    return Person(backend, email)
