"""`holdfast.doctor`: checks a configuration against a Supabase project, and says what to do.

docs/doctor.md describes the steps. None of them stores anything in the project's tables.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import statistics
import tempfile
import time
import urllib.parse
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from . import verdicts
from .checkup_user import UserCheckup
from .errors import HoldfastError
from .handle import Holdfast, plain
from .keystores import MemoryKeyStore
from .project import ITEMS, NIL, NO_UUID, Names, Project, Reply, claims
from .transport import HttpTransport

if TYPE_CHECKING:
    from .library import Library
    from .transport import Transport
    from .types import Config

Outcome = Literal["ok", "warn", "fail"]

#: A clock that is further away than this is worth a warning, in seconds.
CLOCK_S = 60
#: Requests that take longer than this are worth a warning, in seconds.
SLOW_S = 1.0
KEYS = "the dashboard's Settings > API Keys"


@dataclass(frozen=True)
class Step:
    """One thing that the doctor checked."""

    name: str
    #: ok; warn: it works, or cannot be seen from outside; fail: the app cannot work so.
    outcome: Outcome
    found: str
    #: What to do; empty for ok.
    advice: str = ""

    def __str__(self) -> str:
        """One line, and below it what to do."""
        line = f"{self.outcome:<4}  {self.name}: {self.found}"
        return f"{line}\n      {self.advice}" if self.advice else line


class _StopError(Exception):
    """Further steps would fail for the same reason."""


def doctor(
    configuration: Config | Mapping[str, Any],
    *,
    email: str | None = None,
    password: str | None = None,
    access_token: str | None = None,
    transport: Transport | None = None,
    library: Library | None = None,
    timeout_s: float = 10.0,
) -> list[Step]:
    """Check a configuration against its project, step by step.

    Every step is ok, warn or fail, and tells what to do. The list ends with the first step without
    which the later ones make no sense. With `email` and `password`, or with the `access_token` of a
    signed-in user, it checks what that user may do, too.

    Nothing is stored in the project's tables. With a password the auth service keeps a session,
    which the doctor ends. A secret key is never sent.
    """
    sender = transport or HttpTransport()
    checkup = Checkup(library)
    try:
        with contextlib.suppress(_StopError):
            checkup.run(configuration, sender, timeout_s, (email, password, access_token))
    finally:
        if transport is None and isinstance(sender, HttpTransport):
            sender.close()
    return checkup.steps


def without_the_drivers(given: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without its key store, and without what the HTTP driver takes out of it."""
    config = {name: value for name, value in given.items() if name not in ("http", "development")}
    store = given.get("keystore")
    if isinstance(store, Mapping) and store.get("kind") == "secret_service":
        del config["keystore"]
    return config


@dataclass
class Checkup:
    """The steps so far, and those to come."""

    library: Library | None
    steps: list[Step] = field(default_factory=list)
    #: (table, column) of the ids that are no UUIDs: each is said once.
    wrong_ids: set[tuple[str, str]] = field(default_factory=set)

    def ok(self, name: str, found: str) -> None:
        """Add a step that is as it should be."""
        self.steps.append(Step(name, "ok", found))

    def warn(self, name: str, found: str, advice: str) -> None:
        """Add a step that may be a mistake."""
        self.steps.append(Step(name, "warn", found, advice))

    def fail(self, name: str, found: str, advice: str) -> None:
        """Add a step that is a mistake."""
        self.steps.append(Step(name, "fail", found, advice))

    def stop(self, name: str, found: str, advice: str) -> None:
        """Add the mistake that ends the list; raises."""
        self.fail(name, found, advice)
        raise _StopError

    def judge(
        self,
        name: str,
        reply: Reply,
        faults: Mapping[str, tuple[str, str]],
        found: str = "",
        *,
        success: str = "",
        elsewhere: Collection[str] = (),
    ) -> bool:
        """Add the step that a reply means; whether it is a success.

        `faults` has the mistakes by the reply's code, or by its status if it has none. `success` is
        the code of a success, without which that is a status of success; `found` tells of it. A
        code of `elsewhere` is in another step.
        """
        code = reply.code or str(reply.status)
        if code == success if success else reply.status in {200, 204}:
            if found:
                self.ok(name, found)
            return True
        if code in faults:
            self.fail(name, *faults[code])
        elif code not in elsewhere:
            self.warn(name, *verdicts.odd(reply))
        return False

    def run(
        self,
        configuration: Config | Mapping[str, Any],
        transport: Transport,
        timeout_s: float,
        user: tuple[str | None, str | None, str | None],
    ) -> None:
        """Check everything."""
        given = plain(cast("Mapping[str, Any]", configuration))
        self._secret_key(given)
        self._configuration(given)
        names = Names.of(given)
        project = Project(names, transport, timeout_s)
        self._api_key(names)
        self._reachable(project)
        external = self._accepted(project)
        self._methods(names, external)
        self._redirect(project)
        self._tables(project)
        self._functions(project)
        UserCheckup(self, project).run(*user)
        self._clock(project)
        self._latency(project)

    # What shows without a request -----------------------------------------------------------------

    def _secret_key(self, given: Mapping[str, Any]) -> None:
        """Before anything else, so that it is never sent."""
        backend = given.get("backend")
        key = backend.get("api_key") if isinstance(backend, Mapping) else None
        if not isinstance(key, str):
            return
        if key.startswith("sb_secret_") or claims(key).get("role") == "service_role":
            self.stop(
                "api key",
                "THIS IS A SECRET KEY. It bypasses every policy: whoever has the app reads and"
                " changes everything. It was not sent.",
                "Replace it at once: take it out of the app and its history, make a new one in"
                f" {KEYS}, and configure the publishable (or anon) key.",
            )

    def _configuration(self, given: Mapping[str, Any]) -> None:
        backend = given.get("backend")
        url = backend.get("url") if isinstance(backend, Mapping) else None
        if isinstance(url, str) and (advice := verdicts.better_url(url)):
            self.stop("configuration", "/backend/url is no project's URL", advice)
        folder = given.get("data_dir")
        config = without_the_drivers(given)
        with tempfile.TemporaryDirectory() as place:
            if isinstance(folder, str) and folder and not folder.startswith("~"):
                if Path(folder).is_file():
                    self.stop("configuration", "/data_dir is a file", "Name a folder.")
                config["data_dir"] = str(Path(place) / "data")
            keys = None if config.get("keystore") is not None else MemoryKeyStore()
            try:
                Holdfast(cast("Config", config), keys, library=self.library).close()
            except HoldfastError as error:
                self.stop(
                    "configuration", f"{error.field or '/'}: {error.code}", f"{error.message}."
                )
            except (ImportError, TypeError, ValueError) as error:
                self.stop("configuration", "the library cannot read it", f"{error}.")
        if url is not None and str(url).startswith("http:") and not verdicts.is_loopback(str(url)):
            self.warn(
                "configuration",
                "allow_insecure: keys, tokens and contents can be read on the way",
                "Use https before anybody else uses the app.",
            )
        else:
            self.ok("configuration", "the library takes it")

    def _api_key(self, names: Names) -> None:
        key, found = names.api_key, claims(names.api_key)
        host = urllib.parse.urlsplit(names.url).hostname or ""
        project, _, domain = host.partition(".")
        owner = found.get("ref")
        copy = f"Copy the publishable (or anon) key from {KEYS} of the project {host}."
        if found.get("role") == "authenticated" or "sub" in found:
            self.stop("api key", "it is a user's access token, and no key", copy)
        if domain == "supabase.co" and isinstance(owner, str) and owner != project:
            self.stop("api key", "it belongs to another project than the URL", copy)
        ends = found.get("exp")
        if isinstance(ends, int | float) and ends < time.time():
            self.stop("api key", "it has expired", copy)
        if not key.startswith("sb_publishable_") and found.get("role") != "anon":
            self.warn("api key", "it has no form that Supabase gives its public keys", copy)

    # The services ---------------------------------------------------------------------------------

    def _reachable(self, project: Project) -> None:
        reply = project.auth("health")
        if reply.error:
            self.stop("reachable", *verdicts.unreachable(reply.error, project))
        self.ok("reachable", f"{project.names.host} answers")
        self._told(project, reply, "version")
        self.ok("supabase", "the auth service answers")

    def _told(self, project: Project, reply: Reply, name: str) -> Any:  # noqa: ANN401
        """A member of what the auth service answers; stops if it does not answer so."""
        is_object = isinstance(reply.value, dict)
        if is_object and reply.status in {401, 403}:
            self._refused_key(project)
        if not is_object or reply.status != 200 or name not in reply.value:
            self.stop("supabase", *verdicts.foreign(reply, "/auth/v1"))
        return reply.value[name]

    def _refused_key(self, project: Project) -> None:
        self.stop(
            "api key",
            "the project refuses it",
            f"Copy the publishable (or anon) key from {KEYS} of the project {project.names.host}:"
            " this one is another project's, is disabled, or has lost a letter.",
        )

    def _accepted(self, project: Project) -> dict[str, Any]:
        reply = project.auth("settings")
        external = self._told(project, reply, "external")
        if not isinstance(external, dict):
            self.stop("supabase", *verdicts.foreign(reply, "/auth/v1"))
        self.ok("api key", "the auth service accepts it")
        self._data_service(project)
        return cast("dict[str, Any]", external)

    def _data_service(self, project: Project) -> None:
        """Its root may be closed to everybody, so a table is asked for."""
        names = project.names
        tables = [names.memberships, names.contacts, *(kind.table for kind in names.kinds)]
        table = next(filter(None, tables), "")
        reply = project.rest(f"{table}?limit=0")
        if reply.status == 401 and not reply.code and "api key" in reply.message.lower():
            self._refused_key(project)
        if reply.code == "PGRST106":
            self.stop(
                "data service",
                "the project does not expose the schema public",
                "Add public to the exposed schemas in the dashboard's Settings > Data API.",
            )
        is_own = isinstance(reply.value, dict) if not table else bool(reply.code)
        is_own = is_own or isinstance(reply.value, list)
        if reply.error or reply.status >= 500 or not is_own:
            self.stop("data service", *verdicts.foreign(reply, "/rest/v1"))
        self.ok("data service", "it answers")

    def _methods(self, names: Names, external: Mapping[str, Any]) -> None:
        where = "Authentication > Sign In / Providers"
        if not names.methods:
            self.warn(
                "sign-in", "auth_methods is empty", "The app must call session_adopt by itself."
            )
        for flow, provider, method in names.methods:
            wanted = "email" if flow == "password" else provider
            step = f"sign-in {method}"
            if external.get(wanted) is True:
                self.ok(step, f"the provider {wanted} is on")
            elif wanted in external:
                self.fail(
                    step,
                    f"the provider {wanted} is off in the project",
                    f"Switch it on in {where}, or take the method out of auth_methods.",
                )
            else:
                self.warn(
                    step,
                    f"the project does not tell of a provider {wanted}",
                    f"Look for it in {where}. The list that anybody can read has no providers of"
                    " your own; Supabase knows the others by names such as google or apple.",
                )

    def _redirect(self, project: Project) -> None:
        """A link that has expired leads to the redirect, if the project lists it."""
        wanted = project.names.redirect_url
        if not any(flow == "pkce" for flow, _, _ in project.names.methods):
            return
        query = {"type": "signup", "token": secrets.token_hex(28), "redirect_to": wanted}
        reply = project.auth(f"verify?{urllib.parse.urlencode(query)}")
        target = re.split("[?#]", reply.headers.get("location", ""))[0]
        list_it = (
            f"Add exactly {wanted} to Authentication > URL Configuration > Redirect URLs, without a"
            " wildcard."
        )
        if reply.status not in {302, 303} or not target:
            self.warn("redirect", "the project does not show whether it lists the URL", list_it)
        elif target.rstrip("/") == re.split("[?#]", wanted)[0].rstrip("/"):
            self.ok(
                "redirect",
                "the project lists it (only a sign-in shows whether the app receives it, and"
                " what the provider itself is set up with)",
            )
        else:
            self.fail("redirect", f"the project sends the browser to {target} instead", list_it)

    # Tables and functions -------------------------------------------------------------------------

    def _tables(self, project: Project) -> None:
        names = project.names
        open_tables: dict[str, str] = {}
        if names.memberships:
            columns = ["org_id", "user_id", "role", "status", "updated_at"]
            self._table(project, "memberships", names.memberships, columns, fixed=True)
            self._table(
                project, "memberships", "organizations", ["id", "name", "status"], fixed=True
            )
            self._embedding(project)
            open_tables |= {names.memberships: "org_id", "organizations": "id"}
        if names.contacts:
            columns = [*names.cached, "updated_at", "deleted_at", *names.needs_network]
            self._table(project, "contacts", names.contacts, list(dict.fromkeys(columns)))
            open_tables[names.contacts] = "id"
        for kind in names.kinds:
            kept = ["user_id", *kind.own.columns] if kind.own else []
            columns = list(dict.fromkeys([*kind.columns, *kept]))
            self._table(project, f"queue.{kind.name}", kind.table, columns)
            open_tables[kind.table] = "id"
        for table, column in open_tables.items():
            self._policies(project, table, column)

    def _table(
        self, project: Project, section: str, table: str, columns: list[str], *, fixed: bool = False
    ) -> None:
        """The table and its columns: the server looks for them before it asks who may read them."""
        step, missing, left = f"table {table} ({section})", list[str](), list(columns)
        place = f"/backend/{section.replace('.', '/')}"
        reply = project.read(table, {"select": ",".join(left), "limit": "0"})
        while reply.code == "42703" and (name := verdicts.unknown_column(reply, left)):
            missing.append(name)
            left.remove(name)
            reply = project.read(table, {"select": ",".join(left) or "*", "limit": "0"})
        if missing:
            rename = "" if fixed else f", or name the right ones in {place}"
            self.fail(
                step,
                f"has no {'column' if len(missing) == 1 else 'columns'} {', '.join(missing)}",
                f"alter table public.{table} add column …{rename}: docs/own-table.md, sync.md.",
            )
        elif reply.code in {"PGRST205", "42P01"}:
            near = verdicts.suggested(reply)
            self.fail(
                step,
                "there is no such table in the schema that the project exposes",
                f"Create it, or name the right one in {place}"
                + (f": did you mean {near}?" if near else ".")
                + " A new table shows after a moment: notify pgrst, 'reload schema'.",
            )
        elif verdicts.table_of(reply).startswith(" (schema"):
            self.warn(
                step,
                "its columns cannot be seen without a user",
                "Give --email or an access token; or grant usage on schema public to anon.",
            )
        elif reply.status != 200 and reply.code != "42501":
            self.warn(step, *verdicts.odd(reply))
        elif self.has_uuids(project, step, table, columns):
            self.ok(step, f"{len(columns)} columns")

    def has_uuids(self, project: Project, step: str, table: str, columns: list[str]) -> bool:
        """Whether the ids among the columns are UUIDs, as far as the caller may see.

        The server converts a value before it asks who may read. A column that refuses what is no
        UUID and takes a UUID is one, whatever the language of the server's messages is.
        """
        wrong = []
        for column in [name for name in ("id", "org_id", "user_id") if name in columns]:
            query = {"select": column, "limit": "0"}
            reply = project.read(table, {**query, column: f"eq.{NO_UUID}"})
            if reply.status != 200 and reply.code.startswith(("22", "42883")):
                reply = project.read(table, {**query, column: f"eq.{NIL}"})
                if not reply.code.startswith(("22", "42883")):
                    continue
            elif reply.status != 200:
                continue
            if (table, column) not in self.wrong_ids:
                kind = verdicts.type_of(reply)
                wrong.append(f"the column {column} is {kind and f'{kind}, and '}no uuid")
            self.wrong_ids.add((table, column))
        if wrong:
            self.fail(
                step,
                "; ".join(wrong),
                "Rows, users and organisations have UUIDs as ids: alter the type to uuid.",
            )
        return not self.wrong_ids.intersection((table, column) for column in columns)

    def _embedding(self, project: Project) -> None:
        table = project.names.memberships
        query = {"select": "org_id,organizations(id)", "limit": "0"}
        reply = project.read(table, query)
        leads = {"PGRST200": "no foreign key leads", "PGRST201": "several foreign keys lead"}
        if lead := leads.get(reply.code):
            self.fail(
                f"table {table} (memberships)",
                f"{lead} to organizations",
                f"{table}.org_id must be the one foreign key to organizations.id.",
            )

    def _policies(self, project: Project, table: str, column: str) -> None:
        step = f"policies of {table}"
        reply = project.read(table, {"select": column, "limit": "1"})
        if reply.status in {200, 206} and reply.rows:
            self.fail(
                step,
                "OPEN TO THE WORLD: everybody who has the public key reads its rows",
                f"alter table public.{table} enable row level security; add policies for the role"
                " authenticated, and revoke the grants of anon.",
            )
        elif reply.code == "42501":
            self.ok(step, "nobody reads it without a user")
        elif reply.status == 200:
            self.ok(step, "no rows without a user (an empty table looks the same)")

    def _functions(self, project: Project) -> None:
        names = project.names
        for kind in names.kinds:
            if kind.function:
                self.function(project, f"queue.{kind.name}", kind.function, ITEMS)
            if kind.own and kind.own.function:
                self.function(project, f"queue.{kind.name}.change", kind.own.function, ITEMS)
        if names.summary:
            org = {"org": NIL} if names.memberships else {}
            self.function(project, "summary", names.summary, org)

    def function(self, project: Project, section: str, name: str, values: dict[str, str]) -> None:
        """A call by GET runs in a transaction that can write nothing."""
        whose = " for the user" if project.token else ""
        step = f"function {name} ({section}){whose}"
        query = urllib.parse.urlencode(values)
        reply = project.rest(f"rpc/{name}?{query}")
        takes = f"the argument {next(iter(values))}" if values else "no arguments"
        near = verdicts.suggested(reply)
        absent = (
            f"there is no such function with {takes}",
            f"Create it, or name the right one in /backend/{section.replace('.', '/')}/function"
            + (f": did you mean {near}?" if near else "."),
        )
        denied = (
            f"the user may not use it, or what it reads{verdicts.table_of(reply)}",
            f"grant execute on function public.{name} to authenticated, and the grants of the"
            " tables that it uses.",
        )
        several = f"several functions with {takes}", "Drop all but one of them."
        faults = {"PGRST202": absent, "42883": absent, "PGRST203": several, "42501": denied}
        if reply.code == "42501" and not project.token:
            self.ok(step, "it exists, and is not for callers without a user")
        elif reply.code == "25006":
            self.warn(
                step,
                "it writes even when there is nothing to store",
                "Let it return an empty list for an empty list.",
            )
        else:
            self.judge(step, reply, faults, f"it exists, with {takes}")
        is_list = isinstance(reply.value, list)
        if project.token and values is ITEMS and reply.status == 200 and not is_list:
            self.fail(
                f"function {name} ({section})",
                "it returns no list",
                "It must return one result for each item; docs/sync.md shows their form.",
            )

    # The machine ----------------------------------------------------------------------------------

    def _clock(self, project: Project) -> None:
        leads = [reply.ahead_s for reply in project.replies if reply.ahead_s is not None]
        if not leads:
            self.warn("clock", "the project sends no Date", "Allow the header Date on the way.")
            return
        ahead = statistics.median(leads)
        if abs(ahead) <= CLOCK_S:
            self.ok("clock", f"{abs(ahead):.0f} s from the project's")
            return
        where = f"{abs(ahead) / 60:.0f} minutes {'behind' if ahead > 0 else 'ahead of'}"
        self.warn(
            "clock",
            f"this machine's clock is {where} the project's",
            "Set it. The library counts tokens in the project's time, but certificates, and times"
            " that the app registers, follow the device's clock.",
        )

    def _latency(self, project: Project) -> None:
        middle = statistics.median(reply.seconds for reply in project.replies)
        found = f"{middle * 1000:.0f} ms in the middle of {len(project.replies)} requests"
        if middle <= SLOW_S:
            self.ok("latency", found)
        else:
            self.warn("latency", found, "Look at the network, and at the region of the project.")
