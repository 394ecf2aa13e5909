"""What `holdfast.doctor` checks of changes and deletions, with a user who is signed in.

It changes an own row to the values that it has, and lets the server undo that: with the preference
`max-affected=0` a statement that changes a row ends with an error. The first request is for a row
that does not exist, and its answer shows whether the server knows the preference; if it does not,
no row is touched.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .project import ITEMS
from .verdicts import no_grant, table_of

if TYPE_CHECKING:
    from .checkup import Checkup
    from .project import Kind, Own, Project, Reply

#: A statement that changes a row ends with an error, and is undone.
UNDONE = "return=representation,handling=strict,max-affected=0"
#: The code of that error.
CHANGED = "PGRST124"
#: The answer has no row, where one is asked for.
NO_ROW = "PGRST116"
ONE_ROW = {"Accept": "application/vnd.pgrst.object+json"}


@dataclass
class Corrections:
    """What a signed-in user may do with the own stored rows of a kind."""

    checkup: Checkup
    project: Project
    user: str
    kind: Kind
    own: Own

    def run(self) -> None:
        """Check it."""
        if not self._reads():
            return
        deletion = f"deletions of {self.kind.name}"
        if self.own.changed:
            self._changes()
        if self.own.deletion == "row":
            self._deletes(deletion)
        elif self.own.deletion:
            self._marks(deletion)

    def _reads(self) -> bool:
        step = f"own rows of {self.kind.name}"
        reply = self.project.read(self.kind.table, {**self._query(), "limit": "1"})
        denied = {"42501": no_grant("select", reply, self.kind.table)}
        # An unknown column is in the step of the table.
        return self.checkup.judge(step, reply, denied, "the user reads them", elsewhere={"42703"})

    def _query(self) -> dict[str, str]:
        columns = self.own.columns
        query = {"select": ",".join(columns), "user_id": f"eq.{self.user}"}
        return query | ({"deleted_at": "is.null"} if "deleted_at" in columns else {})

    def _row(self) -> dict[str, Any] | None:
        """An own row that is not deleted."""
        query = {**self._query(), "order": "updated_at.desc", "limit": "1"}
        reply = self.project.read(self.kind.table, query)
        return reply.rows[0] if reply.rows and isinstance(reply.rows[0], dict) else None

    # Changes --------------------------------------------------------------------------------------

    def _changes(self) -> None:
        step, columns = f"changes of {self.kind.name}", list(self.own.changed)
        if self.own.function:
            section = f"queue.{self.kind.name}.change"
            self.checkup.function(self.project, section, self.own.function, ITEMS)
        columns += filter(None, [self.own.change_id])
        row = self._may_change(step, columns)
        if row and self._moves_the_time(step, row, columns):
            self.checkup.ok(step, "the user may change own rows, and that moves updated_at")

    def _may_change(self, step: str, columns: list[str]) -> dict[str, Any] | None:
        """An own row, if privileges and policies let the user change these columns of it."""
        nobody = {"id": str(uuid.uuid4()), "updated_at": "2000-01-01T00:00:00+00:00"}
        reply = self._patch(nobody, dict.fromkeys(columns))
        if reply.code == "42501":
            # The server names no column, so each one is asked for.
            denied = [name for name in columns if self._patch(nobody, {name: None}).code == "42501"]
            names = ", ".join(denied or columns)
            self.checkup.fail(
                step,
                f"the user has no right to update {names}{table_of(reply)}",
                f"grant update ({names}) on public.{self.kind.table} to authenticated.",
            )
            return None
        if reply.code == "PGRST122" or (
            reply.status == 200
            and "max-affected=0" not in reply.headers.get("preference-applied", "")
        ):
            self.checkup.warn(
                step,
                "this data service cannot undo a change, so that nothing was tried",
                "Change a row in the app.",
            )
            return None
        if not self.checkup.judge(step, reply, {}, elsewhere={"PGRST204", "42703"}):
            return None
        row = self._row()
        if row is None:
            self.checkup.warn(
                step,
                "the privileges are there; which rows the policies take shows only with an own row",
                "Register one in the app, and run the doctor again.",
            )
            return None
        reply = self._patch(row, {name: row.get(name) for name in columns})
        faults = {
            "200": (
                "no policy lets the user change an own row",
                f"create policy … on public.{self.kind.table} for update to authenticated using"
                " (user_id = auth.uid()) with check (user_id = auth.uid()), with the rule for"
                " organisations that the other policies have.",
            ),
            "42501": (
                "a policy refuses an own row after a change",
                f"Look at the policies of public.{self.kind.table} for UPDATE (with check) and for"
                " SELECT: the changed row must satisfy both.",
            ),
        }
        return row if self.checkup.judge(step, reply, faults, success=CHANGED) else None

    def _moves_the_time(self, step: str, row: dict[str, Any], columns: list[str]) -> bool:
        """Whether a change moves updated_at.

        The server applies `and=` to the changed row once more. Without a row in the answer, which
        must have one, it undoes the change as well.
        """
        still = {"and": f"(updated_at.eq.{row['updated_at']})"}
        values = {name: row.get(name) for name in columns}
        reply = self._patch(row, values, still, headers=ONE_ROW)
        stays = (
            "a change does not move updated_at, so that it could overwrite somebody else's",
            f"create trigger … before insert or update on public.{self.kind.table} for each row …,"
            " which sets new.updated_at := clock_timestamp(): docs/own-table.md has it.",
        )
        return self.checkup.judge(step, reply, {CHANGED: stays}, success=NO_ROW)

    def _patch(
        self,
        row: dict[str, Any],
        values: dict[str, Any],
        more: dict[str, str] | None = None,
        **options: Any,  # noqa: ANN401
    ) -> Reply:
        query = {"id": f"eq.{row['id']}", "updated_at": f"eq.{row['updated_at']}", **(more or {})}
        return self.project.read(
            self.kind.table,
            {**query, "select": "id,updated_at"},
            body=values,
            prefer=UNDONE,
            method="PATCH",
            **options,
        )

    # Deletions ------------------------------------------------------------------------------------

    def _marks(self, step: str) -> None:
        """A row that is not deleted keeps its mark first, and then gets one."""
        row = self._may_change(step, ["deleted_at"])
        if row is None or not (self.own.changed or self._moves_the_time(step, row, ["deleted_at"])):
            return
        reply = self._patch(row, {"deleted_at": "now"})
        hidden = (
            "a policy hides a deleted row, and so refuses every deletion",
            f'Take "deleted_at is null" out of the policies of public.{self.kind.table} for'
            " SELECT, and for UPDATE into its using alone: the library leaves such rows out.",
        )
        found = "the user may delete own rows, and still sees them"
        self.checkup.judge(step, reply, {"42501": hidden}, found, success=CHANGED)

    def _deletes(self, step: str) -> None:
        """Only the privilege: a row that exists is never deleted, not even for a moment."""
        reply = self.project.read(
            self.kind.table,
            {"id": f"eq.{uuid.uuid4()}", "select": "id"},
            prefer=UNDONE,
            method="DELETE",
        )
        denied = {"42501": no_grant("delete", reply, self.kind.table)}
        found = "the user may delete (which rows a policy takes shows only with a deletion)"
        self.checkup.judge(step, reply, denied, found)
