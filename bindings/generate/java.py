"""Java and Kotlin: the types in the class `Types`, and the operations in `Operations.java`.

One import, `org.holdfast.Types.*`, brings every type. Replies are classes that cannot be changed
and ignore what they do not know. Requests are filled by chained calls. The base classes
`OpenRecord`, `ClosedRecord` and `OpenCode` are written by hand. Kotlin has the same types, whose
annotations tell it what may be null, and the operations as suspend functions.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
from collections.abc import Iterable

import model as m

ROOT = "bindings/jvm/generated/java/org/holdfast"
KOTLIN = "bindings/jvm/generated/kotlin/org/holdfast/kotlin/AsyncOperations.kt"

SCALARS = {
    "string": ("String", "String"),
    "boolean": ("boolean", "Boolean"),
    "integer": ("long", "Long"),
    "number": ("double", "Double"),
    "null": ("Object", "Object"),
    "any": ("Object", "Object"),
}
#: The method of OpenRecord that reads a scalar.
READERS = {"string": "string", "boolean": "flag", "integer": "integer", "number": "number"}


def files(model: m.Model) -> dict[str, str]:
    """The types and the operations."""
    return {
        f"{ROOT}/Types.java": types(model),
        f"{ROOT}/Operations.java": operations(model),
        KOTLIN: suspending(model),
    }


# ---- types ----


def types(model: m.Model) -> str:
    """The text of `Types.java`."""
    made = Types(model)
    classes = (
        textwrap.indent(made.nested(one), "  ")
        for one in model.definitions.values()
        if isinstance(one.shape, m.Record | m.Codes | m.Union)
    )
    return (
        f"{m.NOTICE}package org.holdfast;\n\nimport java.util.List;\nimport java.util.Map;\n"
        "import org.jetbrains.annotations.NotNull;\nimport org.jetbrains.annotations.Nullable;\n\n"
        "/** Requests, replies, notices and their parts, each a class of the schema's name. */\n"
        "public final class Types {\n  private Types() {}\n\n" + "\n".join(classes) + "}\n"
    )


class Types:
    """The classes of requests and replies."""

    def __init__(self, model: m.Model) -> None:
        """Takes the whole schema."""
        self._model = model

    def nested(self, one: m.Definition) -> str:
        """The class of a definition."""
        match one.shape:
            case m.Record() as record:
                return self._closed(one, record) if record.closed else self._open(one, record)
            case m.Codes() as codes:
                return self._open_codes(one, codes) if codes.open else self._enum(one, codes)
            case m.Union() as union:
                return self._union(one, union)
            case _:
                raise ValueError(f"{one.name} has no class of its own")

    # -- codes --

    def _enum(self, one: m.Definition, codes: m.Codes) -> str:
        constants = ",\n".join(f"  {constant(value)}({literal(value)})" for value in codes.values)
        return (
            f"{javadoc(one.about)}public enum {one.name} implements Code {{\n{constants};\n\n"
            "  private final String value;\n\n"
            f"  {one.name}(String value) {{\n    this.value = value;\n  }}\n\n"
            "  @Override\n  @NotNull\n  public String value() {\n    return value;\n  }\n}\n"
        )

    def _open_codes(self, one: m.Definition, codes: m.Codes) -> str:
        names = [constant(value) for value in codes.values]
        if "UNKNOWN" in names:
            raise ValueError(f"{one.name} has the code unknown, which means something else here")
        constants = "".join(
            javadoc(self._model.errors.get(value, "") if one.name == "ErrorCode" else "", 2)
            + f"  public static final {one.name} {name} = "
            + f"new {one.name}({literal(value)}, Known.{name});\n"
            for value, name in zip(codes.values, names, strict=True)
        )
        known = "".join(f"    {name},\n" for name in names)
        cases = "".join(
            f"      case {literal(value)}: return {name};\n"
            for value, name in zip(codes.values, names, strict=True)
        )
        about = f"{one.about} A later version of the library may have other values.".strip()
        return (
            f"{javadoc(about)}public static final class {one.name} extends OpenCode {{\n"
            f"{constants}\n"
            "  /** The values that this version knows, for a switch. */\n"
            f"  public enum Known {{\n{known}"
            "    /** A value of a later version. */\n    UNKNOWN\n  }\n\n"
            "  private final Known known;\n\n"
            f"  private {one.name}(String value, Known known) {{\n"
            "    super(value);\n    this.known = known;\n  }\n\n"
            "  /** The value with this text; an unknown text is kept. */\n"
            f"  @NotNull\n  public static {one.name} of(@NotNull String value) {{\n"
            f"    switch (value) {{\n{cases}"
            f"      default: return new {one.name}(value, Known.UNKNOWN);\n"
            "    }\n  }\n\n"
            "  /** The value as a constant of an enumeration. */\n"
            "  @NotNull\n  public Known known() {\n    return known;\n  }\n}\n"
        )

    # -- records --

    def _closed(self, one: m.Definition, record: m.Record) -> str:
        required = [field for field in record.fields if field.required]
        notes = [annotated(self._model, field, beside=True) for field in required]
        parameters = ", ".join(
            f"{note}{self._taken(field.type)} {m.camel(field.name)}"
            for note, field in zip(notes, required, strict=True)
        )
        body = "".join(
            f"    require({literal(field.name)}, {m.camel(field.name)});\n" for field in required
        )
        about = [f"@param {m.camel(field.name)} {escaped(field.long_about)}" for field in required]
        doc = javadoc("With the required fields." if required else "Empty.", 2, about)
        setters = "".join(self._setter(one.name, field) for field in record.fields)
        return (
            f"{javadoc(one.about)}public static final class {one.name} extends ClosedRecord"
            f"{self._implemented(one.name)} {{\n"
            f"{doc}  public {one.name}({parameters}) {{\n{body}  }}\n{setters}}}\n"
        )

    def _setter(self, owner: str, field: m.Field) -> str:
        if field.required:
            return ""
        name = m.camel(field.name)
        method = "put" if isinstance(field.type, m.Nullable) else "set"
        return (
            f"\n{javadoc(field.long_about + field.default_text, 2)}  @NotNull\n"
            f"  public {owner} {name}(@Nullable {self._taken(field.type, boxed=True)} {name}) {{\n"
            f"    {method}({literal(field.name)}, {name});\n    return this;\n  }}\n"
        )

    def _open(self, one: m.Definition, record: m.Record) -> str:
        name = one.name
        fields = record.fields
        members = "".join(
            f"  private final {self._type(field)} {m.camel(field.name)};\n" for field in fields
        )
        reads = "".join(f"    {m.camel(field.name)} = {self._read(field)};\n" for field in fields)
        getters = "".join(self._getter(field) for field in fields)
        shown = "".join(
            f"    describe(text, {literal(field.name)}, {m.camel(field.name)});\n"
            for field in fields
            if self._public(field.type)
        )
        extra = ""
        if record.extra is not None:
            names = ", ".join(literal(field.name) for field in fields)
            extra = (
                "\n  /** The other fields, by their names: the columns. */\n  @NotNull\n"
                f"  public Map<String, Object> getColumns() {{\n    return others({names});\n  }}\n"
            )
        return (
            f"{javadoc(one.about)}public static final class {name} extends OpenRecord"
            f"{self._implemented(name)} {{\n{members}\n"
            f"  private {name}(Map<String, ?> json) {{\n    super(json);\n{reads}  }}\n\n"
            "  /** Reads the fields; IllegalArgumentException: one is missing or wrong. */\n"
            f"  @NotNull\n  public static {name} of(@NotNull Map<String, ?> json) {{\n"
            f"    return new {name}(json);\n  }}\n{getters}{extra}\n"
            f"  @Override\n  void describe(StringBuilder text) {{\n{shown}  }}\n}}\n"
        )

    def _getter(self, field: m.Field) -> str:
        return (
            f"\n{javadoc(field.long_about, 2)}{annotated(self._model, field)}"
            f"  public {self._type(field)} get{m.pascal(field.name)}() {{\n"
            f"    return {m.camel(field.name)};\n  }}\n"
        )

    # -- unions --

    def _union(self, one: m.Definition, union: m.Union) -> str:
        if not union.open:
            return f"{javadoc(one.about)}public interface {one.name} extends Request {{}}\n"
        getters = "".join(
            f"{javadoc(field.long_about, 2)}{annotated(self._model, field)}"
            f"  {self._type(field)} get{m.pascal(field.name)}();\n\n"
            for field in self._common(union)
        )
        if union.tag:
            cases = "".join(
                f"      case {literal(self._model.tag_of(union, choice.name))}:"
                f" return {choice.name}.of(json);\n"
                for choice in union.choices
            )
            other = union.other or "Unknown"
            body = (
                f"    switch (String.valueOf(json.get({literal(union.tag)}))) {{\n{cases}"
                f"      default: return {other}.of(json);\n    }}\n"
            )
        else:
            tests = "".join(
                f"    if (json.containsKey({literal(choice.mark)}))"
                f" return {choice.name}.of(json);\n"
                for choice in union.choices
            )
            body = f"{tests}    return Unknown.of(json);\n"
        unknown = "" if union.tag and union.other else UNKNOWN.format(name=one.name)
        return (
            f"{javadoc(one.about)}public interface {one.name} {{\n{getters}"
            "  /** All fields as they came, as JSON values; cannot be changed. */\n"
            "  @NotNull\n  Map<String, Object> toMap();\n\n"
            "  /** Reads the record that the fields belong to. */\n"
            f"  @NotNull\n  static {one.name} of(@NotNull Map<String, ?> json) {{\n{body}  }}\n"
            f"{unknown}}}\n"
        )

    def _common(self, union: m.Union) -> list[m.Field]:
        """The fields that every choice has with the same type in Java, and an unknown one, too."""
        if union.other is None:
            return []
        fields = [self._model.record(name).fields for name in union.names]
        records = [{field.name: field for field in each} for each in fields]
        return [
            field
            for field in records[-1].values()
            if all(
                field.name in other and self._type(other[field.name]) == self._type(field)
                for other in records
            )
        ]

    def _implemented(self, name: str) -> str:
        unions = [one.name for one, union in self._model.unions() if name in union.names]
        return f" implements {', '.join(unions)}" if unions else ""

    # -- types of fields --

    def _type(self, field: m.Field) -> str:
        """The type of a getter."""
        return java_type(self._model, field.type, boxed=not field.required)

    def _taken(self, one: m.Type, *, boxed: bool = False) -> str:
        """The type of a parameter: any map and any iterable will do."""
        taken = java_type(self._model, one, boxed=boxed)
        return taken.replace("Map<String, Object>", "Map<String, ?>").replace("List<", "Iterable<")

    def _read(self, field: m.Field) -> str:
        """The expression that reads a field."""
        one, required = field.type, field.required
        if isinstance(one, m.Nullable):
            one, required = one.of, False
        if isinstance(one, m.Scalar) and one.kind not in READERS:
            required = False  # null is one of the values
        how = "required" if required else "optional"
        return f"{how}({literal(field.name)}, {self._reading(one)})"

    def _reading(self, one: m.Type) -> str:
        """The function that reads a value."""
        match one:
            case m.Scalar(kind):
                return f"OpenRecord::{READERS.get(kind, 'any')}"
            case m.Constant():
                return f"OpenRecord::{READERS[one.kind]}"
            case m.ListOf(item):
                return f"list({self._reading(item)})"
            case m.MapOf(value):
                return f"map({self._reading(value)})"
            case m.Reference(name):
                shape = self._model.definitions[name].shape
                if isinstance(shape, m.Record | m.Union):
                    return f"one -> {name}.of(object(one))"
                if isinstance(shape, m.Codes):
                    return f"one -> {name}.of(string(one))"
                return self._reading(shape)
        raise ValueError(f"no reading for {one}")

    def _public(self, one: m.Type) -> bool:
        """Whether a log may have the value: a code, a number, a flag, or a record of such."""
        if isinstance(one, m.Nullable):
            return self._public(one.of)
        resolved = self._model.resolved(one)
        if isinstance(resolved, m.Scalar):
            return resolved.kind in {"boolean", "integer", "number"}
        return isinstance(resolved, m.Codes | m.Constant | m.Record | m.Union)


UNKNOWN = """
  /** None of the records that this version knows. */
  final class Unknown extends OpenRecord implements {name} {{
    private Unknown(Map<String, ?> json) {{
      super(json);
    }}

    /** Keeps the fields. */
    @NotNull
    public static Unknown of(@NotNull Map<String, ?> json) {{
      return new Unknown(json);
    }}

    @Override
    void describe(StringBuilder text) {{}}
  }}
"""


def java_type(model: m.Model, one: m.Type, *, boxed: bool = False) -> str:
    """The type of a value."""
    match one:
        case m.Nullable(of):
            return java_type(model, of, boxed=True)
        case m.ListOf(item):
            return f"List<{java_type(model, item, boxed=True)}>"
        case m.MapOf(value):
            return f"Map<String, {java_type(model, value, boxed=True)}>"
        case m.Scalar(kind):
            return SCALARS[kind][boxed]
        case m.Constant():
            return SCALARS[one.kind][boxed]
        case m.Reference(name):
            shape = model.definitions[name].shape
            if isinstance(shape, m.Record | m.Codes | m.Union):
                return name
            return java_type(model, shape, boxed=boxed)
        case m.Codes() | m.Union():
            raise ValueError("codes and unions have names")


def annotated(model: m.Model, field: m.Field, *, beside: bool = False) -> str:
    """Whether a value may be null, for Kotlin: on a line of its own, or beside a parameter."""
    if field.required and java_type(model, field.type) in {"boolean", "long", "double"}:
        return ""
    is_nullable = not field.required or isinstance(field.type, m.Nullable)
    word = "@Nullable" if is_nullable else "@NotNull"
    return f"{word} " if beside else f"  {word}\n"


# ---- operations ----


def operations(model: m.Model) -> str:
    """The text of `Operations.java`."""
    methods = "".join(method(model, one) for one in model.operations)
    return (
        f"{m.NOTICE}package org.holdfast;\n\nimport java.util.Map;\nimport org.holdfast.Types.*;\n"
        "import org.jetbrains.annotations.NotNull;\n\n"
        "/** One method for each operation. They throw {@link HoldfastException}. */\n"
        "public abstract class Operations {\n"
        "  Operations() {}\n\n"
        "  /** Makes a call; the reply's fields. */\n"
        f"  abstract Map<String, Object> call(String operation, Request request);\n{methods}}}\n"
    )


def method(model: m.Model, one: m.Operation) -> str:
    """The method of an operation; a second one without a request that may be omitted."""
    reply, returned = one.reply, f"return {one.reply}.of(call({literal(one.name)}, %s));"
    annotation = "  @NotNull\n"
    if reply == "EmptyReply":
        reply, returned, annotation = "void", f"call({literal(one.name)}, %s);", ""
    errors = [f"<li>{code}: {escaped(model.errors.get(code, ''))}" for code in one.errors]
    doc = javadoc(one.about, 2, ["<p>Errors:", "<ul>", *errors, "</ul>"] if errors else [])
    head = f"\n{doc}{annotation}  public {reply} {m.camel(one.name)}("
    plain = f"{head}) {{\n    {returned % 'null'}\n  }}\n" if one.optional else ""
    if one.request == "Empty":
        return plain
    return plain + f"{head}@NotNull {one.request} request) {{\n    {returned % 'request'}\n  }}\n"


def suspending(model: m.Model) -> str:
    """The text of `AsyncOperations.kt`."""
    functions = "".join(function(one) for one in model.operations)
    return (
        f"{m.NOTICE}package org.holdfast.kotlin\n\nimport org.holdfast.Holdfast\n"
        "import org.holdfast.Types.*\n\n"
        "/** The operations of [AsyncHoldfast]. They throw HoldfastException. */\n"
        "abstract class AsyncOperations internal constructor() {\n"
        "  /** Makes a call on a thread that may block. */\n"
        "  internal abstract suspend fun <Reply> on(call: Holdfast.() -> Reply): Reply\n"
        f"{functions}}}\n"
    )


def function(one: m.Operation) -> str:
    """The suspend function of an operation."""
    name, reply = m.camel(one.name), "Unit" if one.reply == "EmptyReply" else one.reply
    default = f" = {one.request}()" if one.optional else ""
    parameter = "" if one.request == "Empty" else f"request: {one.request}{default}"
    given = "request" if parameter else ""
    about = one.about.replace("*/", "*&#47;").replace("[", "\\[")
    head = f"\n  /** {about} */\n  suspend fun {name}({parameter}): {reply}"
    return f"{head} = on {{ {name}({given}) }}\n"


# ---- text ----


def constant(code: str) -> str:
    """The name of a constant: queue.not_found is QUEUE_NOT_FOUND."""
    return code.replace(".", "_").upper()


def literal(value: str) -> str:
    """A string literal."""
    return json.dumps(value)


def javadoc(text: str, indent: int = 0, more: Iterable[str] = ()) -> str:
    """A doc comment, or nothing; `more` are further lines, as HTML."""
    if not text:
        return ""
    lines = f"\n{' ' * indent} * ".join([escaped(text), *more])
    return f"{' ' * indent}/** {lines} */\n"


def escaped(text: str) -> str:
    """A text as HTML. Nothing in it ends the comment."""
    safe = html.escape(text, quote=False).replace("*/", "*&#47;").replace("\\", "&#92;")
    return re.sub("`([^`{}]+)`", r"{@code \1}", safe)
