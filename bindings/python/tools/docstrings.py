"""The docstring of an operation, from the schema: what help() shows."""

from __future__ import annotations

import json
import textwrap
from typing import Any

Schema = dict[str, Any]

WIDTH = 96
INDENT = 8


class Docstrings:
    """Writes docstrings; `owner` is the name of the variable in examples."""

    def __init__(self, schema: Schema, *, asynchronous: bool) -> None:
        """Takes the whole schema."""
        self._schema = schema
        self._definitions: Schema = schema["$defs"]
        self._call = "await app" if asynchronous else "app"

    def of(self, name: str) -> str:
        """The docstring of an operation, with its indentation."""
        operation = self._schema["x-operations"][name]
        request = self._resolved(operation["request"])
        reply = self._resolved(operation["reply"])
        parts = [self._about(operation["description"])]
        for title, shape in (("Request", request), ("Reply", reply)):
            if fields := self._fields(shape):
                parts.append([f"{title}:", *fields])
            elif title == "Request":
                parts.append(["Request: empty."])
        parts += [["Errors:", *self._errors(operation)]] if operation.get("errors") else []
        for example in operation.get("examples", [])[:1]:
            parts.append(["Example:", *self._example(name, example)])
        if len(parts) == 1 and len(parts[0]) == 1:
            return f'{" " * INDENT}"""{parts[0][0]}"""\n'
        lines = "\n\n".join("\n".join(part) for part in parts).splitlines()
        indented = textwrap.indent("\n".join(lines[1:]), " " * INDENT)
        return f'{" " * INDENT}"""{lines[0]}\n{indented}\n{" " * INDENT}"""\n'

    def _resolved(self, schema: Schema) -> Schema:
        while "$ref" in schema:
            schema = self._definitions[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def _about(self, text: str) -> list[str]:
        """The description; its first line is a sentence."""
        first, dot, rest = text.partition(". ")
        lines = wrapped(first + (dot.strip() or ""))
        return [*lines, "", *wrapped(rest)] if rest else lines

    def _fields(self, shape: Schema) -> list[str]:
        """The fields of an object, or of each of several objects."""
        for several in ("oneOf", "anyOf"):
            if several in shape:
                lines: list[str] = []
                for number, choice in enumerate(shape[several]):
                    inner = self._resolved(choice)
                    lines += wrapped(f"{'or: ' if number else ''}{inner.get('description', '')}", 4)
                    lines += self._fields(inner)
                return lines
        required = set(shape.get("required", ()))
        lines = []
        for key, field in shape.get("properties", {}).items():
            notes = [self._kind(field)]
            if key not in required:
                notes.append("optional")
            if "default" in field:
                notes.append(f"default {json.dumps(field['default'])}")
            about = field.get("description") or self._resolved(field).get("description", "")
            head = f"{key} ({', '.join(note for note in notes if note)})"
            lines += wrapped(f"{head}: {about}" if about else head, 4, 8)
        return lines

    def _kind(self, field: Schema) -> str:
        """The type of a field, in a few words."""
        if "$ref" in field:
            return str(field["$ref"]).rsplit("/", 1)[1]
        if "const" in field:
            return json.dumps(field["const"])
        if "enum" in field:
            return " | ".join(json.dumps(value) for value in field["enum"])
        for several in ("oneOf", "anyOf"):
            if several in field:
                return " | ".join(self._kind(choice) for choice in field[several])
        kind = field.get("type", "any")
        if isinstance(kind, list):
            return " | ".join(kind)
        if kind == "array" and "items" in field:
            return f"array of {self._kind(field['items'])}"
        return str(kind)

    def _errors(self, operation: Schema) -> list[str]:
        explained: dict[str, str] = self._schema.get("x-errors", {})
        lines: list[str] = []
        for code in operation["errors"]:
            about = explained.get(code, "")
            lines += wrapped(f"{code}: {about}" if about else code, 4, 8)
        return lines

    def _example(self, name: str, example: Schema) -> list[str]:
        request = "" if not example.get("request") else python(example["request"])
        lines = wrapped(f">>> {self._call}.{name}({request})", 4, 8)
        return lines + (wrapped(python(example["reply"]), 4) if "reply" in example else [])


def python(value: object) -> str:
    """A JSON value in Python's notation."""
    return repr(value)


def wrapped(text: str, first: int = 0, others: int | None = None) -> list[str]:
    """The lines of a text, safe inside triple quotes."""
    safe = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').strip()
    return textwrap.wrap(
        safe,
        WIDTH - INDENT,
        initial_indent=" " * first,
        subsequent_indent=" " * (first if others is None else others),
        break_long_words=False,
        break_on_hyphens=False,
    )
