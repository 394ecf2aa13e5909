"""Parsers of query strings, bodies and tokens: properties for any input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_supabase import jwt, payload, query
from local_supabase.query_reader import list_items
from local_supabase.query_tree import Column, Condition, Embed, Field, Group, Query
from local_supabase.rest_errors import RestError
from local_supabase.sql import array_literal


def parsed(text: str) -> Query:
    return query.parse(query.pairs(text))


def test_select() -> None:
    found = parsed(
        "select=id,naam:name,doc->a->>b,when::text,who:contacts!fk!inner(name,orgs(*))"
    ).select
    assert found == (
        Field(Column("id")),
        Field(Column("name"), "naam"),
        Field(Column("doc", (("->", "a"), ("->>", "b")))),
        Field(Column("when"), cast="text"),
        Embed(
            "contacts",
            (Field(Column("name")), Embed("orgs", (Field(Column("*")),))),
            "who",
            "fk",
            inner=True,
        ),
    )


def test_filters_and_groups() -> None:
    top = parsed('a=eq.x.y&b=not.in.(1,"2,3")&or=(c.is.null,not.and(d.gt.5,e.like."p,)q"))').top
    assert top.filters == [
        Condition(Column("a"), "eq", "x.y"),
        Condition(Column("b"), "in", '(1,"2,3")', negated=True),
        Group(
            "or",
            (
                Condition(Column("c"), "is", "null"),
                Group(
                    "and",
                    (
                        Condition(Column("d"), "gt", "5"),
                        Condition(Column("e"), "like", "p,)q"),
                    ),
                    negated=True,
                ),
            ),
        ),
    ]


def test_ranges_and_orders() -> None:
    found = parsed("select=x,a(y)&order=x.desc.nullslast,y&limit=3&offset=7&a.limit=1&a.order=y")
    assert (found.top.limit, found.top.offset) == (3, 7)
    assert [(o.column.name, o.descending, o.nulls) for o in found.top.order] == [
        ("x", True, "last"),
        ("y", False, ""),
    ]
    assert found.level(("a",)).limit == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a=5", "PGRST100"),
        ("a=foo.5", "PGRST100"),
        ("or=(a.eq.1", "PGRST100"),
        ("or=a.eq.1", "PGRST100"),
        ("select=a(b", "PGRST100"),
        ("select=a)", "PGRST100"),
        ("order=a.up", "PGRST100"),
        ("limit=-1", "PGRST103"),
        ("select=id&x.name=eq.1", "PGRST108"),
    ],
)
def test_wrong_queries(text: str, code: str) -> None:
    with pytest.raises(RestError) as caught:
        parsed(text)
    assert caught.value.code == code


@given(st.text(alphabet='ab().,!:*"\\->=&%+ not.eqorandselectlimit5æ', max_size=60))
def test_any_query_is_parsed_or_refused(text: str) -> None:
    try:
        parsed(text)
    except RestError as error:
        assert error.status in {400, 416}


@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1))
def test_quoted_lists_survive(items: list[str]) -> None:
    quoted = ",".join('"' + i.replace("\\", "\\\\").replace('"', '\\"') + '"' for i in items)
    expected = [] if items == [""] else items
    assert list_items(f"({quoted})") == expected


def test_array_literals_escape() -> None:
    assert array_literal(['a"b', "c\\d", "e,f", ""]) == '{"a\\"b","c\\\\d","e,f",""}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=20,
)


@given(json_values)
def test_json_bodies_are_parsed(value: Any) -> None:
    assert payload.parse_json(json.dumps(value).encode()) == value


@given(st.binary(max_size=40))
def test_any_body_is_parsed_or_refused(data: bytes) -> None:
    try:
        payload.read(data, None, None)
    except RestError as error:
        assert (error.status, error.code) == (400, "PGRST102")


@pytest.mark.parametrize(
    "data", [b"", b"\xef\xbb\xbf[]", b"NaN", b'"\\ud800"', b'"\xff"', b"[" * 100_000, b'["a\x00b"]']
)
def test_invalid_json_is_refused(data: bytes) -> None:
    with pytest.raises(RestError):
        payload.parse_json(data)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values))
def test_tokens_survive_and_other_keys_do_not_verify_them(claims: dict[str, Any]) -> None:
    made = jwt.sign(claims, "one secret")
    assert jwt.verify(made, "one secret") == claims
    with pytest.raises(jwt.BadToken):
        jwt.verify(made, "another secret")


@given(st.text(max_size=40))
def test_any_token_is_parsed_or_refused(text: str) -> None:
    with pytest.raises(jwt.BadToken):
        jwt.verify(text, "secret")
