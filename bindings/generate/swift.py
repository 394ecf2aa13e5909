"""Swift: the types of HoldfastKit, and the operations of `Holdfast`.

Names are Swift's: fields in camelCase, and an instant without its `_ms`, because it has a type of
its own. Swift makes the coding: requests are Encodable, replies Decodable. The files are in git, so
there is nothing in them that a user of Swift does not see: a request is the parameters of its
method, and what comes in several shapes is one record with optional fields.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import model as m

Fields = tuple[m.Field, ...]

FOLDER = "bindings/swift/Sources/HoldfastKit/Generated"

HEAD = f"{m.NOTICE}// swift-format-ignore-file\n\n"
SCALARS = {
    "string": "String",
    "boolean": "Bool",
    "integer": "Int",
    "number": "Double",
    "any": "JSON",
}
RENAMED = {"NextReply": "Next"}
#: Types that are written by hand.
BY_HAND = {"Instant", "Error", "Empty", "EmptyReply"}
#: Operations that are: an unlock shows the prompt before, and only the sender completes a request.
METHODS_BY_HAND = {"session_unlock", "complete"}
#: The reply to these may be of no interest.
ACTS = {"queue_add", "queue_edit", "queue_cancel", "queue_retry", "session_logout", "sync_now"}
#: What else is read or written than the requests and replies of operations.
ROOTS = ("Config", "OpenReply", "NextReply", "TransportError", "ErrorCode")
#: Words that Swift keeps for itself: as a name they stand in backticks.
RESERVED = {
    *("associatedtype", "class", "deinit", "enum", "extension", "fileprivate", "func", "import"),
    *("init", "inout", "internal", "let", "open", "operator", "private", "precedencegroup"),
    *("protocol", "public", "rethrows", "static", "struct", "subscript", "typealias", "var"),
    *("break", "case", "catch", "continue", "default", "defer", "do", "else", "fallthrough", "for"),
    *("guard", "if", "in", "repeat", "return", "throw", "switch", "where", "while", "Any", "as"),
    *("await", "false", "is", "nil", "self", "Self", "super", "throws", "true", "try"),
}


def files(model: m.Model) -> dict[str, str]:
    """The files that are made from the schema."""
    swift = Swift(model)
    texts = {
        "Codes": swift.every(swift.codes),
        "Types": swift.every(swift.shape),
        "Operations": swift.operations(),
    }
    return {f"{FOLDER}/{name}.swift": HEAD + text for name, text in texts.items()}


def examples(model: m.Model) -> str:
    """A program with every call of the comments, for the compiler."""
    swift = Swift(model)
    calls = "".join(f"  _ = {text}\n" for one in swift.methods() if (text := swift.example(one)))
    return (
        "import HoldfastKit\n\n"
        "/// Never called: the compiler checks the examples of the comments.\n"
        f"func examplesOfTheComments(_ app: Holdfast) async throws {{\n{calls}}}\n"
    )


class Swift:
    """Writes Swift for a model."""

    def __init__(self, model: m.Model) -> None:
        """Takes the whole schema."""
        self._model = model
        self._used: set[str] = set()
        for root in ROOTS:
            self._use(m.Reference(root))
        for one in self.methods():
            self._use(m.Reference(one.reply))
            for record in self._requests(one):
                for field in record.fields:
                    self._use(field.type)

    def _use(self, one: m.Record | m.Type) -> None:
        """Note the definitions that a type consists of."""
        match one:
            case m.Reference(name):
                self._used.add(name)
                self._use(self._model.definitions[name].shape)
            case m.Record() | m.Union():
                for field in self.fields(one):
                    self._use(field.type)
            case m.ListOf(of) | m.MapOf(of) | m.Nullable(of):
                self._use(of)
            case m.Scalar() | m.Constant() | m.Codes():
                pass

    def every(self, write: Callable[[m.Definition], str]) -> str:
        """The texts of all definitions, from a method that leaves out what it does not write."""
        used = [one for one in self._model.definitions.values() if one.name in self._used]
        texts = [write(one) for one in used if one.name not in BY_HAND]
        return "\n".join(text for text in texts if text)

    # ---- names and types ----

    def name(self, name: str) -> str:
        """The name of a definition."""
        return RENAMED.get(name, name)

    def type(self, one: m.Type) -> str:
        """The type expression of a type."""
        match one:
            case m.Reference(name):
                shape = self._model.definitions[name].shape
                named = isinstance(shape, m.Record | m.Codes | m.Union | m.MapOf) or name in BY_HAND
                return self.name(name) if named else self.type(shape)  # type: ignore[arg-type]
            case m.Scalar(kind):
                return SCALARS[kind]
            case m.Constant():
                return SCALARS[one.kind]
            case m.ListOf(item):
                return f"[{self.type(item)}]"
            case m.MapOf(value):
                return f"[String: {self.type(value)}]"
            case m.Nullable(of):
                return f"{self.type(of)}?"
            case m.Codes() | m.Union():
                raise ValueError(f"{one} has no name")

    def field(self, field: m.Field) -> str:
        """The name of a field."""
        return identifier(self.label(field))

    def label(self, field: m.Field) -> str:
        """The name of a field, as it stands before a colon."""
        of = field.type.of if isinstance(field.type, m.Nullable) else field.type
        instant = isinstance(of, m.Reference) and of.name == "Instant"
        return m.camel(field.name.removesuffix("_ms") if instant else field.name)

    def member(self, field: m.Field, *, closed: bool) -> str:
        """The type of a field: an absent one is nil, which is not null in a request."""
        if closed and isinstance(field.type, m.Nullable):
            if field.required:
                raise ValueError(f"{field.name}: a request cannot have a required field with null")
            return f"OrNull<{self.type(field.type.of)}>?"
        kind = self.type(field.type)
        return kind if field.required or kind.endswith("?") else f"{kind}?"

    # ---- codes ----

    def codes(self, one: m.Definition) -> str:
        """Codes, and the names of maps."""
        about = comment(one.about)
        if isinstance(one.shape, m.MapOf):
            return f"{about}public typealias {one.name} = {self.type(one.shape)}\n"
        if not isinstance(one.shape, m.Codes):
            return ""
        if not one.shape.open:
            cases = [self.coded(self.case(one, code), code) for code in one.shape.values]
            head = f"{about}public enum {one.name}: String, Codable, Sendable, CaseIterable"
            return f"{head} {{ case {', '.join(cases)} }}\n"
        values = [
            (f"{self.case(one, code)}: Self = {literal(code)}", code) for code in one.shape.values
        ]
        if one.name == "ErrorCode":
            body = "".join(
                commented(self._model.errors.get(code, ""), f"public static let {value}", 2)
                for value, code in values
            )
        else:
            body = f"  public static let {', '.join(value for value, _ in values)}\n"
        return (
            f"{about}public struct {one.name}: OpenCode {{\n"
            "  public let rawValue: String; "
            "public init(rawValue: String) { self.rawValue = rawValue }\n"
            f"{body}}}\n"
        )

    def case(self, one: m.Definition, code: str) -> str:
        """The name of a code."""
        name = m.camel(code)
        if name in {"rawValue", "allCases"}:
            raise ValueError(f"{one.name} has the code {code}")
        return identifier(name)

    def coded(self, name: str, text: str) -> str:
        """A case of an enumeration of texts. Swift knows the text of one with that name."""
        return name if name.strip("`") == text else f"{name} = {literal(text)}"

    # ---- records ----

    def shape(self, one: m.Definition) -> str:
        """A record, or one of several records."""
        match one.shape:
            case m.Record(fields=fields, closed=closed, extra=extra):
                return self.record(one, fields, closed=closed, has_columns=extra is not None)
            case m.Union() as union if self.is_choice(union):
                return self.choice(one, union)
            case m.Union() as union:
                return self.record(one, self.fields(union), closed=False)
            case _:
                return ""

    def record(
        self, one: m.Definition, fields: Fields, *, closed: bool, has_columns: bool = False
    ) -> str:
        """A part of a request, which the app makes, or of a reply, which it reads."""
        word = "var" if closed else "let"
        body = "".join(
            commented(
                field.about + field.default_text,
                f"public {word} {self.field(field)}: {self.member(field, closed=closed)}",
                2,
            )
            for field in fields
        )
        if has_columns:
            body += commented("The other fields.", "public let columns: [String: JSON]", 2)
        if closed:
            body += self.initialiser(fields)
        keys = [self.coded(self.field(field), field.name) for field in fields]
        if any(" " in key for key in keys):
            body += f"  enum CodingKeys: String, CodingKey {{ case {', '.join(keys)} }}\n"
        if has_columns:
            body += self.columns(fields)
        coding = "Encodable" if closed else "Decodable"
        head = f"public struct {self.name(one.name)}: {coding}, Sendable, Hashable"
        return f"{comment(one.about)}{head} {{\n{body}}}\n"

    def initialiser(self, fields: Fields) -> str:
        """The public initialiser of a part of a request."""
        parameters = [self.parameter(field) for field in fields]
        assigned = [f"self.{self.label(field)} = {self.field(field)}" for field in fields]
        return f"  public init({', '.join(parameters)}) {{ {'; '.join(assigned)} }}\n"

    def parameter(self, field: m.Field) -> str:
        """A parameter for a field."""
        kind = self.member(field, closed=True)
        return f"{self.label(field)}: {kind}{' = nil' if kind.endswith('?') else ''}"

    def columns(self, fields: Fields) -> str:
        """The reading of a record that keeps all fields."""
        reads = "".join(
            f"    {self.label(field)} = try values.decode({self.type(field.type)}.self,"
            f" forKey: AnyKey({literal(field.name)}))\n"
            for field in fields
        )
        known = ", ".join(literal(field.name) for field in fields)
        return (
            "  public init(from decoder: any Decoder) throws {\n"
            "    let values = try decoder.container(keyedBy: AnyKey.self)\n"
            f"{reads}    columns = try values.others(than: [{known}])\n  }}\n"
        )

    # ---- unions ----

    def is_choice(self, union: m.Union) -> bool:
        """Whether each record is one field, whose name says which it is."""
        choices = [self._model.record(choice.name).fields for choice in union.choices]
        return union.tag is None and all(len(fields) == 1 for fields in choices)

    def choice(self, one: m.Definition, union: m.Union) -> str:
        """An enumeration: each field is a case."""
        fields = [self._model.record(choice.name).fields[0] for choice in union.choices]
        cases = "".join(
            commented(field.about, f"case {self.field(field)}({self.type(field.type)})", 2)
            for field in fields
        )
        reads = ""
        for field in fields:
            kind, key = self.type(field.type), self.field(field)
            how = "decodeIfPresent" if kind.endswith("?") else "decode"
            value = f"try fields.{how}({kind.removesuffix('?')}.self, forKey: .{key})"
            reads += f"    if fields.contains(.{key}) {{ self = .{key}({value}); return }}\n"
        keys = ", ".join(self.coded(self.field(field), field.name) for field in fields)
        return (
            f"{comment(one.about)}public enum {self.name(one.name)}: Decodable, Sendable, Hashable"
            f" {{\n{cases}  /** What this version does not know. */ case other\n"
            f"  enum CodingKeys: String, CodingKey {{ case {keys} }}\n"
            "  public init(from decoder: any Decoder) throws {\n"
            "    let fields = try decoder.container(keyedBy: CodingKeys.self)\n"
            f"{reads}    self = .other\n  }}\n}}\n"
        )

    def fields(self, one: m.Record | m.Union) -> Fields:
        """The fields of a record; of several, what all have is required and has their type."""
        if isinstance(one, m.Record):
            return one.fields
        fields = [self._model.record(name).fields for name in one.names]
        records = [{each.name: each for each in record} for record in fields]
        made: dict[str, m.Field] = {}
        for field in (field for record in records for field in record.values()):
            if field.name in made:
                continue
            mine = [record[field.name] for record in records if field.name in record]
            plain = {self._plain(each.type) for each in mine}
            if len(plain) > 1:
                raise ValueError(f"{one.names[0]}: {field.name} has several types")
            kind = mine[0].type if len({each.type for each in mine}) == 1 else plain.pop()
            if field.name == one.tag and one.other:
                kind = self._tags(one)
            is_required = len(mine) == len(records) and all(each.required for each in mine)
            about = field.about if field.name == one.tag else mine[-1].about
            made[field.name] = m.Field(field.name, kind, is_required, about, about, field.default)
        return tuple(made.values())

    def _plain(self, one: m.Type) -> m.Type:
        """A type without the codes that it may have."""
        match one:
            case m.Reference(name) if isinstance(self._model.definitions[name].shape, m.Codes):
                return m.Scalar("string")
            case m.Constant():
                return m.Scalar(one.kind)
            case m.ListOf(item):
                return m.ListOf(self._plain(item))
            case _:
                return one

    def _tags(self, union: m.Union) -> m.Reference:
        """The codes of a union's tags."""
        tags = tuple(self._model.tag_of(union, choice.name) for choice in union.choices)
        for one in self._model.definitions.values():
            if isinstance(one.shape, m.Codes) and one.shape.values == tags:
                return m.Reference(one.name)
        raise ValueError(f"no definition has the codes {', '.join(tags)}")

    # ---- operations ----

    def methods(self) -> Iterator[m.Operation]:
        """The operations whose methods are made here."""
        return (one for one in self._model.operations if one.name not in METHODS_BY_HAND)

    def operations(self) -> str:
        """A method for each operation."""
        methods = "\n".join(self.method(one) for one in self.methods())
        return f"extension Holdfast {{\n{methods}}}\n"

    def method(self, one: m.Operation) -> str:
        """A method for each shape of the operation's request: its fields are the parameters."""
        reply = "" if one.reply == "EmptyReply" else f" -> {self.name(one.reply)}"
        texts: list[str] = []
        for record in self._requests(one):
            parameters = [self.parameter(field) for field in record.fields]
            given = ", ".join(f"{literal(f.name)}: {self.field(f)}" for f in record.fields)
            call = f"try await ask({literal(one.name)}{f', [{given}]' if given else ''})"
            about = {self.label(f): f.about + f.default_text for f in record.fields}
            head = described(self._model, one, about, self.example(one), is_first=not texts)
            made = "@discardableResult " if one.name in ACTS else ""
            made = f"  {made}public func {identifier(m.camel(one.name))}({', '.join(parameters)})"
            texts.append(f"{head}{made} async throws(HoldfastError){reply} {{ {call} }}\n")
        return "\n".join(texts)

    def _requests(self, one: m.Operation) -> list[m.Record]:
        return [self._model.record(name) for name in self._model.forms(one.request)]

    # ---- examples ----

    def example(self, one: m.Operation) -> str | None:
        """The call of the schema's first example."""
        if not one.examples:
            return None
        given = one.examples[0].request or {}
        records = self._requests(one)
        record = next(each for each in records if given.keys() <= {f.name for f in each.fields})
        return f"try await app.{m.camel(one.name)}({self.arguments(record, given)})"

    def arguments(self, record: m.Record, given: dict[str, object]) -> str:
        """The fields of a record in their order."""
        return ", ".join(
            f"{self.label(field)}: {self.value(field.type, given[field.name])}"
            for field in record.fields
            if field.name in given
        )

    def value(self, one: m.Type, given: object) -> str:
        """A value of the schema as Swift."""
        of = one.of if isinstance(one, m.Nullable) else one
        if isinstance(given, str) and isinstance(self._model.resolved(of), m.Codes):
            return f".{m.camel(given)}"
        return literal(given)


# ---- names, literals and comments ----


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
    model: m.Model, one: m.Operation, fields: dict[str, str], example: str | None, *, is_first: bool
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


if __name__ == "__main__":
    # The tests of HoldfastKit compile the examples.
    sys.stdout.write(examples(m.Model.load(m.SCHEMA)))
