"""The docstring of an operation: what Python's help() shows."""

from __future__ import annotations

import json
import textwrap

from model import (
    Codes,
    Constant,
    Example,
    ListOf,
    MapOf,
    Model,
    Nullable,
    Operation,
    Record,
    Reference,
    Scalar,
    Type,
    Union,
)

WIDTH = 96
INDENT = 8


class Docstrings:
    """Writes docstrings."""

    def __init__(self, model: Model) -> None:
        """Takes the whole schema."""
        self._model = model

    def of(self, operation: Operation) -> str:
        """The docstring of an operation, with its indentation."""
        parts = [self._about(operation.about)]
        for title, name in (("Request", operation.request), ("Reply", operation.reply)):
            if fields := self._fields(name):
                parts.append([f"{title}:", *fields])
            elif title == "Request":
                parts.append(["Request: empty."])
        parts += [["Errors:", *self._errors(operation)]] if operation.errors else []
        for example in operation.examples[:1]:
            parts.append(["Example:", *self._example(operation.name, example)])
        if len(parts) == 1 and len(parts[0]) == 1:
            return f'{" " * INDENT}"""{parts[0][0]}"""\n'
        lines = "\n\n".join("\n".join(part) for part in parts).splitlines()
        indented = textwrap.indent("\n".join(lines[1:]), " " * INDENT)
        return f'{" " * INDENT}"""{lines[0]}\n{indented}\n{" " * INDENT}"""\n'

    def _about(self, text: str) -> list[str]:
        """The description; its first line is a sentence."""
        first, dot, rest = text.partition(". ")
        lines = wrapped(first + (dot.strip() or ""))
        return [*lines, "", *wrapped(rest)] if rest else lines

    def _fields(self, name: str) -> list[str]:
        """The fields of a record, or of each record of a union."""
        shape = self._model.resolved(Reference(name))
        if isinstance(shape, Union):
            lines: list[str] = []
            for number, choice in enumerate(shape.choices):
                about = self._model.definitions[choice.name].about
                lines += wrapped(f"{'or: ' if number else ''}{about}", 4)
                lines += self._fields(choice.name)
            return lines
        lines = []
        for field in shape.fields if isinstance(shape, Record) else ():
            notes = [self._kind(field.type)]
            if not field.required:
                notes.append("optional")
            if field.default is not None:
                notes.append(f"default {json.dumps(json.loads(field.default))}")
            head = f"{field.name} ({', '.join(notes)})"
            lines += wrapped(f"{head}: {field.long_about}" if field.long_about else head, 4, 8)
        return lines

    def _kind(self, one: Type) -> str:
        """A type, in a few words."""
        match one:
            case Reference(name):
                definition = self._model.definitions[name]
                if definition.inner and isinstance(definition.shape, Codes):
                    return self._kind(definition.shape)
                return name
            case Constant(value):
                return json.dumps(value)
            case Codes(values, is_open):
                return "string" if is_open else " | ".join(json.dumps(one) for one in values)
            case Nullable(of):
                return f"{self._kind(of)} | null"
            case ListOf(item):
                return f"array of {self._kind(item)}"
            case MapOf():
                return "object"
            case Union():
                return " | ".join(choice.name for choice in one.choices)
            case Scalar(kind):
                return kind

    def _errors(self, operation: Operation) -> list[str]:
        lines: list[str] = []
        for code in operation.errors:
            about = self._model.errors.get(code, "")
            lines += wrapped(f"{code}: {about}" if about else code, 4, 8)
        return lines

    def _example(self, name: str, example: Example) -> list[str]:
        request = "" if not example.request else python(example.request)
        lines = wrapped(f">>> app.{name}({request})", 4, 8)
        return lines + (wrapped(python(example.reply), 4) if example.reply is not None else [])


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
