"""Makes the fuzzer's tables and dictionary from the schema.

tables.py tables HEADER     operations, shapes of replies and error codes, for C
tables.py dictionary FILE   the words of requests and replies, for libFuzzer
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCHEMA = json.loads((HERE.parents[1] / "include" / "holdfast.schema.json").read_text())


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, or the definition that it refers to."""
    if "$ref" in schema:
        return dict(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    return schema


def shapes(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the required and the allowed members of each form of an object."""
    schema = resolved(schema)
    choices = schema.get("oneOf", schema.get("anyOf"))
    if choices:
        for choice in choices:
            yield from shapes(choice)
    else:
        yield " ".join(schema.get("required", [])), " ".join(schema["properties"])


def tables() -> str:
    """Return the header for C."""
    operations = SCHEMA["x-operations"]
    lines = ["/* Made by Tests/fuzz/tables.py from holdfast.schema.json. */"]
    names = " ".join(f"OPERATION({name})" for name in operations if name != "open")
    lines.append(f"#define OPERATIONS {names}")
    lines.append("typedef struct { const char *operation, *required, *allowed; } shape;")
    lines.append("static const shape shapes[] __attribute__((unused)) = {")
    replies = {name: operation["reply"] for name, operation in operations.items()}
    for name, reply in [*replies.items(), ("next", SCHEMA["x-next"]["reply"])]:
        for required, allowed in shapes(reply):
            lines.append(f'  {{"{name}", "{required}", "{allowed}"}},')
    lines.append("};")
    codes = " ".join(SCHEMA["$defs"]["ErrorCode"]["x-known-values"])
    lines.append(f'static const char error_codes[] __attribute__((unused)) = "{codes}";')
    return "\n".join(lines) + "\n"


def words(schema: object) -> Iterator[str]:
    """Yield the names of members and the values of enumerations, as JSON text."""
    if isinstance(schema, list):
        for inner in schema:
            yield from words(inner)
    if isinstance(schema, dict):
        for name in schema.get("properties", {}):
            yield f'"{name}":'
        values = [*schema.get("enum", []), *schema.get("x-known-values", [])]
        for value in [*values, *([schema["const"]] if "const" in schema else [])]:
            yield json.dumps(value)
        for inner in schema.values():
            yield from words(inner)


def commands() -> Iterator[str]:
    """Yield the commands and the @words of scripts, read from the sources."""
    script, text = (HERE / "script.c").read_text(), (HERE / "text.c").read_text()
    for name in re.findall(r'\{"(\w+)", \w+\}', script):
        yield f"\n{name} "
    yield from re.findall(r'\{"(@\w+)", \w+\}', text)


def dictionary() -> str:
    """Return the dictionary for libFuzzer."""
    server = (HERE / "server.words").read_text().split()
    operations = [f"\n{name} " for name in SCHEMA["x-operations"]]
    every = [*words(SCHEMA["$defs"]), *operations, *commands(), *server]
    lines = []
    for word in dict.fromkeys(every):
        escaped = "".join(
            f"\\x{byte:02x}" if byte < 32 or byte > 126 or byte in b'"\\' else chr(byte)
            for byte in word.encode()
        )
        lines.append(f'"{escaped}"')
    return "\n".join(lines) + "\n"


def main() -> None:
    made = {"tables": tables, "dictionary": dictionary}[sys.argv[1]]()
    Path(sys.argv[2]).write_text(made)


main()
