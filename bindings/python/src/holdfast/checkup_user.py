"""What `holdfast.doctor` checks with a user who is signed in."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .checkup_corrections import Corrections
from .project import ITEMS, NIL, NO_UUID, claims
from .verdicts import empty_column, no_grant, table_of

if TYPE_CHECKING:
    from .checkup import Checkup
    from .project import Kind, Project

#: Values for columns that must have one: some type takes each.
VALUES = ["x", 1, "2000-01-01T00:00:00Z", NIL, True, {}]


@dataclass
class UserCheckup:
    """What a signed-in user may do."""

    checkup: Checkup
    project: Project
    user: str = ""

    def run(self, email: str | None, password: str | None, access_token: str | None) -> None:
        """Check it, if somebody signs in."""
        if access_token and claims(access_token).get("role") == "service_role":
            self.checkup.fail(
                "user",
                "THIS IS A SECRET KEY, and no user's token. It was not sent.",
                "Pass the access token of a user who is signed in.",
            )
        elif access_token:
            self.project = self.project.seen_by(access_token)
        elif email:
            self._sign_in(email, password or "")
        if not self.project.token:
            return
        try:
            if self._known():
                org = self._memberships()
                if org is not None:
                    self._contacts(org)
                    self._summary(org)
                for kind in self.project.names.kinds:
                    self._upload(kind, org)
                    if kind.own:
                        Corrections(self.checkup, self.project, self.user, kind, kind.own).run()
        finally:
            if not access_token:
                self.project.auth("logout?scope=local", body={})

    def _sign_in(self, email: str, password: str) -> None:
        body = {"email": email, "password": password}
        reply = self.project.auth("token?grant_type=password", body=body)
        value = reply.value if isinstance(reply.value, dict) else {}
        token = value.get("access_token")
        if reply.status == 200 and isinstance(token, str):
            self.project = self.project.seen_by(token)
            return
        causes = {
            "invalid_credentials": "The address or the password is wrong, or no such user exists.",
            "email_not_confirmed": "Confirm the address, in the mail or in the dashboard.",
            "email_provider_disabled": "Switch on the provider Email.",
            "captcha_failed": "The project asks for a captcha: pass an access token instead.",
        }
        advice = causes.get(reply.code, "Try it in the app, or pass an access token.")
        self.checkup.fail("user", f"the sign-in failed: {reply.code or reply.status}", advice)

    def _known(self) -> bool:
        reply = self.project.auth("user")
        value = reply.value if isinstance(reply.value, dict) else {}
        if reply.status == 200 and isinstance(value.get("id"), str):
            self.user = value["id"]
            self.checkup.ok("user", "the auth service knows the session")
            return True
        self.checkup.fail(
            "user",
            f"the auth service refuses the access token: {reply.code or reply.status}",
            "Take one that has not expired, of this project.",
        )
        return False

    def _memberships(self) -> str | None:
        """The organisation to look at; empty in an app without, None if there is none."""
        table = self.project.names.memberships
        if not table:
            return ""
        query = {
            "select": "org_id,role,status,organizations(id,name,status)",
            "user_id": f"eq.{self.user}",
        }
        step = f"memberships ({table})"
        reply = self.project.read(table, query)
        if not self.checkup.judge(step, reply, {"42501": no_grant("select", reply, table)}):
            return None
        rows = [row for row in reply.rows if isinstance(row, dict)]
        if not rows:
            self.checkup.fail(
                step,
                "the user sees none",
                f"Add a row for the user, or a policy: create policy … on public.{table} for select"
                " to authenticated using (user_id = auth.uid()).",
            )
            return None
        seen = [row for row in rows if isinstance(row.get("organizations"), dict)]
        if not seen:
            self.checkup.fail(
                step,
                "the user sees the membership and not its organisation",
                "Add a policy for select on public.organizations for its members.",
            )
            return None
        usable = [
            row
            for row in seen
            if (row.get("status"), row["organizations"].get("status")) == ("active", "active")
        ]
        listed = set(self.project.names.roles)
        roles = sorted({str(row.get("role")) for row in usable} - listed) if listed else []
        if not usable:
            self.checkup.warn(
                step,
                f"{len(seen)}, and none is usable",
                "The status of the membership and of the organisation must be active.",
            )
        elif roles:
            self.checkup.warn(
                step,
                "there are roles without an entry in /routes",
                f"Add to /routes: {', '.join(role for role in roles if role.isidentifier())}.",
            )
        else:
            self.checkup.ok(step, f"{len(usable)} usable")
        return str((usable or seen)[0].get("org_id"))

    def _contacts(self, org: str) -> None:
        names = self.project.names
        if not names.contacts:
            return
        mine = {"org_id": f"eq.{org}"} if org else {}
        columns = [*names.cached, "updated_at", "deleted_at"]
        for step, chosen in (
            ("contacts", columns),
            ("contacts, live", ["id", *names.needs_network]),
        ):
            query = {"select": ",".join(dict.fromkeys(chosen)), **mine, "limit": "1"}
            reply = self.project.read(names.contacts, query)
            denied = {"42501": no_grant("select", reply, names.contacts)}
            if not self.checkup.judge(step, reply, denied):
                continue
            if reply.rows:
                self.checkup.ok(step, "the user reads them")
            else:
                self.checkup.warn(
                    step,
                    "the user sees none",
                    f"If there are any, add a policy for select on public.{names.contacts}.",
                )
        reply = self.project.read(names.contacts, {"select": "id", **mine}, prefer="count=exact")
        total = reply.headers.get("content-range", "").rpartition("/")[2]
        if total.isdigit() and int(total) > len(reply.rows) > 0:
            self.checkup.ok("max_rows", f"{len(reply.rows)}: the library reads in pages")

    def _summary(self, org: str) -> None:
        if self.project.names.summary:
            arguments = {"org": org} if org else {}
            self.checkup.function(self.project, "summary", self.project.names.summary, arguments)

    def _upload(self, kind: Kind, org: str | None) -> None:
        step = f"upload of {kind.name}"
        reply = self.project.read(kind.table, {"select": "id", "limit": "0"})
        if reply.code == "42501":
            self.checkup.fail(
                step,
                f"the user has no right to select{table_of(reply)}",
                f"grant select (id) on public.{kind.table} to authenticated: the library asks which"
                " of its items are stored, and repeats nothing.",
            )
        elif kind.function:
            self.checkup.function(self.project, f"queue.{kind.name}", kind.function, ITEMS)
        elif self.checkup.has_uuids(self.project, step, kind.table, kind.columns):
            self._insert(step, kind, org)

    def _insert(self, step: str, kind: Kind, org: str | None) -> None:
        """An upload that cannot be stored: a value that is no uuid, for a column that is one."""
        query = {
            "columns": ",".join(kind.columns),
            "on_conflict": ",".join(kind.key),
            "select": "id",
        }
        reply = self.project.read(
            kind.table,
            query,
            body=[{"id": NO_UUID}],
            prefer="resolution=ignore-duplicates,return=representation,missing=default",
        )
        faults = {"42501": no_grant("insert", reply, kind.table), "42P10": not_unique(kind)}
        table = {"PGRST204", "PGRST205", "42703"}
        may = self.checkup.judge(step, reply, faults, success="22P02", elsewhere=table)
        if may and (org is None or self._has_no_more_columns(step, kind, org)):
            self.checkup.ok(
                step, "the user may insert (which rows a policy takes shows only with a row)"
            )

    def _has_no_more_columns(self, step: str, kind: Kind, org: str) -> bool:
        """Whether no column must have a value that the library never sends, as far as this shows.

        Two rows with the same id: the server looks for missing values first, and then refuses both
        for their id, which is unique, as was shown.
        """
        keys = {"id": str(uuid.uuid4()), "org_id": org, "user_id": self.user}
        row: dict[str, Any] = {name: keys[name] for name in kind.columns if name in keys}
        column, left = "", iter(VALUES)
        for _ in range(len(VALUES) * len(kind.columns)):
            reply = self.project.read(
                kind.table,
                {"columns": ",".join(row)},
                body=[row, row],
                prefer="return=minimal,missing=default",
            )
            empty = empty_column(reply)
            if reply.status in {200, 201}:
                self.checkup.fail(step, *not_unique(kind))
                return False
            if empty and empty not in kind.columns:
                self.checkup.fail(
                    step,
                    f"the column {empty} must have a value, and is never sent",
                    f"alter table public.{kind.table} alter column {empty} drop not null, or set a"
                    " default; or add it to the columns of this kind, if the app gives a value.",
                )
                return False
            if empty:
                column, left = empty, iter(VALUES)
            elif not column or not reply.code.startswith(("22", "42804")):
                break  # all values are there: the rows were refused for their id, or by a rule
            value = next(left, None)
            if value is None:
                break
            row[column] = value
        return True


def not_unique(kind: Kind) -> tuple[str, str]:
    """Nothing keeps the server from storing an item twice."""
    names, partitioned = f"the columns {', '.join(kind.key)} have", ""
    if kind.key == ("id",):
        names = "the column id has"
        partitioned = (
            ' If it is partitioned by org_id, set "primary_key": "id_and_org_id" for this kind.'
        )
    return (
        f"{names} no unique constraint",
        f"alter table public.{kind.table} add primary key ({', '.join(kind.key)}): without it an"
        f" item could be stored twice.{partitioned}",
    )
