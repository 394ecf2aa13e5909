"""What is special in the Swift that is generated."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "include" / "holdfast.schema.json"
sys.path.insert(0, str(ROOT / "bindings" / "generate"))

import swift  # noqa: E402
from model import Model, Reader, camel  # noqa: E402
from swift_text import comment, identifier, literal  # noqa: E402

MODEL = Model.load(SCHEMA)
FILES = swift.files(MODEL)


def text(name: str) -> str:
    """A generated file."""
    return FILES[f"{swift.FOLDER}/{name}.swift"]


def test_open_codes_are_texts_and_closed_ones_an_enumeration() -> None:
    codes = text("Codes")
    assert "public struct Screen: OpenCode, Readable {" in codes
    assert 'static let signIn = Screen(rawValue: "sign_in")' in codes
    assert "public enum Outcome: String, Codable, Sendable, Hashable, CaseIterable {" in codes
    assert 'notEnrolled = "not_enrolled"' in codes


def test_an_absent_field_of_a_request_is_not_null() -> None:
    records = text("Records")
    assert "public var contacts: OrNull<ContactsMapping>?" in records
    assert "public var orgId: OrNull<String>?" in records
    assert "public var route: String?" in records


def test_an_instant_has_a_type_and_no_unit_in_its_name() -> None:
    records = text("Records")
    assert ' occurredAt = "occurred_at_ms"' in records
    assert "public var occurredAt: Instant?" in records
    assert "public var timeoutMs: Int\n" in records


def test_an_unknown_event_keeps_its_fields() -> None:
    assert "public var fields: [String: JSON]" in text("Records")
    assert "fields: object.others(than: [" in text("Records")
    assert "default: self = .other(try reader.value())" in text("Unions")
    assert "case other(OtherEvent)" in text("Unions")


def test_only_what_the_library_sends_is_read() -> None:
    records = text("Records")
    assert "struct Decision: Codable, Sendable, Hashable, ReadableRecord {" in records
    assert "struct QueueAddRequest: Codable, Sendable, Hashable {" in records


def test_each_operation_is_a_method_with_an_example_that_is_compiled() -> None:
    operations = text("Operations")
    examples = FILES[swift.EXAMPLES]
    names = operations.partition("CaseIterable {")[2].partition("}")[0]
    cases = re.findall(r"(?:case|,) (\w+)(?: = \"(\w+)\")?", names)
    assert [text or name for name, text in cases] == [one.name for one in MODEL.operations]
    for one in MODEL.operations:
        if one.examples:
            assert f"app.{camel(one.name)}(" in examples
    assert operations.count("async throws(HoldfastError)") == len(MODEL.operations)


def test_words_of_swift_stand_in_backticks() -> None:
    assert identifier("guard") == "`guard`"
    assert "static let `guard` = Purpose" in text("Codes")
    assert literal('a "b" \\(c)\n') == '"a \\"b\\" \\\\(c)\\u{a}"'


def test_a_description_stays_in_its_comment() -> None:
    assert comment("Ends */ here\nand\rhere") == "/// Ends */ here\n/// and here\n"


def test_a_required_field_of_a_request_that_may_be_null_is_refused() -> None:
    """Swift's own coding would leave it out."""
    changed = json.loads(SCHEMA.read_text(encoding="utf-8"))
    changed["$defs"]["QueueGetRequest"]["properties"]["id"] = {"type": ["string", "null"]}
    with pytest.raises(ValueError, match="required field with null"):
        swift.files(Reader(changed).model())
