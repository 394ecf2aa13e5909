"""Fixtures that every suite over the C API shares: libraries, backend, directory, killer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from holdfast import Library
from local_supabase import LocalSupabase

from . import secrecy
from .directory_fixtures import DirectoryFixtures
from .paths import BUILDS, chosen_flavours

#: Settings that a test may change; the `backend` fixture sets them.
SETTINGS = {
    "jwt_lifetime": 3600,
    "reuse_interval": 10,
    "max_rows": 1000,
    "max_body_bytes": None,
    "max_body_rows": None,
    "date_offset_s": 0,
    "session_timebox": None,
    "session_inactivity": None,
    "single_session": False,
    "rate_limit_burst": None,
    "provider_user": None,
}


@pytest.fixture(scope="session", params=chosen_flavours())
def flavour(request: pytest.FixtureRequest) -> str:
    """Each build of the library in turn (ABI-6)."""
    return str(request.param)


@pytest.fixture(scope="session")
def library(flavour: str) -> Library:
    """The library of the flavour; a missing build is a failure."""
    path = BUILDS[flavour]
    assert path.is_file(), f"{path} is not built: run make"
    return Library(path)


@pytest.fixture(scope="session")
def server() -> Iterator[LocalSupabase]:
    """One backend for all tests of this process; an emulated interpreter names one for it."""
    python = os.environ.get("HOLDFAST_SERVER_PYTHON", sys.executable)
    with LocalSupabase(python=python) as running:
        yield running


@pytest.fixture
def backend(server: LocalSupabase) -> LocalSupabase:
    """The backend without faults, with an empty request log and default settings."""
    server.control.reset(**SETTINGS)
    return server


@pytest.fixture
def directory(backend: LocalSupabase) -> DirectoryFixtures:
    """Creates users and organisations for this test only."""
    return DirectoryFixtures(backend)


@pytest.fixture(scope="session")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The preload library that kills a process at a chosen file change (support/killer.c)."""
    target = tmp_path_factory.mktemp("killer") / "killer.so"
    source = Path(__file__).with_name("killer.c")
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(target), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return target


@pytest.fixture(autouse=True)
def no_secret_is_readable(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[secrecy.Secrets]:
    """After every test, no secret of it is in a data folder, the log, an error or an event.

    It asks for `tmp_path`, so that the folders are still there when it searches them.
    """
    secrets = secrecy.begin()
    secrets.children = tmp_path_factory.mktemp("secrets")
    monkeypatch.setenv(secrecy.FOLDER_OF_CHILDREN, str(secrets.children))
    yield secrets
    secrets.read_children(secrets.children)
    shutil.rmtree(secrets.children, ignore_errors=True)
    finds = secrets.search_all()
    assert not finds, "secrets are readable:\n" + "\n".join(finds[:50])
