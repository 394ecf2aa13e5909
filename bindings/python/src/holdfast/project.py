"""A Supabase project as `holdfast.doctor` sees it: what the configuration names, and requests."""

from __future__ import annotations

import base64
import email.utils
import json
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from .transport import Transport
    from .types import HttpRequest

#: The template's kinds.
KINDS: dict[str, dict[str, Any]] = {
    "activity": {
        "table": "activities",
        "columns": ["user_id", "type", "minutes", "occurred_at", "contact_id", "follows", "note"],
        "function": "submit_activities",
    },
    "contact": {"table": "contacts", "columns": ["name", "municipality", "relation"]},
    "contact_details": {
        "table": "contact_details",
        "columns": ["contact_id", "phone", "address", "national_id"],
    },
}
METHODS: list[dict[str, str]] = [{"id": "password", "flow": "password"}]
#: A value that no column of the type uuid takes.
NO_UUID = "not-a-uuid"
#: No row and no organisation has this id.
NIL = "00000000-0000-0000-0000-000000000000"
#: The arguments of a function that takes many items.
ITEMS = {"items": "[]"}
#: What else the template names.
SECTIONS = ["memberships", "contacts", "summary"]
CACHED = ["name", "municipality", "relation"]
NETWORK_ONLY = ["phone", "address", "national_id"]
ROLES = ["peer_mentor", "coordinator", "org_admin"]


@dataclass(frozen=True)
class Own:
    """How the user's own stored rows of a kind are read, changed and taken back."""

    #: The columns that are read, `change_id` among them.
    columns: list[str]
    #: The columns that the user may change; empty: none.
    changed: list[str]
    #: The function that changes many rows; empty: each change is a request.
    function: str
    #: The column for the id of the last change; empty: there is none.
    change_id: str
    #: `deleted_at`, `row`; empty: a stored row stays.
    deletion: str


@dataclass(frozen=True)
class Kind:
    """A kind of queued items."""

    name: str
    table: str
    columns: list[str]
    #: The function that takes the rows, for `"upload": "rpc"`.
    function: str
    #: The columns of the table's primary key.
    key: tuple[str, ...] = ("id",)
    own: Own | None = None


@dataclass(frozen=True)
class Names:
    """What a valid configuration names on the server."""

    url: str
    api_key: str
    #: (flow, the auth service's name of the provider, id).
    methods: list[tuple[str, str, str]]
    redirect_url: str
    memberships: str
    contacts: str
    cached: list[str]
    needs_network: list[str]
    summary: str
    kinds: list[Kind]
    roles: list[str]

    @property
    def host(self) -> str:
        """The host of the URL, with its port."""
        return urllib.parse.urlsplit(self.url).netloc

    @classmethod
    def of(cls, configuration: Mapping[str, Any]) -> Names:
        """Read a configuration that the library takes; what it leaves out has the defaults."""
        template = configuration.get("template") == "volunteers"
        absent: dict[str, Any] = {name: {} for name in SECTIONS} if template else {}
        backend = absent | dict(configuration["backend"])
        has_org = backend.get("memberships") is not None
        contacts = backend.get("contacts") or {}
        columns = contacts.get("columns") or (CACHED if template else ["name"])
        keys = ["id", "org_id"] if has_org else ["id"]
        methods = configuration.get("auth_methods")
        return cls(
            url=backend["url"].rstrip("/"),
            api_key=backend["api_key"],
            methods=[
                (method["flow"], method.get("provider") or method["id"], method["id"])
                for method in (METHODS if methods is None else methods)
            ],
            redirect_url=configuration.get("redirect_url") or "",
            memberships=named(backend, "memberships", "table", "memberships"),
            contacts=named(backend, "contacts", "table", "contacts"),
            cached=[key for key in keys if key not in columns] + columns,
            needs_network=contacts.get("needs_network", NETWORK_ONLY if template else []),
            summary=named(backend, "summary", "function", "activity_summary"),
            kinds=kinds(backend.get("queue"), KINDS if template else {}, has_org=has_org),
            roles=list(configuration.get("routes") or (ROLES if template and has_org else [])),
        )


def named(backend: Mapping[str, Any], section: str, name: str, default: str) -> str:
    """A table or function; empty where the app has no such section."""
    names = backend.get(section)
    return "" if names is None else str(names.get(name, default))


def kinds(queue: Mapping[str, Any] | None, known: dict[str, Any], *, has_org: bool) -> list[Kind]:
    """The kinds of queued items, with all columns that are sent; `known`: the template's."""
    found = []
    for name, kind in (known if queue is None else queue).items():
        default = {"columns": [], "function": "", **known.get(name, {})}
        columns = kind.get("columns") or default["columns"]
        has_user = "user_id" in [*columns, *default["columns"]]
        keys = ["id"] + ["org_id"] * has_org + ["user_id"] * has_user
        called = kind.get("function", default["function"]) if kind.get("upload") == "rpc" else ""
        every = keys + [column for column in columns if column not in keys]
        has_org_in_key = kind.get("primary_key") == "id_and_org_id"
        key = ("id", "org_id") if has_org_in_key else ("id",)
        kept = own(kind, [column for column in columns if column != "user_id"])
        found.append(Kind(name, kind["table"], every, called, key, kept))
    return found


def own(kind: Mapping[str, Any], columns: list[str]) -> Own | None:
    """What a kind says of the user's own rows; `columns`: the kind's."""
    if kind.get("own") is None:
        return None
    kept = kind["own"].get("columns") or columns
    change = kind.get("change")
    deletion = kind.get("delete") or ""
    mark = ["deleted_at"] if deletion == "deleted_at" else []
    rule = change or {}
    ids = filter(None, [rule.get("id")])
    return Own(
        columns=list(dict.fromkeys(["id", "updated_at", *mark, *kept, *ids])),
        changed=[] if change is None else rule.get("columns") or kept,
        function=rule.get("function") or "",
        change_id=rule.get("id") or "",
        deletion=deletion,
    )


def claims(token: str) -> dict[str, Any]:
    """The claims of a JSON web token, unverified; empty for any other text."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True)
class Reply:
    """The response to one request, or the reason why there is none."""

    status: int
    error: str
    headers: dict[str, str]
    #: The body as JSON; None for any other body.
    value: Any
    seconds: float
    #: How far the server's clock is ahead of this machine's, in seconds.
    ahead_s: float | None

    @property
    def code(self) -> str:
        """The server's code; empty when there is none."""
        for name in ("code", "error_code"):
            code = self.value.get(name) if isinstance(self.value, dict) else None
            if isinstance(code, str):
                return code
        return ""

    @property
    def message(self) -> str:
        """The server's text. It may hold data of users: never shown, only searched."""
        if not isinstance(self.value, dict):
            return ""
        return " ".join(str(self.value.get(name, "")) for name in ("message", "msg", "hint"))

    @property
    def rows(self) -> list[Any]:
        """The rows; empty when the body is no list."""
        return self.value if isinstance(self.value, list) else []


@dataclass
class Project:
    """Sends requests as the library does."""

    names: Names
    transport: Transport
    timeout_s: float
    #: The access token of a user; empty: nobody is signed in.
    token: str = ""
    replies: list[Reply] = field(default_factory=list)

    def seen_by(self, token: str) -> Project:
        """The same project, for requests of the user with this token."""
        return replace(self, token=token)

    def auth(self, path: str, **more: Any) -> Reply:  # noqa: ANN401
        """Ask the auth service."""
        headers = {"X-Supabase-Api-Version": "2024-01-01"}
        return self.send(f"/auth/v1/{path}", headers=headers, **more)

    def rest(self, path: str, **more: Any) -> Reply:  # noqa: ANN401
        """Ask the data service."""
        return self.send(f"/rest/v1/{path}", **more)

    def read(self, table: str, query: Mapping[str, str], **more: Any) -> Reply:  # noqa: ANN401
        """Read a table, or write to it."""
        return self.rest(f"{table}?{urllib.parse.urlencode(query, safe=',()')}", **more)

    def send(
        self,
        path: str,
        *,
        body: object = None,
        prefer: str = "",
        headers: Mapping[str, str] | None = None,
        method: str = "",
    ) -> Reply:
        """Send a request; without `method` a GET, or a POST if it has a body."""
        sent = {"apikey": self.names.api_key, "Accept": "application/json", **(headers or {})}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        if prefer:
            sent["Prefer"] = prefer
        if body is not None:
            sent["Content-Type"] = "application/json"
        request = {
            "id": len(self.replies) + 1,
            "purpose": "validate",
            "method": method or ("GET" if body is None else "POST"),
            "url": self.names.url + path,
            "headers": sent,
            "body": None if body is None else json.dumps(body),
            "timeout_ms": round(self.timeout_s * 1000),
        }
        began, clock = time.monotonic(), time.time()
        answer = self.transport(cast("HttpRequest", request))
        seconds = time.monotonic() - began
        received = {name.lower(): text for name, text in (answer.get("headers") or {}).items()}
        reply = Reply(
            status=answer.get("status", 0),
            error=answer.get("error", ""),
            headers=received,
            value=parsed(answer.get("body")),
            seconds=seconds,
            ahead_s=lead(received.get("date"), clock + seconds / 2),
        )
        self.replies.append(reply)
        return reply


def parsed(body: str | None) -> Any:  # noqa: ANN401
    """The body as JSON, or None."""
    try:
        return None if body is None else json.loads(body)
    except ValueError:
        return None


def lead(date: str | None, now: float) -> float | None:
    """How far a Date header is ahead of `now`, in seconds."""
    try:
        return None if date is None else email.utils.parsedate_to_datetime(date).timestamp() - now
    except (ValueError, OverflowError):
        return None
