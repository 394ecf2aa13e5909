"""Names, literals and comments of Swift."""

from __future__ import annotations

import json

from model import Model, Operation

#: Words that Swift keeps for itself: as a name they stand in backticks.
RESERVED = {
    *("associatedtype", "class", "deinit", "enum", "extension", "fileprivate", "func", "import"),
    *("init", "inout", "internal", "let", "open", "operator", "private", "precedencegroup"),
    *("protocol", "public", "rethrows", "static", "struct", "subscript", "typealias", "var"),
    *("break", "case", "catch", "continue", "default", "defer", "do", "else", "fallthrough", "for"),
    *("guard", "if", "in", "repeat", "return", "throw", "switch", "where", "while", "Any", "as"),
    *("await", "false", "is", "nil", "self", "Self", "super", "throws", "true", "try"),
}


def identifier(name: str) -> str:
    """A name, in backticks if Swift needs them."""
    return f"`{name}`" if name in RESERVED else name


def literal(value: object) -> str:
    """A JSON value as Swift."""
    if isinstance(value, dict):
        inner = ", ".join(f"{literal(key)}: {literal(one)}" for key, one in value.items())
        return f"[{inner or ':'}]"
    if isinstance(value, list):
        return f"[{', '.join(literal(one) for one in value)}]"
    if value is None:
        return "nil"
    if isinstance(value, str):
        # JSON's escapes are Swift's, but for the form of a code point.
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(one if one >= " " else f"\\u{{{ord(one):x}}}" for one in plain) + '"'
    return json.dumps(value)


def comment(text: str, indent: int = 0) -> str:
    """A comment for a declaration, on a line of its own; empty without a text."""
    return f"{' ' * indent}/// {joined(text)}\n" if text else ""


def commented(text: str, declaration: str, indent: int) -> str:
    """A declaration behind its comment, on the same line. Nothing in the text ends the comment."""
    about = joined(text).replace("*/", "* /").replace("/*", "/ *")
    return f"{' ' * indent}{f'/** {about} */ ' if about else ''}{declaration}\n"


def joined(text: str) -> str:
    """A text on one line, which is what ends a comment."""
    return " ".join(text.split())


def described(
    model: Model, one: Operation, fields: dict[str, str], example: str | None, *, is_first: bool
) -> str:
    """What an editor shows: description and parameters; of the first form errors and an example."""
    lines = [one.about]
    lines += [f"- Parameter {name}: {about}" for name, about in fields.items() if about]
    # That a request is malformed needs no telling where the compiler sees its types.
    errors = [f"`{code}`" for code in one.errors if not code.startswith("request.")]
    if errors and is_first:
        lines.append(f"- Throws: among others {', '.join(errors)}: see ``ErrorCode``.")
    if example and is_first:
        reply = one.examples[0].reply
        shown = f" gives `{json.dumps(reply, ensure_ascii=False)}`" if reply else ""
        lines.append(f"- Example: `{example}`{shown}")
    return "".join(comment(line, 2) for line in lines)
