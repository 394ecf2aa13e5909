"""TypeScript: `types.ts` and `operations.ts` of the package in bindings/node.

Fields keep the names that they have in JSON, so that the reference holds as it is and nothing is
converted; operations are methods in camelCase.
"""

from __future__ import annotations

import json

import model as m

FOLDER = "bindings/node/src"

SCALARS = {
    "string": "string",
    "boolean": "boolean",
    "integer": "number",
    "number": "number",
    "null": "null",
    "any": "unknown",
}
#: A literal type that no known record has as its tag. With `string` in its place, a comparison of
#: the tag would not tell the other records apart.
OTHER = "UnknownTag"
#: The loop of the package makes it, and no app.
OF_THE_LOOP = "complete"


def files(model: m.Model) -> dict[str, str]:
    """The modules that are made from the schema."""
    return {f"{FOLDER}/types.ts": types(model), f"{FOLDER}/operations.ts": operations(model)}


# ---- types ----


def types(model: m.Model) -> str:
    """The text of `types.ts`."""
    parts = [
        f"{m.NOTICE}\n/** The types of requests, of replies and of what comes. @module */\n",
        "/** What a later version adds. */\n"
        f"declare enum {OTHER} {{\n  unknown = '(another)',\n}}\n",
    ]
    others = {union.other: union.tag for _, union in model.unions() if union.other}
    for one in model.definitions.values():
        if isinstance(one.shape, m.Record):
            parts.append(interface(model, one, one.shape, tag=others.get(one.name)))
        elif not one.inner:
            value = expression(model, one.shape)
            parts.append(f"{comment(one.about)}export type {one.name} = {value};\n")
    return "\n".join(parts)


def interface(model: m.Model, one: m.Definition, record: m.Record, *, tag: str | None) -> str:
    """A record. `tag` is the field that has an unknown text in it."""
    text = comment(one.about)
    if not record.fields and record.extra is None:
        # An interface without fields would accept any value.
        value = "never" if record.closed else "unknown"
        return f"{text}export type {one.name} = Record<string, {value}>;\n"
    lines = [member(model, field, record, tag=tag) for field in record.fields]
    if record.extra is not None:
        lines.append(f"  [column: string]: {expression(model, record.extra)};\n")
    return f"{text}export interface {one.name} {{\n{''.join(lines)}}}\n"


def member(model: m.Model, field: m.Field, record: m.Record, *, tag: str | None) -> str:
    """A field, with its comment."""
    value = OTHER if field.name == tag else expression(model, field.type)
    # JSON.stringify leaves out undefined, so a request may have it.
    mark = "" if field.required else "?"
    value += " | undefined" if record.closed and not field.required else ""
    return comment(field.about + field.default_text, 2) + f"  {field.name}{mark}: {value};\n"


def expression(model: m.Model, one: m.Type) -> str:
    """The type expression of a type."""
    match one:
        case m.Reference(name):
            definition = model.definitions[name]
            if definition.inner and isinstance(definition.shape, m.Codes):
                return expression(model, definition.shape)
            return name
        case m.Constant(value):
            return literal(value)
        case m.Codes(values, is_open):
            # Any text, and the editor still offers the known ones.
            known = [literal(one) for one in values] + (["(string & {})"] if is_open else [])
            return " | ".join(known)
        case m.Union():
            return " | ".join(one.names)
        case m.Nullable(of):
            return f"{expression(model, of)} | null"
        case m.ListOf(item):
            inner = expression(model, item)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        case m.MapOf(value):
            return f"Record<string, {expression(model, value)}>"
        case m.Scalar(kind):
            return SCALARS[kind]


def literal(value: str | bool) -> str:
    """A constant; a text has single quotes."""
    if not isinstance(value, str):
        return json.dumps(value)
    return "'" + json.dumps(value, ensure_ascii=False)[1:-1].replace("'", "\\'") + "'"


# ---- operations ----


def operations(model: m.Model) -> str:
    """The text of `operations.ts`."""
    made = [one for one in model.operations if one.name != OF_THE_LOOP]
    names = sorted({one.request for one in made} | {one.reply for one in made})
    imports = "".join(f"  {name},\n" for name in names)
    listed = "".join(f"\n  | '{one.name}'" for one in model.operations)
    return (
        f"{m.NOTICE}import type {{\n{imports}}} from './types.js';\n\n"
        "/** The names of the operations in C, without the prefix. */\n"
        f"export type OperationName ={listed};\n\n"
        "/** One method for every operation of the library that an app calls. */\n"
        "export abstract class Operations {\n"
        "  /** Make a call: the reply, or a `HoldfastError`. */\n"
        "  protected abstract call(name: OperationName, request?: object): Promise<unknown>;\n\n"
        + "\n".join(method(model, one) for one in made)
        + "}\n"
    )


def method(model: m.Model, one: m.Operation) -> str:
    """The method of an operation."""
    parameter = f"request{'?' if one.optional else ''}: {one.request}"
    head = f"  {m.camel(one.name)}({parameter}): Promise<{one.reply}> {{\n"
    body = f"    return this.call('{one.name}', request) as Promise<{one.reply}>;\n  }}\n"
    return described(model, one) + head + body


def described(model: m.Model, one: m.Operation) -> str:
    """What an editor shows: the description, the errors, an example."""
    lines = [one.about]
    if one.errors:
        lines += ["", "@throws HoldfastError with these codes, among others:"]
        lines += [f"- `{code}`: {model.errors.get(code, '')}" for code in one.errors]
    for example in one.examples[:1]:
        given = "" if not example.request else script(example.request)
        call = f"await app.{m.camel(one.name)}({given});"
        lines += ["", "@example", "```ts", call]
        lines += [] if example.reply is None else [f"// {script(example.reply)}"]
        lines += ["```"]
    return block(lines, 2)


def script(value: object) -> str:
    """A JSON value as JavaScript, on one line."""
    if isinstance(value, dict):
        inner = ", ".join(
            f"{key if key.isidentifier() else literal(key)}: {script(one)}"
            for key, one in value.items()
        )
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(script(one) for one in value)}]"
    return literal(value) if isinstance(value, str) else json.dumps(value)


# ---- comments ----


def comment(text: str, indent: int = 0) -> str:
    """A comment for a declaration; empty without a text."""
    return block([text], indent) if text else ""


def block(lines: list[str], indent: int) -> str:
    """A comment of these lines, however long: an editor wraps them."""
    space = " " * indent
    body = f"\n{space} * ".join(line.replace("*/", "* /") for line in lines)
    return f"{space}/** {body} */\n"
