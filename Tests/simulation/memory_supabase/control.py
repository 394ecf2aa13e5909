"""The operations of `local_supabase.Control`, for the server in memory."""

from __future__ import annotations

from typing import Any

from local_supabase import auth_flows, demo
from local_supabase.accounts import User
from local_supabase.auth import Auth
from local_supabase.config import Config
from local_supabase.control import ControlError

from .database import SERVICE, Database
from .schema import TABLES


class MemoryControl:
    """The same methods as `local_supabase.Control`; a user is given by e-mail address or id."""

    def __init__(self, database: Database, auth: Auth, config: Config) -> None:
        self.database = database
        self.auth = auth
        self._config = config

    def config(self) -> dict[str, Any]:
        """All settings."""
        return self._config.public()

    def set(self, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - as the settings are
        """Change settings."""
        try:
            self._config.change(values)
        except ValueError as error:
            raise ControlError(str(error)) from error
        return self.config()

    def _user(self, user: str) -> User:
        found = self.auth.find(user)
        if found is None:
            raise ControlError(f"nobody is called {user}")
        return found

    def add_user(self, email: str, password: str | None = None, user_id: str | None = None) -> str:
        """Create a confirmed user; return the id."""
        made = self.auth.create(email, password or demo.PASSWORD, user_id=user_id)
        return str(made["id"])

    def remove_user(self, user: str) -> None:
        """Delete a user and all their rows."""
        found = self._user(user)["id"]
        self.auth.remove(self._user(user))
        for name, rows in self.database.rows.items():
            owner = "id" if name == "profiles" else "user_id"
            if TABLES[name].column(owner) is not None and name in {
                "profiles",
                "memberships",
                "activities",
            }:
                self.database.rows[name] = {k: r for k, r in rows.items() if r[owner] != found}

    def ban(self, user: str, seconds: float = 365 * 86400) -> None:
        """Ban a user for this long."""
        self.auth.ban(self._user(user), seconds)

    def unban(self, user: str) -> None:
        """Lift the ban."""
        self.ban(user, 0)

    def add_org(self, name: str, org: str | None = None) -> str:
        """Create an active organisation; return the id."""
        table = TABLES["organizations"]
        values = {"name": name} | ({"id": org} if org else {})
        row, _ = self.database.insert(table, dict(values), SERVICE, None)
        assert row is not None
        return str(row["id"])

    def set_org(self, org: str, status: str) -> None:
        """Set the status: `active` or `disabled`."""
        table = TABLES["organizations"]
        self.database.update(
            table, self.database.rows["organizations"][org], {"status": status}, SERVICE
        )

    def set_membership(
        self, user: str, org: str, *, role: str | None = None, status: str | None = None
    ) -> None:
        """Create a membership, or change its role or status."""
        table = TABLES["memberships"]
        found = self._user(user)["id"]
        existing = self.database.rows["memberships"].get((found, org))
        if existing is None:
            values: dict[str, Any] = {
                "user_id": found, "org_id": org, "role": role or "peer_mentor",
                "status": status or "active",
            }  # fmt: skip
            self.database.insert(table, values, SERVICE, None)
            return
        changes: dict[str, Any] = {}
        changes |= {"role": role} if role else {}
        changes |= {"status": status} if status else {}
        self.database.update(table, existing, changes, SERVICE)

    def seed_contacts(self, org: str, count: int, first: int = 0) -> None:
        """Store made-up contacts with their details, numbered from `first`."""
        for number in range(first, first + count):
            values = demo.contact(org, number)
            row, _ = self.database.insert(TABLES["contacts"], values, SERVICE, "ignore-duplicates")
            if row is None:
                continue
            # Without `insert`, which takes a moment of the clock: the worlds of old seeds stay as
            # they were.
            details = demo.contact_details(org, number)
            self.database.rows["contact_details"][details["id"]] = {
                **details, "created_by": None,
                "created_at": row["updated_at"], "updated_at": row["updated_at"],
            }  # fmt: skip

    def seed_demo(self) -> None:
        """Store the demo (see demo.py)."""
        for org, name in demo.ORGANIZATIONS.items():
            self.add_org(name, org)
        for email, user_id in demo.USERS.items():
            self.add_user(email, user_id=user_id)
        for email, org, role in demo.MEMBERSHIPS:
            self.set_membership(email, org, role=role)
        for org in demo.ORGANIZATIONS:
            self.seed_contacts(org, demo.CONTACTS_PER_ORGANIZATION)

    # Sessions and the provider --------------------------------------------------------------------

    def sessions(self, user: str) -> list[dict[str, Any]]:
        """The user's sessions, oldest first."""
        return [session.public() for session in self.auth.sessions.of(self._user(user)["id"])]

    def expire_sessions(self, user: str) -> None:
        """Expire the user's sessions: a refresh answers session_expired from now on."""
        self.auth.expire(self._user(user))

    def revoke_sessions(self, user: str) -> None:
        """Delete the user's sessions, as a global logout elsewhere would."""
        self.auth.sessions.end(self._user(user)["id"])

    def sign_in_as(self, email: str | None) -> None:
        """Set the person at the simulated BankID or Vipps."""
        self.set(provider_user=email)

    def refuse_sign_in(self, times: int = 1, **parameters: str) -> None:
        """Let the next /authorize redirect with an error."""
        self.auth.refuse(times, parameters)

    def identity_token(
        self, email: str, *, nonce: str | None = None, audience: str | None = None,
        lifetime: float | None = None,
    ) -> str:  # fmt: skip
        """Return an id_token as the provider's app would issue it."""
        return auth_flows.identity_token(
            self._config, email, nonce=nonce, audience=audience or auth_flows.AUDIENCE,
            lifetime=lifetime, now=self.database.now().timestamp(), token_id=self.database.new_id(),
        )  # fmt: skip

    # Faults and logs of the other server ----------------------------------------------------------

    def clear_faults(self) -> None:
        """Do nothing: the simulation's network injects the faults."""

    def clear_requests(self) -> None:
        """Return nothing: this server keeps no log."""
