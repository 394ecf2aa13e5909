"""What is special in the Swift that is generated."""

from __future__ import annotations

import json

import pytest
import swift
from model import SCHEMA, Model, Reader, camel

MODEL = Model.load(SCHEMA)
FILES = swift.files(MODEL)


def text(name: str) -> str:
    """A generated file."""
    return FILES[f"{swift.FOLDER}/{name}.swift"]


def test_an_absent_field_of_a_request_is_not_null() -> None:
    types = text("Types")
    assert "public var contacts: OrNull<ContactsMapping>?" in types
    assert "orgId: OrNull<String>? = nil" in text("Operations")
    assert "public let route: String?" in types


def test_each_operation_is_a_method_with_an_example_that_is_compiled() -> None:
    operations, examples = text("Operations"), swift.examples(MODEL)
    for one in MODEL.operations:
        by_hand = one.name in swift.METHODS_BY_HAND
        assert (f"func {camel(one.name)}(" in operations) != by_hand
        assert (f"app.{camel(one.name)}(" in examples) == (bool(one.examples) and not by_hand)
    # A sign-in has three forms.
    made = len(MODEL.operations) - len(swift.METHODS_BY_HAND) + 2
    assert operations.count("async throws(HoldfastError)") == made


def test_words_of_swift_stand_in_backticks() -> None:
    assert swift.identifier("guard") == "`guard`"
    assert "`guard`: Self" in text("Codes")
    assert swift.literal('a "b" \\(c)\n') == '"a \\"b\\" \\\\(c)\\u{a}"'


def test_a_description_stays_in_its_comment() -> None:
    assert swift.comment("Ends */ here\nand\rhere") == "/// Ends */ here and here\n"
    assert swift.commented("Ends */ here", "let a", 2) == "  /** Ends * / here */ let a\n"


def test_a_required_field_of_a_request_that_may_be_null_is_refused() -> None:
    """Swift's own coding would leave it out."""
    changed = json.loads(SCHEMA.read_text(encoding="utf-8"))
    changed["$defs"]["QueueGetRequest"]["properties"]["id"] = {"type": ["string", "null"]}
    with pytest.raises(ValueError, match="required field with null"):
        swift.files(Reader(changed).model())
