"""R5, R6, R7: somebody else writes into the file; no value of it stops the library or an item."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from support import children
from support.planted import DATABASE

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast import Library

Cases = list[tuple[str, list[str]]]

#: The ends of 64 bits with their neighbours, numbers that JSON cannot hold, and what is no integer.
VALUES = [
    "-9223372036854775808",
    "-9223372036854775807",
    "-1",
    "9007199254740992",
    "4611686018427387904",
    "9223372036854775806",
    "9223372036854775807",
    "1.5",
    "'x'",
    "x'00'",
]

#: With the app closed, and with the app open.
BOTH = pytest.mark.parametrize("running", [False, True], ids=["closed", "open"])


class Trial:
    """Runs cases in a child, and goes on in a new one where a child crashes."""

    def __init__(self, tmp_path: Path, library: Library) -> None:
        self.folder = tmp_path / "stock"
        self.scratch = tmp_path / "copy"
        self.cases = tmp_path / "cases.json"
        self.library = library
        self._run("0", -1).check()

    def _run(self, running: str, first: int, end: str = "drain") -> children.Ended:
        return children.run(
            "planted.py",
            str(self.library.path),
            str(self.folder),
            str(self.scratch),
            str(self.cases),
            running,
            str(first),
            end,
            timeout_s=600,
        )

    def judge(self, cases: Cases, *, running: bool, end: str = "drain") -> None:
        """Fail with what is wrong in any case."""
        self.cases.write_text(json.dumps(cases))
        bad: list[str] = []
        tried = first = 0
        while first < len(cases):
            ended = self._run(str(int(running)), first, end)
            lines = [json.loads(line) for line in ended.output.splitlines()]
            for _, name, faults, errors in (line for line in lines if len(line) > 2):
                tried += faults is not None
                if faults:
                    bad.append(f"{name}: {faults} {errors[-3:]}")
            if ended.status == 0:
                break
            number, name = lines[-1][:2]
            assert len(lines[-1]) == 2, ended.errors
            bad.append(f"{name}: ended with {ended.status} {ended.errors[-300:]}")
            first = number + 1
        print(f"{tried} of {len(cases)} were tried")
        assert not bad, "\n".join([f"{len(bad)} of {len(cases)}", *bad])
        # Some changes SQLite refuses, for example of a table's only id
        assert tried > len(cases) / 2, tried


@pytest.fixture
def trial(tmp_path: Path, library: Library) -> Trial:
    """A folder with rows in every table."""
    return Trial(tmp_path, library)


def integer_columns(folder: Path) -> list[tuple[str, str, str]]:
    """The columns of integers, each with its table and a condition that names some of the rows."""
    found = []
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            # Only a long queue has sums
            has_rows = database.execute(f"SELECT * FROM {table}").fetchone()
            assert table in ("dependency", "queue_block") or has_rows
            for _, column, kind, *_, key in database.execute(f"PRAGMA table_info({table})"):
                if kind == "INTEGER":
                    one = f"{column} = (SELECT max({column}) FROM {table})" if key else "1"
                    found.append((table, column, one))
        for (name,) in database.execute("SELECT name FROM meta WHERE typeof(value) = 'integer'"):
            found.append(("meta", "value", f"name = '{name}'"))
    return [*found, ("sqlite_sequence", "seq", "1")]


@BOTH
def test_R5_no_number_of_the_file_stops_the_process_or_an_item(trial: Trial, running: bool) -> None:
    """Finding R5: numbers at the end of 64 bits ended the process."""
    # Given a folder with rows in every table, and a value that is none of the library's in a column
    columns = integer_columns(trial.folder)
    assert len(columns) > 40
    cases = [
        (
            f"{table}.{column} {rows} {value}",
            [f"UPDATE {table} SET {column} = {value} WHERE {rows}"],
        )
        for table, column, rows in columns
        for value in VALUES
    ]
    # When the app makes its calls, and the network comes
    # Then no call crashes or fails twice, nothing is busy, and every item is sent
    trial.judge(cases, running=running)


#: Columns that make SQLite refuse a change, or ignore it, and statements that must come before.
CONSTRAINTS = [
    ("queue", "x CHECK (seq <= 9)", ""),
    ("queue", "x CHECK (attempts < 2)", ""),
    ("queue", "x CHECK (state <> 1)", "UPDATE queue SET state = 0 WHERE state = 1"),
    ("queue", "x CHECK (length(item) < 17)", ""),
    ("queue", "x CHECK (state = 0)", "UPDATE queue SET state = 0"),
    ("session", "x CHECK (wrap_session IS NOT NULL)", ""),
    ("session", "x CHECK (owner IS NOT NULL)", ""),
    ("session", "x CHECK (locked = 0)", ""),
    ("session", "x CHECK (json_valid(owner) + json(ended) IS NULL)", ""),
    ("meta", "x CHECK (name <> 'uploads' OR value < 4)", ""),
    ("meta", "x CHECK (name <> 'event_seq' OR value < 20)", ""),
    ("meta", "x CHECK (name <> 'needs_erase')", "DELETE FROM meta WHERE name = 'needs_erase'"),
    (
        "dependency",
        "x CHECK (0)",
        "UPDATE queue SET state = 0 WHERE wait_reason = 1; DELETE FROM dependency",
    ),
    *(
        (table, "x CHECK (0)", f"DELETE FROM {table}")
        for table in (
            "backoff",
            "durable_event",
            "lease",
            "queue_count",
            "revocation",
            "sign_in",
            "stored_item",
            "sync_run",
        )
    ),
    *(
        (
            "queue",
            "x INTEGER NOT NULL ON CONFLICT IGNORE GENERATED ALWAYS AS"
            f" (CASE WHEN {condition} THEN NULL ELSE 1 END) VIRTUAL",
            "UPDATE queue SET state = 0",
        )
        for condition in ("seq > 9", "state = 1", "state > 1", "attempts > 1")
    ),
]


@BOTH
@pytest.mark.parametrize("end", ["drain", "logout", "lock", "restart"])
def test_R6_no_constraint_that_somebody_adds_stops_a_call_or_an_item(
    trial: Trial, running: bool, end: str
) -> None:
    """Finding R6: a logout answered `storage.failed`, or nothing was sent."""
    # Given a folder, and a table with a constraint that is none of the library's
    cases = [
        (
            f"{table} {column}",
            [*filter(None, before.split(";")), f"ALTER TABLE {table} ADD COLUMN {column}"],
        )
        for table, column, before in CONSTRAINTS
    ]
    # When the user logs out, locks or starts the app anew, signs in, and the network comes
    # Then no call fails twice, nothing is busy, and every item is sent
    trial.judge(cases, running=running, end=end)
