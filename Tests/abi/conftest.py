"""Fixtures of the tests through the public C API: libraries, backend, phones and users."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from holdfast import Library
from local_supabase import LocalSupabase
from patience import patience

from support.counts import COPIES, FLIPS, counts
from support.directory_fixtures import DirectoryFixtures, Person
from support.hosted import HostedLibrary
from support.paths import BUILDS, HEADER
from support.phone import Phone
from support.shared_fixtures import (
    backend,
    directory,
    flavour,
    killer,
    library,
    no_secret_is_readable,
    server,
)
from support.sleepless import patient, sleepless
from support.users import MakePhone, MakeUser, SignedIn

# Fixtures shared with other suites; `no_secret_is_readable` runs after every test.
__all__ = [
    "backend",
    "directory",
    "flavour",
    "killer",
    "library",
    "no_secret_is_readable",
    "patient",
    "server",
    "sleepless",
]


#: A file system in memory, and how much of it a run may need: the folders of failed tests stay.
MEMORY, ROOM = Path("/dev/shm"), 2 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Keep the folders of the tests in memory where there is room.

    Every change of the library waits for the disk. What a disk does to it is tested in Tests/disk
    and Tests/crash.
    """
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run in ordinary Swift only what is marked `both_flavours`.

    Both flavours are made of the same sources, and Embedded Swift is the one that is shipped.
    HOLDFAST_FLAVOUR=name runs every test in that flavour, HOLDFAST_FLAVOURS=all every test in both.
    """
    if "HOLDFAST_FLAVOUR" in os.environ or os.environ.get("HOLDFAST_FLAVOURS") == "all":
        return

    def is_left_out(item: pytest.Item) -> bool:
        flavour = item.callspec.params.get("flavour") if hasattr(item, "callspec") else None
        return flavour == "runtime" and item.get_closest_marker("both_flavours") is None

    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Keep what this test has counted."""
    before = counts.copy()
    try:
        return (yield)
    finally:
        item.user_properties += list((counts - before).items())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was counted; what a failed test tried did not all survive."""
    for what in (COPIES, FLIPS):
        tried = {
            outcome: sum(
                dict(report.user_properties).get(what, 0)
                for report in terminalreporter.stats.get(outcome, [])
            )
            for outcome in ("passed", "failed")
        }
        if total := sum(tried.values()):
            terminalreporter.write_line(
                f"reliability: {what}: {total} tried, {tried['passed']} survived"
            )


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test, no handle and no reply is left.

    A request that was under way when the handle closed ends on a thread of its own, with a reply.
    """
    yield
    if "library" in request.fixturenames:
        live = request.getfixturevalue("library").live
        until = time.monotonic() + patience(5)
        while live() != 0 and time.monotonic() < until:
            time.sleep(0.01)
        assert live() == 0, "handles or replies are left"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that every user of this machine may enter; pytest's own are its user's."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture
def phones(tmp_path: Path, library: Library, backend: LocalSupabase) -> Iterator[MakePhone]:
    """Creates phones; keyword arguments are those of `Phone`."""
    made: list[Phone] = []

    def make(**options: Any) -> Phone:  # noqa: ANN401
        phone = Phone(tmp_path / f"phone-{len(made) + 1}", library, backend, **options)
        made.append(phone)
        return phone

    yield make
    for phone in made:
        phone.close()


@pytest.fixture
def phone(phones: MakePhone) -> Phone:
    """A phone with a manual clock and without a session."""
    return phones()


@pytest.fixture
def sign_in(phones: MakePhone, directory: DirectoryFixtures) -> MakeUser:
    """Creates a phone with a signed-in user: `role`, number of `contacts`, options of `Phone`."""

    def make(role: str = "peer_mentor", contacts: int = 0, **options: Any) -> SignedIn:  # noqa: ANN401
        phone = phones(**options)
        org = directory.organisation(contacts=contacts)
        person = directory.person(org, role=role)
        app = phone.start()
        app.sign_in(person)
        user = SignedIn(phone, app, person, org, role)
        assert app.screen["screen"] == "home", app.screen
        assert app.screen["route"] == user.home
        return user

    return make


@pytest.fixture
def user(sign_in: MakeUser) -> SignedIn:
    """A peer mentor at home, online, whose organisation has no contacts."""
    return sign_in()


@pytest.fixture
def person(directory: DirectoryFixtures) -> Person:
    """A member of one organisation, whom the provider signs in."""
    made = directory.person(directory.organisation())
    directory.control.sign_in_as(made.email)
    return made


@pytest.fixture(scope="session")
def host_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiles the host in C (support/host.c)."""
    program = tmp_path_factory.mktemp("host") / "host"
    source = Path(__file__).parent / "support" / "host.c"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-I", str(HEADER.parent)]
    subprocess.run(["cc", *flags, "-o", str(program), str(source), "-ldl", "-pthread"], check=True)
    return program


@pytest.fixture
def hosted(host_program: Path, flavour: str) -> Iterator[HostedLibrary]:
    """The library in its own process."""
    library = HostedLibrary(host_program, BUILDS[flavour])
    yield library
    if library.process.poll() is None:
        assert library.live() == 0, "handles or replies are left"
    library.end()
