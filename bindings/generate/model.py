"""The schema as definitions and operations: what every writer reads.

`Model.load` reads include/holdfast.schema.json once and checks it. A form of JSON Schema that the
model does not know is an error here, so that no writer can pass over it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Schema = dict[str, Any]


# ---- types ----


@dataclass(frozen=True)
class Scalar:
    """`string`, `boolean`, `integer`, `number`, `null`, or `any` for any JSON value."""

    kind: str


@dataclass(frozen=True)
class Constant:
    """One value, the same in every message: `true`, or the type of a notice."""

    value: str | bool

    @property
    def kind(self) -> str:
        """The scalar that it is one of."""
        return "boolean" if isinstance(self.value, bool) else "string"


@dataclass(frozen=True)
class Codes:
    """A text out of a list.

    Open codes come from the library: a later version adds to the list, so a reader takes an
    unknown one as text. Closed codes go to the library, which refuses others.
    """

    values: tuple[str, ...]
    open: bool


@dataclass(frozen=True)
class Reference:
    """The definition of this name."""

    name: str


@dataclass(frozen=True)
class ListOf:
    """A JSON array."""

    item: Type


@dataclass(frozen=True)
class MapOf:
    """A JSON object whose names are data: columns, headers, roles."""

    value: Type


@dataclass(frozen=True)
class Nullable:
    """The type, or null."""

    of: Type


@dataclass(frozen=True)
class Choice:
    """One of the records of a union, and the field that tells it from those after it."""

    name: str
    mark: str


@dataclass(frozen=True)
class Union:
    """One of several records.

    With a `tag`, that field has another constant in each. Otherwise try them in order: the first
    whose `mark` is among the fields is meant. `other` is the record for unknown tags. An open union
    comes from the library and may be none of these in a later version.
    """

    choices: tuple[Choice, ...]
    tag: str | None
    other: str | None
    open: bool


Type = Scalar | Constant | Codes | Reference | ListOf | MapOf | Nullable | Union


@dataclass(frozen=True)
class Field:
    """A field of a record. Without `required` it may be absent, which is not the same as null."""

    name: str
    type: Type
    required: bool
    about: str
    #: What the schema says of the field, and what it says of the field's type if that is nothing.
    long_about: str
    #: The library's value for an absent field, as JSON text; None: the schema names none.
    default: str | None


@dataclass(frozen=True)
class Record:
    """A JSON object with known fields.

    A closed record is a request or a part of one: the library refuses other fields. An open one is
    a reply, an event or a part: a reader ignores other fields. `extra` is the type of fields that
    are data, the columns of a contact: a reader keeps those.
    """

    fields: tuple[Field, ...]
    closed: bool
    extra: Type | None = None


@dataclass(frozen=True)
class Definition:
    """A record or another type that has a name.

    `inner` definitions are codes and records that the schema writes inside a field; their name is
    made of the record's and the field's. A writer may write inner codes in their place instead.
    """

    name: str
    about: str
    shape: Record | Type
    inner: bool = False


# ---- operations ----


@dataclass(frozen=True)
class Example:
    """A call, as JSON values."""

    request: Any
    reply: Any


@dataclass(frozen=True)
class Operation:
    """A function of holdfast.h, without the prefix."""

    name: str
    about: str
    request: str
    reply: str
    #: Whether every field of the request may be absent.
    optional: bool
    #: The codes that this operation fails with, besides those of every operation.
    errors: tuple[str, ...]
    examples: tuple[Example, ...]


@dataclass
class Model:
    """The whole schema."""

    #: Each after those that it uses.
    definitions: dict[str, Definition] = field(default_factory=dict)
    #: The operations of a handle. `open`, which makes one, stands apart.
    operations: tuple[Operation, ...] = ()
    open: Operation | None = None
    #: What each code of an error means.
    errors: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> Model:
        """The model of a schema file."""
        return Reader(json.loads(path.read_text(encoding="utf-8"))).model()

    def record(self, name: str) -> Record:
        """The record of this name."""
        shape = self.definitions[name].shape
        if not isinstance(shape, Record):
            raise ValueError(f"{name} is not a record")
        return shape

    def resolved(self, one: Type) -> Record | Type:
        """What a type is in the end."""
        while isinstance(one, Reference):
            shape = self.definitions[one.name].shape
            if isinstance(shape, Record):
                return shape
            one = shape
        return one

    def tag_of(self, union: Union, choice: str) -> str:
        """The constant that the union's tag has in a choice."""
        for one in self.record(choice).fields:
            if one.name == union.tag and isinstance(one.type, Constant):
                return str(one.type.value)
        raise ValueError(f"{choice} has no constant {union.tag}")

    def unions(self) -> Iterator[tuple[Definition, Union]]:
        """The definitions that are a union."""
        for definition in self.definitions.values():
            if isinstance(definition.shape, Union):
                yield definition, definition.shape


# ---- reading the schema ----

#: The names that the reader understands. Another one may change what a type means.
KNOWN = {
    *("description", "examples", "default", "title", "x-known-values"),
    *("type", "enum", "const", "anyOf", "oneOf", "not", "$ref"),
    *("properties", "required", "additionalProperties", "minProperties"),
    *("items", "minItems", "maxItems", "uniqueItems"),
    *("minimum", "maximum", "minLength", "maxLength", "pattern"),
}
NULL = {"type": "null"}


class Reader:
    """Reads definitions in the order in which they are used."""

    def __init__(self, schema: Schema) -> None:
        """Takes the whole schema."""
        self._schema = schema
        self._raw: Schema = schema["$defs"]
        self._begun: set[str] = set()
        self._done: dict[str, Definition] = {}

    def model(self) -> Model:
        """The model."""
        for name in self._raw:
            self._define(name)
        operations = [self._operation(name) for name in self._schema["x-operations"]]
        return Model(
            definitions=self._done,
            operations=tuple(one for one in operations if one.name != "open"),
            open=next(one for one in operations if one.name == "open"),
            errors=dict(self._schema["x-errors"]),
        )

    def _define(self, name: str) -> None:
        if name in self._done:
            return
        if name in self._begun:
            raise ValueError(f"{name} contains itself")
        self._begun.add(name)
        schema = self._raw[name]
        shape = self._record(name, schema) or self._type(schema, name, inner=False)
        self._done[name] = Definition(name, schema.get("description", ""), shape)

    def _lift(self, name: str, schema: Schema, shape: Record | Type) -> Reference:
        """Give a name to what stands inside a field."""
        if name in self._raw or name in self._done:
            raise ValueError(f"{name} names two definitions; give one of them a title")
        self._done[name] = Definition(name, schema.get("description", ""), shape, inner=True)
        return Reference(name)

    def _record(self, name: str, schema: Schema) -> Record | None:
        if "properties" not in schema:
            return None
        required = set(schema.get("required", ()))
        fields = tuple(
            self._field(key, inner, key in required, f"{name}{pascal(key)}")
            for key, inner in schema["properties"].items()
        )
        others = schema.get("additionalProperties")
        if others is None:
            raise ValueError(f"{name} does not say whether it is closed")
        extra = self._type(others, f"{name}Extra") if isinstance(others, dict) else None
        return Record(fields, closed=others is False, extra=extra)

    def _field(self, key: str, schema: Schema, required: bool, context: str) -> Field:
        about = schema.get("description", "")
        named = self._raw.get(reference(schema) or "", {})
        return Field(
            name=key,
            type=self._type(schema, context),
            required=required,
            about=about,
            long_about=about or named.get("description", ""),
            default=text(schema["default"]) if "default" in schema else None,
        )

    def _type(self, schema: Schema, context: str, *, inner: bool = True) -> Type:
        """The type of a schema; `context` names codes and records inside it."""
        if unknown := schema.keys() - KNOWN:
            raise ValueError(f"{context}: the model does not know {', '.join(sorted(unknown))}")
        context = schema.get("title", context)
        if name := reference(schema):
            self._define(name)
            return Reference(name)
        if "const" in schema:
            if not isinstance(schema["const"], str | bool):
                raise ValueError(f"{context}: the model knows constants that are texts or flags")
            return Constant(schema["const"])
        for word, is_open in (("enum", False), ("x-known-values", True)):
            if word in schema:
                codes = Codes(tuple(schema[word]), open=is_open)
                return self._lift(context, schema, codes) if inner else codes
        for word in ("anyOf", "oneOf"):
            if word in schema:
                return self._one_of(schema[word], context, is_open=word == "anyOf")
        if record := self._record(context, schema):
            return self._lift(context, schema, record)
        return self._plain(schema, context)

    def _plain(self, schema: Schema, context: str) -> Type:
        kind = schema.get("type")
        if isinstance(kind, list):
            first, *others = kind
            if others != ["null"]:
                raise ValueError(f"{context}: the model knows lists of a type and null")
            return Nullable(self._plain({**schema, "type": first}, context))
        if kind == "array":
            return ListOf(self._type(schema.get("items", {}), f"{context}Item"))
        if kind == "object":
            values = schema.get("additionalProperties", {})
            return MapOf(self._type(values if values is not True else {}, f"{context}Value"))
        return Scalar(kind or "any")

    def _one_of(self, choices: list[Schema], context: str, *, is_open: bool) -> Type:
        if len(choices) == 2 and choices[1] == NULL:
            return Nullable(self._type(choices[0], context))
        names = [reference(choice) for choice in choices]
        records = [name for name in names if name]
        for name in records:
            self._define(name)
        shapes = [self._done[name].shape for name in records]
        if len(records) < len(choices) or not all(isinstance(one, Record) for one in shapes):
            raise ValueError(f"{context}: the model knows unions of records that have names")
        return self._union(records, context, is_open=is_open)

    def _union(self, names: list[str], context: str, *, is_open: bool) -> Union:
        fields = {name: {one.name: one for one in self._fields(name)} for name in names}
        constants = {
            name: {
                key
                for key, one in fields[name].items()
                if isinstance(one.type, Constant) and one.type.kind == "string"
            }
            for name in names
        }
        # The record for unknown tags is the only one without constants, at the end.
        *tagged, last = names
        tags = set.intersection(*(constants[name] for name in tagged))
        if tags and (tag := min(tags)) in fields[last]:
            other = None if tag in constants[last] else last
            members = tagged if other else names
            choices = tuple(Choice(name, tag) for name in members)
            return Union(choices, tag, other, open=is_open or other is not None)
        choices = ()
        for index, name in enumerate(names):
            mine = [key for key, one in fields[name].items() if one.required]
            others = {key for other in names if other != name for key in fields[other]}
            later = {key for other in names[index + 1 :] for key in fields[other]}
            marks = [key for key in mine if key not in others]
            marks += [key for key in mine if key not in later]
            if not marks:
                raise ValueError(f"{context}: no required field tells {name} from those after it")
            choices += (Choice(name, marks[0]),)
        return Union(choices, None, None, open=is_open)

    def _fields(self, name: str) -> tuple[Field, ...]:
        shape = self._done[name].shape
        return shape.fields if isinstance(shape, Record) else ()

    def _operation(self, name: str) -> Operation:
        raw = self._schema["x-operations"][name]
        request, reply = reference(raw["request"]), reference(raw["reply"])
        if not request or not reply:
            raise ValueError(f"{name}: request and reply refer to definitions")
        shape = self._done[request].shape
        optional = isinstance(shape, Record) and not any(one.required for one in shape.fields)
        examples = tuple(
            Example(one.get("request"), one.get("reply")) for one in raw.get("examples", ())
        )
        errors = tuple(raw.get("errors", ()))
        return Operation(name, raw["description"], request, reply, optional, errors, examples)


def reference(schema: Schema) -> str | None:
    """The name of the definition that a schema refers to."""
    target = schema.get("$ref")
    return str(target).removeprefix("#/$defs/") if target else None


def text(value: Any) -> str:  # noqa: ANN401
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False)


# ---- names ----


def pascal(name: str) -> str:
    """queue_add is QueueAdd."""
    return "".join(word.capitalize() for word in name.replace(".", "_").split("_"))


def camel(name: str) -> str:
    """queue_add is queueAdd."""
    made = pascal(name)
    return made[:1].lower() + made[1:]
