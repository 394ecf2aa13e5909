"""Users, organisations, memberships and contacts on the backend, new ones for every test."""

from __future__ import annotations

import contextlib
import http.client
import json
import urllib.parse
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from local_supabase import Control

from . import secrecy

PASSWORD = "correct-horse-battery"
NETWORK_ONLY = ("phone", "address", "national_id")


@dataclass(frozen=True)
class Organisation:
    """An organisation as the backend knows it."""

    id: str
    name: str


@dataclass(frozen=True)
class Person:
    """A user who can sign in with a password."""

    id: str
    email: str


class Backend(Protocol):
    """A running backend: `LocalSupabase`, or its address in a child process."""

    url: str
    anon_key: str

    @property
    def control(self) -> Control:
        """The client of its test tool."""


@dataclass
class Reached:
    """The address of a backend that another process has started."""

    url: str
    anon_key: str

    @property
    def control(self) -> Control:
        """The client of its test tool."""
        return Control(self.url)


class DirectoryFixtures:
    """Creates users, organisations, memberships and contacts; tests share none of them."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.control = backend.control

    def organisation(self, name: str = "Mentorforeningen", contacts: int = 0) -> Organisation:
        """A new active organisation; its name is unique, so that a scan finds no other one."""
        unique = f"{name} {uuid.uuid4().hex[:12]}"
        made = Organisation(self.control.add_org(unique), unique)
        secrecy.current.add("id of an organisation", made.id)
        secrecy.current.add("name of an organisation", made.name)
        if contacts:
            self.control.seed_contacts(made.id, contacts)
        return made

    def person(self, *orgs: Organisation, role: str = "peer_mentor") -> Person:
        """A new user who is a member of these organisations."""
        email = f"p-{uuid.uuid4().hex}@example.org"
        made = Person(self.control.add_user(email, PASSWORD), email)
        secrecy.current.add("id of a person", made.id)
        secrecy.current.add("address of a person", made.email)
        secrecy.current.add("password", PASSWORD)
        for org in orgs:
            secrecy.current.add("role", role)
            self.control.set_membership(made.id, org.id, role=role)
        return made

    def contact(self, org: Organisation, name: str, **columns: str) -> str:
        """Insert a contact with this name, and its network-only columns; returns its id."""
        values = {"org_id": org.id, "name": name, **columns}
        secrecy.current.add_all("contact", values)
        details = {name: values.pop(name) for name in NETWORK_ONLY if name in values}
        made = self._insert("contacts", values)
        if details:
            self._insert("contact_details", {"contact_id": made, "org_id": org.id, **details})
        return made

    def _insert(self, table: str, values: dict[str, str]) -> str:
        marks = ", ".join(["%s"] * len(values))
        query = f"insert into {table} ({', '.join(values)}) values ({marks}) returning id"
        return str(self.control.sql(query, *values.values())[0]["id"])

    @contextlib.contextmanager
    def times_as_given(self) -> Iterator[None]:
        """Within the block, no trigger changes a contact's `updated_at`."""
        self.control.sql("alter table contacts disable trigger touch")
        try:
            yield
        finally:
            self.control.sql("alter table contacts enable trigger touch")

    def session(self, person: Person) -> dict[str, Any]:
        """Sign in outside the app; returns the token reply exactly as the server sent it."""
        address = urllib.parse.urlsplit(self.backend.url)
        link = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)
        try:
            link.request(
                "POST",
                "/auth/v1/token?grant_type=password",
                json.dumps({"email": person.email, "password": PASSWORD}),
                {"apikey": self.backend.anon_key, "Content-Type": "application/json"},
            )
            answer = link.getresponse()
            value: dict[str, Any] = json.loads(answer.read())
        finally:
            link.close()
        assert answer.status == 200, value
        secrecy.current.add_all("session", value)
        return value

    def activities(self, person: Person) -> list[dict[str, Any]]:
        """The user's activities on the server, ordered by time."""
        query = "select * from activities where user_id = %s order by occurred_at, id"
        return self.control.sql(query, person.id)

    def refreshes(self) -> int:
        """How many refresh requests the server got in this test."""
        return self.control.count("/auth/v1/token", "POST", "grant_type=refresh_token")


def altered(what: str, old: str, new: str) -> tuple[str, str]:
    """A statement `alter …` in which these fill the places {} in turn, and the one that ends it."""
    return "alter " + what.format(old, new), "alter " + what.format(new, old)


def revoked(right: str) -> tuple[str, str]:
    """A right is taken from signed-in users, and given back."""
    return f"revoke {right} from authenticated", f"grant {right} to authenticated"


#: The right to upload an activity.
UPLOAD_RIGHT = (
    "revoke insert on activities from authenticated",
    "grant insert (id, org_id, user_id, type, occurred_at, minutes, contact_id, follows, note)"
    " on activities to authenticated",
)


@contextlib.contextmanager
def changed(directory: DirectoryFixtures, change: str, back: str) -> Iterator[None]:
    """The server's schema is changed for a while."""
    directory.control.sql(change)
    try:
        directory.control.reload_schema()
        yield
    finally:
        directory.control.sql(back)
        directory.control.reload_schema()
