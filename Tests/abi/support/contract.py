"""Checks replies, what `next` gives, errors and accepted requests against holdfast.schema.json."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

import jsonschema_rs

from .paths import SCHEMA

DOCUMENT: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
OPERATIONS: dict[str, dict[str, Any]] = DOCUMENT["x-operations"]

#: What this run has checked: ("reply", operation), ("error", code), ("next", form),
#: ("notice", type), ("answer", operation).
judged: Counter[tuple[str, str]] = Counter()


def known(schema: dict[str, Any]) -> list[str]:
    """The values of an enumeration, closed or open."""
    return list(schema.get("enum", schema.get("x-known-values", ())))


#: For the versions that follow.
OTHERS = [{"$ref": "#/$defs/OtherNotice"}, {"$ref": "#/$defs/OtherAnswer"}]


def closed(schema: Any) -> Any:  # noqa: ANN401
    """What this version of the library keeps to: no field and no code that the schema lacks.

    The published shapes of replies and events are open, for the versions that follow.
    """
    if isinstance(schema, list):
        return [closed(one) for one in schema if one not in OTHERS]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(inner) for name, inner in schema.items() if name != "x-known-values"}
    if "x-known-values" in schema and "pattern" not in schema:
        made["enum"] = schema["x-known-values"]
    if "properties" in schema and schema.get("additionalProperties") is True:
        made["additionalProperties"] = False
    return made


#: Which fields of a decision belong to which screen.
SCREENS = {
    "allOf": [
        {
            "if": {"properties": {"screen": {"const": "home"}}},
            "then": {"properties": {"route": {"type": "string"}}},
        },
        {
            "if": {"properties": {"screen": {"const": "sign_in"}}},
            "else": {"properties": {"methods": {"maxItems": 0}}},
        },
        {
            "if": {"properties": {"screen": {"const": "select_org"}}},
            "else": {"properties": {"orgs": {"maxItems": 0}}},
        },
    ]
}
CLOSED: dict[str, Any] = closed(DOCUMENT["$defs"])
CLOSED["Decision"] |= SCREENS


def forms(reference: str) -> list[dict[str, Any]]:
    """The forms of a definition: one, or those of a union."""
    shape = DOCUMENT["$defs"][reference.rsplit("/", 1)[1]]
    choices = shape.get("oneOf", shape.get("anyOf"))
    if choices is None:
        return [shape]
    return [form for choice in choices for form in forms(choice["$ref"])]


@functools.cache
def _validator(reference: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": reference, "$defs": CLOSED})


def errors_of(operation: str) -> set[str]:
    """The codes with which an operation may fail."""
    own = DOCUMENT["x-next"] if operation == "next" else OPERATIONS[operation]
    return {*own["errors"], *DOCUMENT["x-errors-of-every-operation"]}


class ContractError(AssertionError):
    """A value does not match the published schema."""


def _judge(reference: str, value: object, what: str) -> None:
    validator = _validator(reference)
    if validator.is_valid(value):
        return
    faults = sorted(validator.iter_errors(value), key=lambda e: list(map(str, e.instance_path)))
    lines = [f"/{'/'.join(map(str, fault.instance_path))}: {fault.message}" for fault in faults]
    shown = json.dumps(value, ensure_ascii=False)[:2000]
    raise ContractError("\n".join([f"{what} breaks {reference}", *lines, shown]))


def judge_shape(reference: str, value: object) -> None:
    """A value must be what this version would send."""
    _judge(reference, value, "the value")


def judge_reply(operation: str, status: int, reply: dict[str, Any] | None) -> None:
    """A success must match the operation's reply, any other status the error type."""
    if status == 11 and reply is None:
        return
    if status == 0:
        _judge(OPERATIONS[operation]["reply"]["$ref"], reply, f"the reply of {operation}")
        judged["reply", operation] += 1
        return
    _judge_failure(operation, status, reply)


def _judge_failure(operation: str, status: int, reply: dict[str, Any] | None) -> None:
    if status == 11 and reply is None:
        return
    _judge("#/$defs/ErrorReply", reply, f"the error of {operation} (status {status})")
    code = (reply or {})["error"]["code"]
    if code not in errors_of(operation):
        raise ContractError(f"the schema does not list {code} for {operation}")
    judged["error", code] += 1


def judge_next(status: int, thing: dict[str, Any] | None) -> None:
    """Check what `next` gave against its own form, so that the message names the fault."""
    if status != 0:
        _judge_failure("next", status, thing)
        return
    (name,) = list(thing or {})
    (form,) = [one for one in FORMS if name in CLOSED[one]["required"]]
    inner = (thing or {})[name]
    for tag, union in (("notice", "Notice"), ("answer", "Answer")):
        if name == tag:
            _judge_tagged(union, inner)
            judged[name, inner.get("type", inner.get("to"))] += 1
    _judge(f"#/$defs/{form}", thing, f"a {name}")
    judged["next", name] += 1


#: The forms of what `next` gives.
FORMS = [one["$ref"].rsplit("/", 1)[1] for one in CLOSED["NextReply"]["anyOf"]]


def _judge_tagged(union: str, value: dict[str, Any]) -> None:
    """A member of a union with constants, by its constant."""
    for choice in CLOSED[union]["oneOf"]:
        shape = CLOSED[choice["$ref"].rsplit("/", 1)[1]]["properties"]
        if any(value.get(name) == field.get("const", ...) for name, field in shape.items()):
            return _judge(choice["$ref"], value, f"a member of {union}")
    raise ContractError(f"{union} has no member such as {value}")


def judge_accepted_request(operation: str, request: dict[str, Any]) -> None:
    """A request that the library accepted must match the schema."""
    _judge(OPERATIONS[operation]["request"]["$ref"], request, f"the accepted {operation}")


def property_names() -> list[str]:
    """Every field name of the schema, for fuzzing."""
    names: set[str] = set()

    def walk(value: object) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("properties"), dict):
                names.update(value["properties"])
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(DOCUMENT)
    return sorted(names)
