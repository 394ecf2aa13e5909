"""Writes reference.md from the headers, the schema, and the core's lists of codes.

The page is not in git. Every run of make writes it after a change of what it is made from.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "include/holdfast.h"
DRIVER = ROOT / "Sources/HoldfastHTTP/include/holdfast_http.h"
KEYS = ROOT / "Sources/HoldfastKeys/include/holdfast_keys.h"
SCHEMA = ROOT / "include/holdfast.schema.json"
ERRORS = ROOT / "Sources/Base/ErrorCode.swift"
CODES = ROOT / "Sources/Policy/MessageCode.swift"
ENGLISH = ROOT / "Sources/Policy/MessagesEnglish.swift"
PAGE = ROOT / "docs/reference.md"

Schema = dict[str, Any]

#: What only the driver takes.
DRIVERS_KEY_STORE = """**With [`holdfast_http_call`](#holdfast_http_call)** there are two more kinds, which the driver serves:

| field | type | required | |
|---|---|---|---|
| `kind` | `"host"` | yes | A thread of the host answers `key_next` with `key_complete`. |
| | `"secret_service"` | | The desktop's keyring: GNOME Keyring, KWallet, KeePassXC. Needs `libsecret-1-0`. |
| `name` | string, 1 to 256 bytes | for the keyring | Finds the keys: one for each `data_dir`, such as `com.example.visits`. |

With the keyring, `policy.biometric` must be `preferred` or `off`, because it asks for no presence.
"""

HEAD = """# Reference

Do not edit this page. [`reference.py`](reference.py) generates it from [`holdfast.h`](../include/holdfast.h),
[`holdfast.schema.json`](../include/holdfast.schema.json) and the lists of codes in the core. `make` runs it.
[conventions.md](conventions.md) explains naming, ownership and
threads.

[Functions](#functions) · [Driver](#driver) · [Key stores in C](#key-stores-in-c) · [Configuration](#configuration) ·
[Status and errors](#status-and-errors) · [Key store](#key-store) · [Shapes](#shapes) ·
[Messages](#messages)
"""


# ---- the headers ----


def comment(text: str) -> str:
    """The text of a C comment, without its frame."""
    lines = [re.sub(r"^\s*(/\*|\*/|\*)? ?", "", line) for line in text.splitlines()]
    return "\n".join(lines).replace("*/", "").strip()


def functions(header: Path) -> list[tuple[str, str, str]]:
    """Name, declaration and comment of each function, in the order of the header."""
    form = r"(/\*(?:(?!\*/).)*\*/)\n((?:typedef [^\n]+\n)?[\w *]+?\b(holdfast_\w+)\([^;{}]*\);)"
    found = []
    for text, declaration, name in re.findall(form, header.read_text("utf-8"), flags=re.DOTALL):
        found.append((name, declaration.strip(), comment(text)))
    return found


def first_sentence(text: str) -> str:
    text = re.sub(r" \([^)]*\)", "", text)
    return re.split(r"[.:] ", text.replace("\n", " "), maxsplit=1)[0].rstrip(".") + "."


def constants(prefix: str) -> list[tuple[str, str, str]]:
    """Name, number and comment of the header's constants that begin with `prefix`."""
    form = rf"#define ({prefix}\w+) (\d+)(?: +/\* (.*?) \*/)?"
    return re.findall(form, HEADER.read_text("utf-8"))


# ---- the core's lists ----


def swift_cases(path: Path) -> dict[str, str]:
    """Case name to raw value, for an enumeration with one case per line."""
    found = re.findall(
        r'^  case (\w+)(?: = "([\w.]+)")?$', path.read_text("utf-8"), flags=re.MULTILINE
    )
    return {case: raw or case for case, raw in found}


def error_lists() -> tuple[dict[str, str], set[str]]:
    """The status class of each code, and the set of retryable codes."""
    text = ERRORS.read_text("utf-8")
    raw = swift_cases(ERRORS)
    classes: dict[str, str] = {}
    body, again = text.split("public var status: Status", 1)[1].split("public var retryable", 1)
    for cases, name in re.findall(r"case ([^:]+):\s+return \.(\w+)", body):
        for case in re.findall(r"\.(\w+)", cases):
            classes[raw[case]] = name
    named = {"notFound": "NOT_FOUND", "noMemory": "NOMEM", "internalDefect": "INTERNAL"}
    classes = {code: named.get(name, name.upper()) for code, name in classes.items()}
    again = again.split("return true", 1)[0]
    return classes, {raw[case] for case in re.findall(r"\.(\w+)", again)}


def english() -> dict[str, str]:
    """The English text of each case."""
    text = ENGLISH.read_text("utf-8")
    said: dict[str, str] = {}
    for case, block, line in re.findall(
        r'case \.(\w+):\s+(?:"""\n(.*?)\n\s+"""|"((?:[^"\\]|\\.)*)")', text, flags=re.DOTALL
    ):
        said[case] = line or re.sub(r"\s+", " ", block.replace("\\\n", "")).strip()
    return said


def code_groups() -> list[tuple[str, list[str]]]:
    """The cases of `MessageCode`, grouped by the comment above each group."""
    groups: list[tuple[str, list[str]]] = []
    text = CODES.read_text("utf-8")
    body = re.split(r"\n  public |\n}", text.split("public enum MessageCode", 1)[1], maxsplit=1)[0]
    for line in body.splitlines():
        if match := re.match(r"  // (.*?)\.?$", line):
            groups.append((match[1], []))
        elif match := re.match(r"  case (\w+)", line):
            groups[-1][1].append(match[1])
    return groups


# ---- the schema ----


class Shapes:
    """Renders the definitions of the schema as tables."""

    def __init__(self, schema: Schema) -> None:
        self.definitions: Schema = schema["$defs"]
        self.operations: Schema = schema["x-operations"]

    def used_by(self, name: str) -> list[str]:
        """The operations whose request or reply is `name`."""
        reference = {"$ref": f"#/$defs/{name}"}
        return [
            operation
            for operation, shape in self.operations.items()
            if reference in (shape["request"], shape["reply"])
        ]

    def is_own(self, name: str) -> bool:
        """Whether `name` belongs to one operation and is described there."""
        return name.endswith(("Request", "Reply")) and len(self.used_by(name)) == 1

    def type(self, schema: Schema) -> str:
        """The type of a value, for a table cell."""
        text = self.plain(schema)
        bounds = [schema[key] for key in ("minimum", "maximum") if key in schema]
        if bounds and "$ref" not in schema:
            text += f" {schema.get('minimum', '')}…{schema.get('maximum', '')}"
        elif "$ref" in schema and bounds:
            text += f", {schema.get('minimum', 0)}…{schema['maximum']}"
        return text

    def plain(self, schema: Schema) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return f"[{name}](#{name.lower()})"
        if "const" in schema:
            return f"`{json.dumps(schema['const'])}`"
        if values := schema.get("enum", schema.get("x-known-values")):
            return ", ".join(f"`{value}`" for value in values)
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return " or ".join(self.plain(one) for one in schema[several])
        kind = schema.get("type", "any")
        if isinstance(kind, list):
            return " or ".join(kind)
        if kind == "array":
            return "array of " + self.plain(schema.get("items", {}))
        values = schema.get("additionalProperties")
        if kind == "object" and isinstance(values, dict) and "description" not in values:
            return "object of " + self.plain(schema["additionalProperties"])
        return str(kind)

    def rows(self, schema: Schema, path: str = "") -> list[str]:
        """One row per field; the fields of a nested object follow it."""
        rows: list[str] = []
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            about = field.get("description", "")
            if "default" in field:
                value = json.dumps(field["default"], ensure_ascii=False)
                about = f"{about} Default: `{value}`.".strip()
            must = "yes" if name in required else ""
            rows.append(f"| `{path}{name}` | {self.type(field)} | {must} | {about} |")
            if "properties" in field:
                rows += self.rows(field, f"{path}{name}.")
        return rows

    def table(self, schema: Schema) -> str:
        """A definition: the fields of an object, its alternatives, or a plain type."""
        if choices := schema.get("oneOf", schema.get("anyOf")):
            parts = []
            for one in choices:
                if "$ref" in one:
                    parts.append(f"Or {self.plain(one)}.\n")
                else:
                    parts.append(f"**{one['title']}**\n\n{self.table(one)}")
            return "\n".join(parts)
        rows = self.rows(schema)
        if not rows:
            if schema.get("type") == "object":
                return "No fields.\n" if "properties" in schema else "An object.\n"
            pattern = f", `{schema['pattern']}`" if "pattern" in schema else ""
            return f"{self.type(schema)}{pattern}\n"
        return "| field | type | required | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"

    def described(self, name: str, level: str = "###") -> str:
        schema = self.definitions[name]
        about = schema.get("description", "")
        return f"{level} {name}\n\n" + (f"{about}\n\n" if about else "") + self.table(schema)


def operation_notes(name: str, operation: Schema) -> str:
    """The errors of an operation and its examples."""
    codes = ", ".join(f"`{code}`" for code in operation["errors"])
    parts = [f"Errors: {codes}, and [those of every operation](#status-and-errors).\n"]
    if not codes:
        parts = ["Errors: [those of every operation](#status-and-errors).\n"]
    for example in operation["examples"]:
        for side in ("request", "reply"):
            text = json.dumps(example[side], ensure_ascii=False, indent=1)
            short = json.dumps(example[side], ensure_ascii=False)
            parts.append(f"```json\n{short if len(short) <= 100 else text}\n```\n")
    return "\n".join(parts)


def function_section(name: str, declaration: str, manual: str, shapes: Shapes) -> str:
    parts = [f"### {name}\n", "```c", declaration, "```\n"]
    operation = shapes.operations.get(name.removeprefix("holdfast_"))
    if operation:
        parts.append(
            " ".join([operation["description"], operation.get("details", "")]).strip() + "\n"
        )
    else:
        parts += ["```text", manual, "```\n"]
    for side in ("request", "reply") if operation else ():
        shape = operation[side]["$ref"].rsplit("/", 1)[1]
        if shape in ("Empty", "EmptyReply"):
            continue
        if shapes.is_own(shape):
            parts.append(f"{side.capitalize()}:\n\n{shapes.table(shapes.definitions[shape])}")
        else:
            parts.append(f"{side.capitalize()}: [{shape}](#{shape.lower()})\n")
    if operation:
        parts.append(operation_notes(name.removeprefix("holdfast_"), operation))
    return "\n".join(parts)


def page() -> str:
    schema = json.loads(SCHEMA.read_text("utf-8"))
    shapes = Shapes(schema)
    parts = [HEAD, "## Functions\n", "| function | |", "|---|---|"]
    header = functions(HEADER)
    for name, _, manual in header:
        operation = schema["x-operations"].get(name.removeprefix("holdfast_"))
        about = operation["description"] if operation else first_sentence(manual)
        parts.append(f"| [`{name}`](#{name}) | {about} |")
    parts.append("")
    parts += [function_section(*function, shapes) for function in header]

    parts.append(
        "## Driver\n\n`holdfast_http.h`: sends the requests over libcurl, for a host without an HTTP client.\n"
    )
    parts += [function_section(*function, shapes) for function in functions(DRIVER)]

    parts.append("## Key stores in C\n\n`holdfast_keys.h`: the desktop's keyring, and a mailbox.\n")
    parts += [function_section(*function, shapes) for function in functions(KEYS)]

    parts.append("## Configuration\n\nThe `config` argument of `holdfast_open`.\n")
    settings = [
        "Config",
        "Backend",
        "QueueKind",
        "ContactsMapping",
        "AuthMethodConfig",
        "RoleRoutes",
        "Policy",
        "KeyStoreChoice",
    ]
    parts += [shapes.described(name) for name in settings]
    parts.append(DRIVERS_KEY_STORE)

    classes, again = error_lists()
    parts += ["## Status and errors\n", "| status | | |", "|---|---|---|"]
    for name, number, about in constants("HOLDFAST_(?!KEY_|PROTECT_|H$)"):
        parts.append(f"| `{name}` | {number} | {about} |")
    common = ", ".join(f"`{code}`" for code in schema["x-errors-of-every-operation"])
    parts += ["", f"Every operation may fail with {common}.", ""]
    parts += ["| code | status | retryable | meaning and remedy |", "|---|---|---|---|"]
    for code, about in schema["x-errors"].items():
        parts.append(f"| `{code}` | {classes[code]} | {'yes' if code in again else ''} | {about} |")
    parts += ["", shapes.described("ErrorReply"), shapes.described("Error")]

    parts += [
        "## Key store\n",
        "The results of a key store, and the protection levels that `save` receives.\n"
        "[platforms.md](platforms.md) maps them to each platform.\n",
    ]
    parts += ["| | | |", "|---|---|---|"]
    parts += [
        f"| `{name}` | {number} | {about} |"
        for name, number, about in constants("HOLDFAST_(?:KEY|PROTECT)_")
    ]

    parts.append("\n## What holdfast_next gives\n")
    given = [
        one["$ref"].rsplit("/", 1)[1]
        for union, choices in (("NextReply", "anyOf"), ("Notice", "oneOf"), ("Answer", "oneOf"))
        for one in schema["$defs"][union][choices]
    ]
    for name in given:
        definition = schema["$defs"][name]
        parts.append(f"### {name}\n\n{definition['description']}\n\n{shapes.table(definition)}")

    parts.append("## Shapes\n")
    done = {*settings, *given, "ErrorReply", "Error", "Empty", "EmptyReply"}
    for name in schema["$defs"]:
        if name not in done and not shapes.is_own(name):
            parts.append(shapes.described(name))

    parts.append("## Messages\n")
    parts.append(
        "Every `code` that comes with a `text`, and its English text. Bokmål and Nynorsk have the same codes.\n"
        "The `message` of a decision is null for `active`, `unlocked`, `chosen` and `switched`.\n"
    )
    raw, said = swift_cases(CODES), english()
    for title, cases in code_groups():
        parts += [f"### {title}\n", "| code | text |", "|---|---|"]
        parts += [f"| `{raw[case]}` | {said[case]} |" for case in cases]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
