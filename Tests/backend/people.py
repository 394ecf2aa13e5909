"""Users of the backend, and the rows that they store."""

from __future__ import annotations

import uuid
from typing import Any

import httpx
from local_supabase import LocalSupabase, demo
from patience import patience

import web


class Person:
    """A signed-in user with a client for the data service."""

    def __init__(self, backend: LocalSupabase, email: str, password: str = demo.PASSWORD) -> None:
        self.email = email
        answer = web.post(
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
            timeout=patience(120),
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


def member(backend: LocalSupabase, org: str, role: str) -> Person:
    """Create a user with this role in an organisation."""
    email = f"u{uuid.uuid4().hex[:12]}@example.org"
    backend.control.add_user(email)
    backend.control.set_membership(email, org, role=role)
    return Person(backend, email)


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
