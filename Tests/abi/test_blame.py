"""Whom a refusal blames: an item at once for what its user gave, else only beside others."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from support.directory_fixtures import DirectoryFixtures, changed
from support.queue import (
    BAD_MINUTES,
    BOTH,
    EMPTY,
    UPLOADS,
    add,
    add_offline,
    code_of,
    item_of,
    stored,
)
from support.refusals import HOUR_S, WORDS, Firewall, has_words, live, patient
from support.sizes import crossed
from support.users import MakeUser, SignedIn

#: A policy for inserts, beside those that are there.
POLICY = "create policy refusing on activities as restrictive for insert to authenticated"
NO_POLICY = "drop policy refusing on activities"
#: The id of a contact that nobody has.
ABSENT = "01976b36-0000-7000-8000-00000000dead"


def raising(code: str, message: str = "'no'", when: str = "true") -> tuple[str, str]:
    """A trigger that raises this code for these rows, and its end."""
    return (
        "create function public.refusing() returns trigger language plpgsql as $$ begin"
        f" if {when} then raise exception using errcode = '{code}', message = {message}; end if;"
        " return new; end $$;"
        " create trigger refusing before insert on activities for each row"
        " execute function public.refusing()",
        "drop trigger refusing on activities; drop function public.refusing()",
    )


#: What no user can mend, how it is mended, the server's code, and the column that it names.
SCHEMA: dict[str, tuple[tuple[str, str], str, str | None]] = {
    "a subquery of two rows": (
        (f"{POLICY} with check ((select generate_series(1, 2)) = 1)", NO_POLICY),
        "21000",
        None,
    ),
    "an update without a condition": (
        raising("21000", "'UPDATE requires a WHERE clause'"),
        "21000",
        None,
    ),
    "a policy": ((f"{POLICY} with check (false)", NO_POLICY), "42501", None),
    "a column that the kind does not have": (
        (
            "alter table activities add region text not null default 'x';"
            " alter table activities alter region drop default",
            "alter table activities drop region",
        ),
        "23502",
        "region",
    ),
    "a reference of the user": (
        (
            "create table public.absent (id uuid primary key);"
            " alter table activities add foreign key (user_id) references public.absent not valid",
            "drop table public.absent cascade",
        ),
        "23503",
        "user_id",
    ),
    "a reference that nothing names": (
        (
            "create table public.absent (id uuid primary key);"
            " alter table activities add constraint known foreign key (user_id)"
            " references public.absent not valid",
            "drop table public.absent cascade",
        ),
        "23503",
        None,
    ),
    "a missing partition": (
        raising("23514", "'no partition of relation \"activities\" found for row'"),
        "23514",
        None,
    ),
    "an id of another type": (
        raising("22P02", "format('invalid input syntax for type bigint: \"%s\"', new.id)"),
        "22P02",
        None,
    ),
    "a user of another type": (
        raising("22P02", "format('invalid input syntax for type bigint: \"%s\"', new.user_id)"),
        "22P02",
        None,
    ),
    "a unique user": (
        raising(
            "23505", "'duplicate key value violates unique constraint \"activities_user_id_key\"'"
        ),
        "23505",
        None,
    ),
    "a view's check option": (raising("44000"), "44000", None),
    "a constraint without a name": (raising("23000"), "23000", None),
    "a read-only server": (raising("25006"), "25006", None),
    "a defect": (raising("XX000"), "XX000", None),
    "a function that finds nothing": (raising("P0002"), "P0002", None),
}
#: Of a function these name no column.
NAMED_BY_FUNCTION = ("a column that the kind does not have",)
FEW = ("a subquery of two rows", "a column that the kind does not have", "a reference of the user")


def problems_of(user: SignedIn) -> list[dict[str, Any]]:
    """What the server's schema refuses of the queue."""
    return [dict(p) for p in user.app.sync_status()["problems"] if p["what"] == "queue"]


def queue(user: SignedIn, count: int) -> list[str]:
    """Queue so many items while offline, and go online."""
    items = add_offline(user, count)
    user.app.go_online()
    return items


def waits(user: SignedIn, items: list[str]) -> None:
    """Nothing is blamed on these items: all wait, and say for what."""
    assert user.app.of_type("item_parked") == []
    assert user.app.queue_list()["counts"] == {**EMPTY, "waiting": len(items)}
    assert {code_of(user.app, item) for item in items} == {"schema_not_ready"}


@pytest.mark.parametrize(
    ("case", "count", "upload"),
    crossed(
        SCHEMA,
        [1, 12],
        UPLOADS,
        fast=lambda case, count, upload: (
            (count, upload) == (12, "table") or (case in FEW and (count, upload) == (1, "rpc"))
        ),
    ),
)
def test_FIX_4_FIX_5_what_no_user_can_mend_parks_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, case: str, count: int, upload: str
) -> None:
    statements, code, column = SCHEMA[case]
    user = patient(sign_in, upload)
    with changed(directory, *statements):
        items = queue(user, count)
        live(user, HOUR_S // 2)
        waits(user, items)
        [problem] = problems_of(user)
        assert (problem["kind"], problem["code"]) == ("activity", code)
        if upload == "table" or case in NAMED_BY_FUNCTION:
            assert problem["column"] == column
        assert problem["text"].endswith(".")
    live(user, HOUR_S, lambda: stored(directory, user.person) == sorted(items))
    assert stored(directory, user.person) == sorted(items)
    assert user.app.of_type("item_parked") == []
    assert problems_of(user) == []


@pytest.mark.parametrize("case", crossed(SCHEMA, fast=lambda case: case in FEW))
@pytest.mark.parametrize("restarted", [False, True])
def test_FIX_5_a_schema_that_breaks_while_items_are_sent_parks_nothing(
    sign_in: MakeUser, directory: DirectoryFixtures, case: str, restarted: bool
) -> None:
    """What got through before says nothing about now."""
    user = patient(sign_in)
    before = [add(user.app), add(user.app)]
    user.app.settle()
    assert stored(directory, user.person) == sorted(before)
    with changed(directory, *SCHEMA[case][0]):
        items = queue(user, 1)
        live(user, 60)
        items += queue(user, 7)
        live(user, 60)
        if restarted:
            user.restart()
            user.app.touch()
        live(user, HOUR_S // 2)
        assert user.app.of_type("item_parked") == []
        assert user.app.queue_list()["counts"] == {**EMPTY, "waiting": 8}
    live(user, HOUR_S, lambda: len(stored(directory, user.person)) == 10)
    assert stored(directory, user.person) == sorted(before + items)
    assert user.app.of_type("item_parked") == []


#: What only its user can mend: what the item has, the reason, and the field that the server names.
GIVEN: dict[str, tuple[dict[str, Any], str, str, str | None]] = {
    "a value": ({"minutes": "many"}, "invalid_value", "22P02", None),
    "a long value": ({"type": "x" * 90}, "server_rule", "23514", "type"),
    "a check": ({"minutes": BAD_MINUTES}, "server_rule", "23514", "minutes"),
    "a missing value": ({"minutes": None}, "missing_value", "23502", "minutes"),
    "an unknown value": ({"contact_id": ABSENT}, "missing_parent", "23503", "contact_id"),
    "a rule": ({"note": "secret"}, "server_rule", "P0001", None),
    "a taken value": ({"note": "secret"}, "duplicate", "23505", None),
    "a taken time": ({"note": "secret"}, "server_rule", "23P01", None),
}
#: The rules of the server for these.
RULES: dict[str, tuple[str, str]] = {
    "a rule": raising("P0001", when="new.note = 'secret'"),
    "a taken value": raising(
        "23505",
        "'duplicate key value violates unique constraint \"activities_org_id_note_key\"'",
        "new.note = 'secret'",
    ),
    "a taken time": raising(
        "23P01",
        "'conflicting key value violates exclusion constraint \"activities_note_excl\"'",
        "new.note = 'secret'",
    ),
}


@pytest.mark.parametrize(
    ("case", "upload"),
    crossed(GIVEN, UPLOADS, fast=lambda case, upload: upload == "table" or case == "a value"),
)
def test_FIX_5_a_single_item_is_blamed_at_once_for_what_its_user_gave(
    sign_in: MakeUser, directory: DirectoryFixtures, case: str, upload: str
) -> None:
    change, code, sqlstate, field = GIVEN[case]
    user = patient(sign_in, upload)
    rule = RULES.get(case)
    with changed(directory, *rule) if rule else contextlib.nullcontext():
        bad = add(user.app, **{"minutes": 5, **change})
        user.app.settle()
        shown = item_of(user.app, bad)
        assert (shown["state"], shown["reason"]["code"]) == ("parked", code)
        assert shown["reason"]["sqlstate"] == sqlstate
        assert shown["reason"]["text"]
        assert shown["reason"]["message"]
        if upload == "table" and rule is None:
            assert shown["field"] == field
        assert problems_of(user) == []


#: What the server refuses of the rows whose note is "secret": nothing says that a user gave it.
SUSPECT: dict[str, tuple[tuple[str, str], str]] = {
    "a policy": ((f"{POLICY} with check (note is distinct from 'secret')", NO_POLICY), "42501"),
    "another column": (
        raising(
            "23502", '\'null value in column "region" of relation "x"\'', "new.note = 'secret'"
        ),
        "23502",
    ),
    "the user": (
        raising(
            "23503",
            '\'insert or update on table "activities" violates foreign key constraint'
            ' "activities_user_id_fkey"\'',
            "new.note = 'secret'",
        ),
        "23503",
    ),
    "a key without a name": (raising("23505", when="new.note = 'secret'"), "23505"),
    "a view": (raising("44000", when="new.note = 'secret'"), "44000"),
}


@contextlib.contextmanager
def refusing(directory: DirectoryFixtures, case: str) -> Iterator[str]:
    """The server refuses the secret rows; its code."""
    statements, code = SUSPECT[case]
    with changed(directory, *statements):
        yield code


@pytest.mark.parametrize(
    ("case", "upload"),
    crossed(
        SUSPECT,
        UPLOADS,
        fast=lambda case, upload: upload == "table" or case in {"a policy", "a key without a name"},
    ),
)
@pytest.mark.parametrize("bad", [[7], [0, 1, 19]])
def test_FIX_5_an_item_is_blamed_for_anything_else_when_others_got_through(
    sign_in: MakeUser, directory: DirectoryFixtures, case: str, upload: str, bad: list[int]
) -> None:
    user = patient(sign_in, upload)
    app = user.app
    with refusing(directory, case) as code:
        app.go_offline()
        items = [add(app, note="secret" if n in bad else "open") for n in range(20)]
        app.go_online()
        live(user, 600, lambda: app.queue_list()["counts"] == {**EMPTY, "parked": len(bad)})
        refused = [items[n] for n in bad]
        assert stored(directory, user.person) == sorted(set(items) - set(refused))
        for item in refused:
            shown = item_of(app, item)
            assert (shown["state"], shown["reason"]["sqlstate"]) == ("parked", code)
        assert problems_of(user) == []


@BOTH
def test_FIX_5_a_lone_item_is_blamed_when_another_one_got_through_later(
    sign_in: MakeUser, directory: DirectoryFixtures, upload: str
) -> None:
    user = patient(sign_in, upload)
    with refusing(directory, "a policy") as code:
        bad = add(user.app, note="secret")
        live(user, HOUR_S)
        waits(user, [bad])
        for _ in range(2):
            good = add(user.app, note="open")
            live(user, 600, lambda good=good: good in stored(directory, user.person))
        live(user, HOUR_S, lambda: item_of(user.app, bad)["state"] == "parked")
        assert item_of(user.app, bad)["reason"]["sqlstate"] == code
        assert problems_of(user) == []


def test_FIX_5_an_item_that_failed_alone_on_the_way_is_not_blamed_for_the_schema(
    sign_in: MakeUser, directory: DirectoryFixtures
) -> None:
    """Others that were stored since it failed were so before the server refused anything."""
    user = patient(sign_in)
    firewall = Firewall(user, "html", has_words)
    item = add(user.app, note=WORDS)
    user.app.settle()
    assert code_of(user.app, item) == "waiting_blocked"
    other = add(user.app)
    user.app.settle()
    assert stored(directory, user.person) == [other]
    firewall.end()
    (break_it, mend_it), *_ = SCHEMA["a column that the kind does not have"]
    with changed(directory, break_it, mend_it):
        user.app.queue_retry({"id": item})
        user.app.settle()
        assert user.app.of_type("item_parked") == []
    live(user, 3 * HOUR_S, lambda: user.app.queue_list()["counts"] == EMPTY)
    assert stored(directory, user.person) == sorted([item, other])
