"""The schema is complete, and replies are open: what generators of clients and readers rely on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs

from support import contract
from support.paths import HEADER, ROOT

DEFINITIONS: dict[str, Any] = contract.DOCUMENT["$defs"]
COMMON: list[str] = contract.DOCUMENT["x-errors-of-every-operation"]

#: Codes that come from a function without a request of its own.
ELSEWHERE = {"request.unknown_operation", "handle.busy"}


def uses(value: object) -> Iterator[str]:
    """The names of the definitions that a value refers to."""
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].rsplit("/", 1)[1]
        for inner in value.values():
            yield from uses(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from uses(inner)


def side(which: str, *more: str) -> set[str]:
    """All definitions that requests, or replies, are made of."""
    found: set[str] = set()
    left = [one for shape in contract.OPERATIONS.values() for one in uses(shape[which])] + [*more]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += uses(DEFINITIONS[name])
    return found


def objects(schema: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object with properties within a schema, and where it is."""
    if isinstance(schema, dict):
        if "properties" in schema:
            yield path, schema
        for key, inner in schema.items():
            if key not in ("examples", "x-known-values"):
                yield from objects(inner, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from objects(inner, f"{path}/{number}")


def enumerations(schema: object) -> Iterator[object]:
    """Each closed list of values within a schema; what an unknown event is not, is no such list."""
    if isinstance(schema, dict):
        if "enum" in schema:
            yield schema["enum"]
        for key, inner in schema.items():
            if key not in ("examples", "not"):
                yield from enumerations(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from enumerations(inner)


def validator(schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    """Judges whether a value is what this version of the library would send."""
    definitions = {"$defs": contract.CLOSED} if any(uses(schema)) else {}
    return jsonschema_rs.Draft202012Validator({**schema, **definitions})


REQUESTS = side("request")
REPLIES = side("reply", "BuildInfo", "NextReply", "ErrorReply", "NoticeType", "AnswerTo")


def test_requests_are_closed() -> None:
    for name in sorted(REQUESTS - REPLIES):
        for path, schema in objects(DEFINITIONS[name], name):
            if "required" in schema or schema["properties"]:
                assert schema["additionalProperties"] is False, path
        assert "x-known-values" not in str(DEFINITIONS[name]), name


def test_HST_8_replies_and_news_are_open() -> None:
    """A field, an event or a code that is added later must break no generated client."""
    for name in sorted(REPLIES):
        for path, schema in objects(DEFINITIONS[name], name):
            assert schema["additionalProperties"] is not False, path
        assert list(enumerations(DEFINITIONS[name])) == [], name


def test_every_definition_is_used() -> None:
    assert set(DEFINITIONS) == REQUESTS | REPLIES


def test_the_root_names_every_shape_once() -> None:
    expected = {
        f"{name}_{which}": shape[which]
        for name, shape in contract.OPERATIONS.items()
        for which in ("request", "reply")
    }
    expected["build_info"] = {"$ref": "#/$defs/BuildInfo"}
    expected["next_reply"] = contract.DOCUMENT["x-next"]["reply"]
    expected["notice_type"] = {"$ref": "#/$defs/NoticeType"}
    expected["answer_to"] = {"$ref": "#/$defs/AnswerTo"}
    expected["error"] = {"$ref": "#/$defs/ErrorReply"}
    assert contract.DOCUMENT["type"] == "object"
    assert contract.DOCUMENT["properties"] == expected


def has_examples(schema: dict[str, Any]) -> bool:
    """Whether a property has an example, or is an object whose own properties have them."""
    if "examples" in schema or "const" in schema or "properties" in schema:
        return True
    reference = schema.get("$ref") or schema.get("items", {}).get("$ref")
    return reference is not None and all("properties" in one for one in contract.forms(reference))


def test_every_shape_and_property_has_a_description_and_an_example() -> None:
    fields = 0
    for name in sorted(DEFINITIONS):
        assert DEFINITIONS[name]["description"].endswith((".", ")")), name
        for path, schema in objects(DEFINITIONS[name], name):
            for key, field in schema["properties"].items():
                fields += 1
                assert field.get("description", "").strip(), f"{path}/{key}"
                assert has_examples(field), f"{path}/{key}"
                judge = validator(field)
                for example in field.get("examples", ()):
                    assert judge.is_valid(example), f"{path}/{key}"
    assert fields > 300


def test_every_operation_has_a_description_an_example_and_its_errors() -> None:
    for operation, shape in contract.OPERATIONS.items():
        assert shape["description"].endswith("."), operation
        assert shape["examples"], operation
        for example in shape["examples"]:
            contract.judge_accepted_request(operation, example["request"])
            contract.judge_shape(shape["reply"]["$ref"], example["reply"])
        codes = shape["errors"]
        assert len(codes) == len(set(codes)), operation
        assert set(codes) <= set(contract.DOCUMENT["x-errors"]), operation
        assert not set(codes) & set(COMMON), f"{operation}: listed twice"


def test_every_error_belongs_to_an_operation() -> None:
    listed = {code for shape in contract.OPERATIONS.values() for code in shape["errors"]}
    assert listed | set(COMMON) | ELSEWHERE == set(contract.DOCUMENT["x-errors"])


def test_the_rules_of_an_operation_name_errors_that_exist() -> None:
    known = set(contract.DOCUMENT["x-errors"])
    nouns = "|".join({code.partition(".")[0] for code in known})
    named = {
        code
        for operation in contract.OPERATIONS.values()
        for code in re.findall(rf"`((?:{nouns})\.\w+)`", operation.get("details", ""))
    }
    assert len(named) >= 4
    assert named <= known


def test_every_function_of_the_header_is_described() -> None:
    text = HEADER.read_text(encoding="utf-8")
    form = r"/\*((?:(?!\*/).)*)\*/\nint32_t holdfast_(\w+)\("
    sections = {name: words for words, name in re.findall(form, text, flags=re.S)}
    assert set(contract.OPERATIONS) <= set(sections)
    assert set(sections) - set(contract.OPERATIONS) == {"call", "next", "version_number", "wake_fd"}
    assert (ROOT / "docs/abi.md").read_text("utf-8").count("x-known-values") == 1
