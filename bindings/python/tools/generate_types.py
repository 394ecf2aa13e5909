"""Writes `types.py`, `operations.py` and `async_operations.py` from include/holdfast.schema.json.

Run without arguments after a change of the schema; `--check` only says whether they are current.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "include" / "holdfast.schema.json"
PACKAGE = ROOT / "bindings" / "python" / "src" / "holdfast"

Schema = dict[str, Any]

NOTICE = '"""{about}\n\nMade by tools/generate_types.py from the schema: do not edit."""\n'
SCALARS = {
    "string": "str",
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "null": "None",
    "object": "dict[str, Any]",
    "array": "list[Any]",
}


class Types:
    """Python types for the schema's definitions, in an order in which each is known when used."""

    def __init__(self, schema: Schema) -> None:
        """For the whole schema."""
        self.definitions: Schema = schema["$defs"]
        self.done: dict[str, str] = {}

    def text(self) -> str:
        """The module's text."""
        for name in self.definitions:
            self.define(name)
        head = NOTICE.format(about="What goes into the library and what comes out of it.")
        imports = "from typing import Any, Literal, NotRequired, TypeAlias, TypedDict\n"
        names = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(self.done)) + "]\n"
        return "\n".join([head, imports, names]) + "".join(self.done.values())

    def define(self, name: str) -> None:
        """Write one definition, after those that it names."""
        if name in self.done:
            return
        schema = self.definitions[name]
        about = schema.get("description")
        if is_closed_object(schema):
            text = self.typed_dict(name, schema)
        else:
            text = self.alias(name, schema)
            if about:
                text += f'"""{about}"""\n'
        self.done[name] = text

    def alias(self, name: str, schema: Schema) -> str:
        """A definition that is not a closed object."""
        return f"\n{name}: TypeAlias = {self.expression(schema, name)}\n"

    def typed_dict(self, name: str, schema: Schema) -> str:
        """A closed object."""
        required = set(schema.get("required", ()))
        fields: list[tuple[str, str]] = []
        for key, inner in schema["properties"].items():
            part = "".join(word.capitalize() for word in key.split("_"))
            value = self.expression(inner, f"{name}{part}")
            fields.append((key, value if key in required else f"NotRequired[{value}]"))
        about = schema.get("description")
        doc = f'    """{about}"""\n' if about else ""
        body = "".join(f"    {key}: {value}\n" for key, value in fields) or "    pass\n"
        return f"\n\nclass {name}(TypedDict):\n{doc}{body}\n"

    def expression(self, schema: Schema, context: str) -> str:
        """The type that says what the schema says; `context` names an inner closed object."""
        if "$ref" in schema:
            name = str(schema["$ref"]).rsplit("/", 1)[1]
            self.define(name)
            return name
        if "const" in schema:
            return f"Literal[{literal(schema['const'])}]"
        if "enum" in schema:
            return "Literal[" + ", ".join(literal(value) for value in schema["enum"]) + "]"
        for several in ("oneOf", "anyOf"):
            if several in schema:
                choices = schema[several]
                return " | ".join(
                    self.expression(choice, choice.get("title", context)) for choice in choices
                )
        if is_closed_object(schema):
            self.done[context] = self.typed_dict(context, schema)
            return context
        kind = schema.get("type")
        if isinstance(kind, list):
            return " | ".join(SCALARS[one] for one in kind)
        if kind == "array" and "items" in schema:
            return f"list[{self.expression(schema['items'], context + 'Item')}]"
        values = schema.get("additionalProperties")
        if kind == "object" and isinstance(values, dict):
            return f"dict[str, {self.expression(values, context + 'Value')}]"
        return SCALARS[str(kind)]


def is_closed_object(schema: Schema) -> bool:
    """Whether the schema lists every property an object may have."""
    return schema.get("type") == "object" and schema.get("additionalProperties") is False


def literal(value: object) -> str:
    """A constant as Python source, with the quotes that ruff likes."""
    return json.dumps(value) if isinstance(value, str) else repr(value)


def tidy(text: str) -> str:
    """The text as the formatter writes it."""
    command = [sys.executable, "-m", "ruff", "format", "--line-length", "100", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def operations(schema: Schema, *, asynchronous: bool = False) -> str:
    """The text of the module with one method per function."""
    define, wait = ("async def", "await ") if asynchronous else ("def", "")
    class_name, owner = (
        ("AsyncOperations", "AsyncHoldfast") if asynchronous else ("Operations", "Holdfast")
    )
    methods: list[str] = []
    names = set()
    for name, operation in schema["x-operations"].items():
        if name == "open":
            continue
        request = operation["request"]["$ref"].rsplit("/", 1)[1]
        reply = operation["reply"]["$ref"].rsplit("/", 1)[1]
        optional = all_optional(schema["$defs"][request])
        names |= {request, reply}
        parameter = f"request: {request} | None = None" if optional else f"request: {request}"
        methods.append(
            f"    {define} {name}(self, {parameter}) -> {reply}:\n"
            + f'        """{operation["description"]}"""\n'
            + f'        return cast({reply}, {wait}self._call("{name}", request))\n'
        )
    imports = "".join(f"    {name},\n" for name in sorted(names))
    return (
        NOTICE.format(about="One method for every function that takes and gives JSON.")
        + "\nfrom collections.abc import Mapping\nfrom typing import Any, cast\n\n"
        + f"from .types import (\n{imports})\n\n\n"
        + f"class {class_name}:\n"
        + f'    """The methods of `{owner}`; the manual of each is in holdfast.h."""\n\n'
        + f"    {define} _call(self, name: str, request: Mapping[str, Any] | None) -> object:\n"
        + "        raise NotImplementedError\n\n"
        + "\n".join(methods)
    )


def all_optional(schema: Schema) -> bool:
    """Whether {} is a valid request."""
    return schema.get("type") == "object" and not schema.get("required")


def main() -> int:
    """Write the modules, or say whether they are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    stale = 0
    modules = {
        "types.py": Types(schema).text(),
        "operations.py": operations(schema),
        "async_operations.py": operations(schema, asynchronous=True),
    }
    for name, raw in modules.items():
        path, text = PACKAGE / name, tidy(raw)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if check:
            print(f"{name} is not current: run tools/generate_types.py", file=sys.stderr)
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
