"""docs/reference.md has what the headers, the schema and the core have."""

from __future__ import annotations

import json
import re

import pytest

from pages import ROOT, anchors

TEXT = (ROOT / "docs/reference.md").read_text("utf-8")
SCHEMA = json.loads((ROOT / "include/holdfast.schema.json").read_text("utf-8"))
DEFINITIONS = SCHEMA["$defs"]
HEADERS = [
    "include/holdfast.h",
    "Sources/HoldfastHTTP/include/holdfast_http.h",
    "Sources/HoldfastKeys/include/holdfast_keys.h",
]


def test_every_function_has_a_section() -> None:
    headings = anchors(TEXT)
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", "", (ROOT / header).read_text("utf-8"), flags=re.DOTALL)
        names = re.findall(r"\b(holdfast_\w+)\s*\((?!\s*\*)[^;{]*\)\s*;", text)
        assert len(names) >= 5
        assert set(names) - headings == set()


@pytest.mark.parametrize(
    "name",
    [
        "ErrorCode",
        "NoticeType",
        "AnswerTo",
        "BannerCode",
        "ScreenCode",
        "ExplainCode",
        "Screen",
        "Purpose",
        "ItemState",
    ],
)
def test_the_reference_names_every_value_of_the_schema(name: str) -> None:
    values = DEFINITIONS[name].get("enum", DEFINITIONS[name].get("x-known-values"))
    missing = [word for word in values if f"`{word}`" not in TEXT]
    assert missing == []


def test_every_error_is_explained() -> None:
    assert set(SCHEMA["x-errors"]) == set(DEFINITIONS["ErrorCode"]["x-known-values"])
    for code in SCHEMA["x-errors"]:
        assert re.search(
            rf"^\| `{re.escape(code)}` \| [A-Z_]+ \| (yes)? \| .+ \|$", TEXT, flags=re.MULTILINE
        ), code


def test_every_setting_is_explained() -> None:
    for name in ("Config", "Policy", "ContactsMapping", "AuthMethodConfig", "RoleRoutes"):
        for key, field in DEFINITIONS[name]["properties"].items():
            shape = DEFINITIONS.get(field.get("$ref", "").rsplit("/", 1)[-1], {})
            said = {"description", "default", "enum"} & (field.keys() | shape.keys())
            assert said, f"{name}.{key}"


def test_the_defaults_of_the_policy_match_the_core() -> None:
    swift = (ROOT / "Sources/Engine/Configuration.swift").read_text("utf-8")
    limits = swift.split("public struct Limits", 1)[1].split("\n}", 1)[0]
    found = dict(re.findall(r"public var (\w+)(?:: \w+)? = ([\w.]+)", limits))
    for key, field in DEFINITIONS["Policy"]["properties"].items():
        stem = re.sub(r"_(s|ms)$", "", key)
        first, *rest = stem.split("_")
        name = first + "".join(word.capitalize() for word in rest)
        value = found.pop(name + "MS" if key != stem else name).lstrip(".").replace("_", "")
        expected = field["default"] * 1000 if key.endswith("_s") else field["default"]
        assert value.lower() == str(expected).lower().replace("_", ""), key
    assert found == {}


def test_every_reason_of_a_session_end_is_named() -> None:
    swift = (ROOT / "Sources/Policy/AuthClassification.swift").read_text("utf-8")
    cases = swift.split("enum EndReason", 1)[1].split("\n}", 1)[0]
    reasons = set(re.findall(r'case \w+ = "(\w+)"', cases))
    assert len(reasons) == 7
    about = DEFINITIONS["SessionEndedNotice"]["properties"]["reason"]["description"]
    assert {reason for reason in reasons if reason not in about} == set()


def test_every_number_among_the_policies_says_when_to_raise_it() -> None:
    numbers = [
        (key, policy)
        for key, policy in DEFINITIONS["Policy"]["properties"].items()
        if type(policy.get("default")) is int
    ]
    assert len(numbers) == 9
    assert [key for key, policy in numbers if "Raise it for" not in policy["description"]] == []
