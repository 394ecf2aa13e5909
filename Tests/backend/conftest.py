"""Fixtures: one running backend for the whole session, reset to its defaults after every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from local_supabase import LocalSupabase

from memory_supabase import MemorySupabase
from people import Person, member


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


@pytest.fixture
def org(backend: LocalSupabase) -> str:
    """A new organisation, so that tests do not see each other's rows."""
    return backend.control.add_org("Testlag Ås")


@pytest.fixture
def mentor(backend: LocalSupabase, org: str) -> Person:
    """A peer mentor of the new organisation."""
    return member(backend, org, "peer_mentor")
