"""A4: every number of a payload reaches the server as the host wrote it, or is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.directory_fixtures import DirectoryFixtures, changed
from support.errors import error_of
from support.queue import drain, new_ids
from support.users import MakeUser, SignedIn

pytestmark = pytest.mark.both_flavours

TABLES = {
    "queue": {
        "measurement": {
            "table": "measurements",
            "columns": ["exact", "whole", "document", "user_id"],
        }
    }
}

#: What the host writes -> what PostgreSQL stores in a numeric column.
NUMBERS = {
    "3.3": "3.3",
    "9.99": "9.99",
    "0.1": "0.1",
    "-0.7": "-0.7",
    "0.30000000000000004": "0.30000000000000004",
    "2.5e-7": "0.00000025",
    "123456789.12345679": "123456789.12345679",
    "0.1000000000000000055511151231257827": None,
    "1e3": "1000",
    "1E+3": "1000",
    "1.5e3": "1500",
    "1500.0": "1500.0",
    "1e22": "10000000000000000000000",
    "9007199254740992": "9007199254740992",
    "9007199254740992.0": "9007199254740992.0",
    "9007199254740993": None,
    "9007199254740993.0": None,
    "9007199254740993e0": None,
    "90071992547409930e-1": None,
    "0.1234567890123456789": None,
    "1e-400": None,
    "5e-324": "0." + "0" * 323 + "5",
    "1.7976931348623157e308": "17976931348623157" + "0" * 292,
    "100000000000000000000000000000.5": None,
    "0.0": "0.0",
    "0e5": "0",
    "123456789012345678e-17": None,
    "-1.10": "-1.1",
}
HELD = {text: stored for text, stored in NUMBERS.items() if stored is not None}
NOT_HELD = [text for text, stored in NUMBERS.items() if stored is None]


@pytest.fixture
def measurements(directory: DirectoryFixtures) -> Iterator[DirectoryFixtures]:
    """A table with a column for every way in which a number can be stored."""
    table = """
        create table public.measurements(id uuid primary key, org_id uuid, user_id uuid,
          exact numeric, whole bigint, document jsonb);
        grant select, insert on public.measurements to authenticated
        """
    with changed(directory, table, "drop table public.measurements"):
        yield directory


def call(user: SignedIn, operation: str, text: str) -> dict[str, Any]:
    """Call with exactly this text; the Python binding would write its own numbers."""
    status, reply = user.app.library.call(operation, user.app._handle, text.encode())
    user.app._decode(operation, status, reply)
    return dict(json.loads(reply or "{}"))


def add(user: SignedIn, item: str, payload: str) -> None:
    call(user, "queue_add", f'{{"kind":"measurement","id":"{item}","payload":{payload}}}')


def stored(directory: DirectoryFixtures, column: str) -> dict[str, str]:
    """The texts that PostgreSQL has for a column, by id."""
    rows = directory.control.sql(f"select id::text, {column}::text as value from measurements")
    return {row["id"]: row["value"] for row in rows}


def raw_numbers(text: str, name: str) -> list[str]:
    """The numbers under a name, as they are written in a text."""
    found: list[str] = []
    json.loads(
        text,
        parse_float=lambda number: number,
        parse_int=lambda number: number,
        object_hook=lambda value: found.append(value[name]) if name in value else value,
    )
    return found


def test_ATK_4_every_number_reaches_postgresql_as_it_was_written(
    sign_in: MakeUser, measurements: DirectoryFixtures
) -> None:
    user = sign_in(tables=TABLES)
    user.app.go_offline()
    ids = dict(zip(HELD, new_ids(len(HELD)), strict=True))
    for text, item in ids.items():
        add(user, item, f'{{"exact":{text},"document":{{"list":[{text},{{"n":{text}}}]}}}}')
    user.app.go_online()
    drain(user.app)
    exact = stored(measurements, "exact")
    assert {text: exact.get(item) for text, item in ids.items()} == HELD
    documents = stored(measurements, "(document->'list'->1->'n')")
    assert {text: documents.get(item) for text, item in ids.items()} == HELD


def test_ATK_4_numbers_beside_each_other_in_one_item_stay_as_they_were_written(
    sign_in: MakeUser, measurements: DirectoryFixtures
) -> None:
    user = sign_in(tables=TABLES)
    [item] = new_ids(1)
    numbers = ["3.3", "0.30000000000000004", "9.99", "0.1", "-0.25", "1.1"]
    user.app.go_offline()
    add(user, item, f'{{"exact":0.1,"document":[{",".join(numbers)}]}}')
    user.restart(online=False)
    user.phone.network.up = True
    user.restart()
    drain(user.app)
    assert stored(measurements, "exact") == {item: "0.1"}
    places = range(len(numbers))
    assert [stored(measurements, f"(document->{place})")[item] for place in places] == numbers


def test_ATK_4_whole_numbers_with_an_exponent_fit_an_integer_column(
    sign_in: MakeUser, measurements: DirectoryFixtures
) -> None:
    user = sign_in(tables=TABLES)
    numbers = {"1e3": "1000", "1E+3": "1000", "1.5e3": "1500", "-2e0": "-2", "9e15": "9" + "0" * 15}
    ids = dict(zip(numbers, new_ids(len(numbers)), strict=True))
    for text, item in ids.items():
        add(user, item, f'{{"whole":{text}}}')
    drain(user.app)
    assert user.app.of_type("item_parked") == []
    whole = stored(measurements, "whole")
    assert {text: whole.get(item) for text, item in ids.items()} == numbers


def test_ATK_4_what_a_double_cannot_hold_is_refused_with_its_field(sign_in: MakeUser) -> None:
    user = sign_in(tables=TABLES)
    user.app.go_offline()
    for text, item in zip(NOT_HELD, new_ids(len(NOT_HELD)), strict=True):
        for payload, field in {
            f'{{"exact":{text}}}': "/payload/exact",
            f'{{"exact":0.5,"document":{{"a/b":["0.1234567890123456789",{text}]}}}}': (
                "/payload/document/a~1b/1"
            ),
        }.items():
            assert refused(user, "queue_add", item, payload) == field, text
        add(user, item, '{"exact":0.5}')
        assert refused(user, "queue_edit", item, f'{{"exact":{text}}}') == "/payload/exact", text
    left = user.app.queue_list()["items"]
    assert [item["payload"] for item in left] == [{"exact": 0.5}] * len(NOT_HELD)


def refused(user: SignedIn, operation: str, item: str, payload: str) -> str | None:
    """The field for which a payload is refused."""
    kind = '"kind":"measurement",' if operation == "queue_add" else ""
    error = error_of(call, user, operation, f'{{{kind}"id":"{item}","payload":{payload}}}')
    assert error.code == "queue.invalid_payload"
    return error.field


def test_ATK_4_lists_exports_and_edits_show_each_number_as_it_was_written(
    sign_in: MakeUser, measurements: DirectoryFixtures
) -> None:
    user = sign_in(tables=TABLES)
    user.app.go_offline()
    first, second, third = new_ids(3)
    add(user, first, '{"exact":0.30000000000000004}')
    add(user, second, '{"exact":9.99}')
    add(user, third, '{"exact":1}')
    # Adding the same again is accepted, also for a whole number with an exponent
    call(user, "queue_edit", f'{{"id":"{third}","payload":{{"exact":3.3}}}}')
    add(user, second, '{"exact":999e-2}')
    expected = ["0.30000000000000004", "9.99", "3.3"]
    for operation, request in {"queue_list": "{}", "queue_export": "{}"}.items():
        _, reply = user.app.library.call(operation, user.app._handle, request.encode())
        assert raw_numbers((reply or b"").decode(), "exact") == expected
    user.app.go_online()
    drain(user.app)
    assert stored(measurements, "exact") == dict(zip([first, second, third], expected, strict=True))


def test_ATK_4_an_exported_item_is_the_same_item(sign_in: MakeUser) -> None:
    user = sign_in(tables=TABLES)
    user.app.go_offline()
    [item] = new_ids(1)
    payload = '{"whole":1e3,"exact":30.0,"document":[1e3,1.50,-0.0,2e22]}'
    add(user, item, payload)
    user.restart(online=False)
    _, reply = user.app.library.call("queue_export", user.app._handle, b"{}")
    text = (reply or b"").decode()
    assert '"whole":1000,"exact":30.0,"document":[1000,1.5,-0.0,2e22]' in text
    [entry] = json.loads(text)["items"]
    added = user.app.queue_add(entry)
    assert added["id"] == item
    add(user, item, payload)
