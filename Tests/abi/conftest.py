"""Fixtures of the tests through the public C API: libraries, backend, phones and people."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from holdfast import Library
from local_supabase import LocalSupabase

from support.hosted import HostedLibrary
from support.paths import BUILDS, HEADER, chosen_flavours
from support.phone import ROUTES, App, Phone
from support.town import Organisation, Person, Town

#: Settings that a test may change; everything is set back after it.
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

MakePhone = Callable[..., Phone]


@pytest.fixture(scope="session", params=chosen_flavours())
def flavour(request: pytest.FixtureRequest) -> str:
    """Each of the two builds of the library in turn (ABI-6)."""
    return str(request.param)


@pytest.fixture(scope="session")
def library(flavour: str) -> Library:
    """The library of the flavour; a build that is missing is a failure."""
    path = BUILDS[flavour]
    assert path.is_file(), f"{path} is not built: run make"
    return Library(path)


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After every test, whatever it used: no handle and no reply is left."""
    yield
    if "library" in request.fixturenames:
        assert request.getfixturevalue("library").live() == 0, "handles or replies are left"


@pytest.fixture(scope="session")
def server() -> Iterator[LocalSupabase]:
    """One backend for all tests of this process."""
    with LocalSupabase() as running:
        yield running


@pytest.fixture
def backend(server: LocalSupabase) -> Iterator[LocalSupabase]:
    """The backend without faults, with an empty request log and its settings as they were."""
    server.control.clear_faults()
    server.control.clear_requests()
    yield server
    server.control.clear_faults()
    server.control.set(**SETTINGS)


@pytest.fixture
def town(backend: LocalSupabase) -> Town:
    """People and organisations for this test alone."""
    return Town(backend)


@pytest.fixture
def phones(tmp_path: Path, library: Library, backend: LocalSupabase) -> Iterator[MakePhone]:
    """Makes phones; keyword arguments are those of `Phone`."""
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
    """A phone with a manual clock; nobody is signed in."""
    return phones()


@dataclass
class SignedIn:
    """Somebody who uses the app: one organisation, its contacts cached, at home, online."""

    phone: Phone
    app: App
    person: Person
    org: Organisation
    role: str

    @property
    def home(self) -> str:
        """The route of the role's home."""
        return str(ROUTES[self.role]["home"])

    def restart(self, *, online: bool = True) -> App:
        """Close the app and start it again; what is sent from now on is counted anew."""
        self.phone.close()
        self.phone.network.forget()
        self.phone.keychain.calls.clear()
        self.app = self.phone.start(online=online)
        return self.app


MakeUser = Callable[..., SignedIn]


@pytest.fixture
def sign_in(phones: MakePhone, town: Town) -> MakeUser:
    """Makes a phone whose user is signed in: `role`, number of `contacts`, options of `Phone`."""

    def make(role: str = "peer_mentor", contacts: int = 0, **options: Any) -> SignedIn:  # noqa: ANN401
        phone = phones(**options)
        org = town.organisation(contacts=contacts)
        person = town.person(org, role=role)
        app = phone.start()
        app.sign_in(person)
        user = SignedIn(phone, app, person, org, role)
        assert app.screen["screen"] == "home", app.screen
        assert app.screen["route"] == user.home
        return user

    return make


@pytest.fixture(scope="session")
def killer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that ends a process at a chosen write (support/killer.c)."""
    target = tmp_path_factory.mktemp("killer") / "killer.so"
    source = Path(__file__).parent / "support" / "killer.c"
    command = ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(target), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return target


@pytest.fixture(scope="session")
def host_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host in C, compiled."""
    program = tmp_path_factory.mktemp("host") / "host"
    source = Path(__file__).parent / "support" / "host.c"
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-I", str(HEADER.parent)]
    subprocess.run(["cc", *flags, "-o", str(program), str(source), "-ldl"], check=True)
    return program


@pytest.fixture
def hosted(host_program: Path, flavour: str) -> Iterator[HostedLibrary]:
    """The library in a process of its own."""
    library = HostedLibrary(host_program, BUILDS[flavour])
    yield library
    if library.process.poll() is None:
        assert library.live() == 0, "handles or replies are left"
    library.end()
