"""Client of the control endpoint /_control/ of a running server. Standard library only."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from typing import Any

from patience import patience


class ControlError(RuntimeError):
    """The server refused a control request; the text gives the reason."""


class Control:
    """One method per request. Users are named by e-mail address or id, organisations by id."""

    def __init__(self, url: str) -> None:
        self._address = urllib.parse.urlsplit(url)

    def call(
        self, method: str, path: str, sent: dict[str, Any] | None = None, within_s: float = 120
    ) -> Any:
        """Send a request to /_control. Raises ControlError if it is refused."""
        link = http.client.HTTPConnection(
            self._address.hostname or "127.0.0.1", self._address.port, timeout=patience(within_s)
        )
        try:
            link.request(method, "/_control" + path, body=json.dumps(sent or {}))
            answer = link.getresponse()
            value = json.loads(answer.read())
        finally:
            link.close()
        if answer.status != 200:
            raise ControlError(str(value.get("error", value)))
        return value

    # Settings -------------------------------------------------------------------------------------

    def config(self) -> dict[str, Any]:
        """All settings (see config.py)."""
        return dict(self.call("GET", "/config"))

    def set(self, **values: Any) -> dict[str, Any]:
        """Change settings while the server runs, such as `jwt_lifetime=2`."""
        return dict(self.call("PATCH", "/config", values))

    # Faults ---------------------------------------------------------------------------------------

    def add_fault(
        self,
        action: str,
        *,
        method: str | None = None,
        path: str = "/",
        query: str | None = None,
        times: int = 1,
        skip: int = 0,
        **details: Any,
    ) -> int:
        """Add a fault for requests whose path has this prefix and whose query contains `query`.

        `action` is drop_before, drop_after, delay, respond, hang or truncate_rows; `details` are
        the other fields of `Fault` in faults.py. Returns the id of the fault.
        """
        match: dict[str, str] = {"path": path}
        if method is not None:
            match["method"] = method
        if query is not None:
            match["query"] = query
        sent = {"match": match, "action": action, "times": times, "skip": skip, **details}
        return int(self.call("POST", "/faults", sent)["id"])

    def drop_before(self, path: str, **match: Any) -> int:
        """Close the connection without handling the request."""
        return self.add_fault("drop_before", path=path, **match)

    def drop_after(self, path: str, **match: Any) -> int:
        """Handle and commit, then close the connection without a response."""
        return self.add_fault("drop_after", path=path, **match)

    def delay(self, path: str, *, before_ms: float = 0, after_ms: float = 0, **match: Any) -> int:
        """Wait before or after handling."""
        return self.add_fault(
            "delay", path=path, delay_before_ms=before_ms, delay_after_ms=after_ms, **match
        )

    def respond(
        self,
        path: str,
        status: int,
        *,
        body: str | dict[str, Any] = "",
        headers: dict[str, str] | None = None,
        retry_after_s: int | None = None,
        retry_after_date_s: int | None = None,
        **match: Any,
    ) -> int:
        """Respond with this, without handling. Retry-After: seconds, or a date that far ahead."""
        return self.add_fault(
            "respond",
            path=path,
            status=status,
            body=body,
            headers=headers or {},
            retry_after_s=retry_after_s,
            retry_after_date_s=retry_after_date_s,
            **match,
        )

    def hang(self, path: str, **match: Any) -> int:
        """Never respond."""
        return self.add_fault("hang", path=path, **match)

    def truncate_rows(self, path: str, *, keep: int, **match: Any) -> int:
        """Store everything, but return only the first `keep` rows."""
        return self.add_fault("truncate_rows", path=path, keep_rows=keep, **match)

    def faults(self) -> list[dict[str, Any]]:
        """The active faults, with their `hits`."""
        return list(self.call("GET", "/faults"))

    def clear_faults(self, fault_id: int | None = None) -> None:
        """Remove one fault, or all."""
        self.call("DELETE", "/faults", None if fault_id is None else {"id": fault_id})

    # Request log ----------------------------------------------------------------------------------

    def requests(self, path: str = "/", method: str | None = None) -> list[dict[str, Any]]:
        """The received requests, oldest first (fields: `Entry` in request_log.py)."""
        match = {"path": path} | ({"method": method} if method else {})
        return list(self.call("GET", "/requests", match))

    def counts(self) -> dict[str, int]:
        """The number of requests per `METHOD /path`."""
        return dict(self.call("GET", "/counts"))

    def count(self, path: str, method: str | None = None, query: str | None = None) -> int:
        """The number of matching requests; `query` is a substring of the query string."""
        return sum(query is None or query in e["query"] for e in self.requests(path, method))

    def clear_requests(self) -> None:
        """Clear the request log."""
        self.call("DELETE", "/requests")

    def reset(self, **settings: Any) -> None:
        """Begin a test: these settings, no faults, no refusals by the provider, an empty log."""
        self.call("POST", "/reset", settings)

    # Database -------------------------------------------------------------------------------------

    def sql(self, query: str, *parameters: Any, within_s: float = 100) -> list[dict[str, Any]]:
        """Run a statement as the superuser (placeholders `%s`) and return its rows.

        PostgreSQL cancels it after `within_s`, before the client stops waiting: a statement that
        has failed here is never carried out later.
        """
        sent = {"query": query, "parameters": list(parameters), "within_ms": int(within_s * 1000)}
        return list(self.call("POST", "/sql", sent, within_s=within_s + 120))

    def reload_schema(self) -> None:
        """Read the catalog again after DDL."""
        self.call("POST", "/schema/reload")

    def stop_database(self) -> None:
        """Stop PostgreSQL at once. The services go on responding, as the real ones do."""
        self.call("POST", "/database/stop")

    def start_database(self) -> None:
        """Start PostgreSQL again."""
        self.call("POST", "/database/start")

    def seed_demo(self) -> None:
        """Store the demo (see demo.py)."""
        self.call("POST", "/demo")

    def seed_contacts(self, org: str, count: int, first: int = 0) -> None:
        """Store made-up contacts, numbered from `first`."""
        self.call("POST", "/contacts", {"org": org, "count": count, "first": first})

    # People and organisations ---------------------------------------------------------------------

    def add_user(self, email: str, password: str | None = None, user_id: str | None = None) -> str:
        """Create a confirmed user, by default with the demo's password. Returns the id."""
        sent = {"email": email}
        sent |= {"password": password} if password is not None else {}
        return str(self.call("POST", "/users", sent | ({"id": user_id} if user_id else {}))["id"])

    def remove_user(self, user: str) -> None:
        """Delete a user and all of their rows."""
        self.call("DELETE", "/users", {"user": user})

    def ban(self, user: str, seconds: float = 365 * 86400) -> None:
        """Ban a user for this time."""
        self.call("POST", "/users/ban", {"user": user, "seconds": seconds})

    def unban(self, user: str) -> None:
        """Lift the ban."""
        self.ban(user, 0)

    def add_org(self, name: str, org: str | None = None) -> str:
        """Create an active organisation. Returns the id."""
        return str(self.call("POST", "/organizations", {"name": name, "id": org})["id"])

    def set_org(self, org: str, status: str) -> None:
        """Set the status: `active` or `disabled`."""
        self.call("PATCH", "/organizations", {"org": org, "status": status})

    def set_membership(
        self, user: str, org: str, *, role: str | None = None, status: str | None = None
    ) -> None:
        """Create a membership, or change its role or status.

        Roles: peer_mentor, coordinator, org_admin. Status: active, ended.
        """
        sent = {"user": user, "org": org, "role": role, "status": status}
        self.call("PUT", "/memberships", sent)

    # Sessions and the provider --------------------------------------------------------------------

    def sessions(self, user: str) -> list[dict[str, Any]]:
        """The user's sessions, oldest first."""
        return list(self.call("GET", "/sessions", {"user": user}))

    def refresh_tokens(self) -> list[str]:
        """The refresh tokens of all sessions, also used ones."""
        return list(self.call("GET", "/sessions/tokens"))

    def expire_sessions(self, user: str) -> None:
        """Let every later refresh fail with session_expired."""
        self.call("POST", "/sessions/expire", {"user": user})

    def revoke_sessions(self, user: str) -> None:
        """Delete the user's sessions, as a global logout on another device does."""
        self.call("DELETE", "/sessions", {"user": user})

    def sign_in_as(self, email: str | None) -> None:
        """Choose the user for whom /authorize redirects at once. None shows a page instead."""
        self.set(provider_user=email)

    def refuse_sign_in(self, times: int = 1, **parameters: str) -> None:
        """The next /authorize redirects with `error`, `error_code` and `error_description`."""
        self.call("POST", "/provider/refuse", {"times": times, **parameters})

    def identity_token(
        self,
        email: str,
        *,
        nonce: str | None = None,
        audience: str | None = None,
        lifetime: float | None = None,
    ) -> str:
        """Make an id_token as the provider's app does; `nonce` is the raw nonce."""
        sent: dict[str, Any] = {"user": email, "nonce": nonce, "lifetime": lifetime}
        if audience is not None:
            sent["audience"] = audience
        return str(self.call("POST", "/provider/identity-token", sent)["id_token"])
