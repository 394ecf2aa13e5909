"""Fixtures: a desk and a backend for all tests, and an app for each."""

from __future__ import annotations

import itertools
import pathlib
import sys
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "Tests/server"), str(ROOT / "examples/desktop/panel")]

from local_supabase import LocalSupabase  # noqa: E402

from desk import App, Desk  # noqa: E402

_numbers = itertools.count()


@pytest.fixture(scope="session")
def backend() -> Iterator[LocalSupabase]:
    with LocalSupabase(demo=True) as server:
        yield server


@pytest.fixture(scope="session")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    desk = Desk(tmp_path_factory.mktemp("desk"))
    yield desk
    desk.close()


@pytest.fixture
def app(
    desk: Desk, backend: LocalSupabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[App]:
    """The app, on a fresh installation. It is not started yet."""
    backend.control.clear_faults()
    app = App(desk, backend, tmp_path_factory.mktemp(f"a{next(_numbers)}"))
    yield app
    app.close()
