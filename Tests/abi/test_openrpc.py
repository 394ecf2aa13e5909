"""include/holdfast.openrpc.json: the operations of holdfast_call() as methods of OpenRPC 1.3."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
from holdfast.operations import OPERATIONS

from support import contract
from support.paths import HEADER

TEXT = HEADER.with_name("holdfast.openrpc.json").read_text(encoding="utf-8")
DOCUMENT: dict[str, Any] = json.loads(TEXT)
METHODS: dict[str, dict[str, Any]] = {method["name"]: method for method in DOCUMENT["methods"]}
SHAPES: dict[str, Any] = DOCUMENT["components"]["schemas"]

#: The dialect of the shapes in OpenRPC.
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
#: What OpenRPC allows in a method, besides extensions.
ALLOWED = {"name", "summary", "paramStructure", "params", "result", "errors", "examples"}


def faults(schema: dict[str, Any], value: object) -> list[Any]:
    """Why a value does not fit a schema of the document."""
    whole = {**schema, "components": DOCUMENT["components"]}
    return list(jsonschema_rs.Draft202012Validator(whole).iter_errors(value))


def test_the_document_has_the_parts_of_openrpc() -> None:
    assert set(DOCUMENT) == {"openrpc", "info", "methods", "components"}
    assert DOCUMENT["openrpc"] == "1.3.2"
    assert set(DOCUMENT["info"]) == {"title", "version", "description"}
    major, minor, patch = map(int, DOCUMENT["info"]["version"].split("."))
    number = major * 1_000_000 + minor * 1000 + patch
    assert f"#define HOLDFAST_VERSION_NUMBER {number}\n" in HEADER.read_text(encoding="utf-8")


def test_every_operation_of_a_handle_is_a_method() -> None:
    assert list(METHODS) == list(OPERATIONS)
    assert len(METHODS) == len(DOCUMENT["methods"])


def test_every_reference_resolves() -> None:
    names = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', TEXT))
    assert names <= set(SHAPES)
    assert '"#/$defs/' not in TEXT
    # Generators make a class of each: a shape without fields has no name here.
    assert all(shape["properties"] for shape in SHAPES.values())
    for shape in SHAPES.values():
        jsonschema_rs.meta.validate({"$schema": DRAFT_7, **shape})


def test_a_method_is_its_operation() -> None:
    for name in OPERATIONS:
        judge_method(name)


def judge_method(name: str) -> None:
    method, operation = METHODS[name], contract.OPERATIONS[name]
    assert set(method) - ALLOWED == {"x-request"}, name
    assert method["paramStructure"] == "by-name", name
    # Its parameters are the fields of the request
    forms = contract.forms(operation["request"]["$ref"])
    fields = {field for form in forms for field in form["properties"]}
    assert [param["name"] for param in method["params"]] == list(
        dict.fromkeys(field for form in forms for field in form["properties"])
    )
    required = set.intersection(*(set(form.get("required", ())) for form in forms))
    assert {param["name"] for param in method["params"] if param["required"]} == required, name
    assert all(param["description"] for param in method["params"]), name
    # its examples fit parameters and result, and those of the schema
    for example, original in zip(method["examples"], operation["examples"], strict=True):
        given = {param["name"]: param["value"] for param in example["params"]}
        assert given == original["request"], name
        assert given.keys() <= fields, name
        assert faults(method["x-request"], given) == [], name
        for param in method["params"]:
            if param["name"] in given:
                assert faults(param["schema"], given[param["name"]]) == [], name
        assert example["result"]["value"] == original["reply"], name
        assert faults(method["result"]["schema"], original["reply"]) == [], name
    statuses = [error["code"] for error in method["errors"]]
    assert statuses == sorted(set(statuses)), name
    codes = [code for error in method["errors"] for code in error["data"]]
    assert sorted(codes) == sorted(contract.errors_of(name)), name
    text = HEADER.read_text(encoding="utf-8")
    for error in method["errors"]:
        assert re.search(rf"#define HOLDFAST_{error['message']} {error['code']}\b", text), name


def test_a_wrong_example_would_be_found() -> None:
    method = METHODS["queue_add"]
    assert faults(method["x-request"], {"kind": "activity"}) != []
    assert faults(method["result"]["schema"], {"id": 1}) != []
