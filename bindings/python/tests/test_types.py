"""Every definition of the schema has its type, and every function of the header has its method."""

from __future__ import annotations

import json
import re
from pathlib import Path

import holdfast.types
from holdfast import Holdfast
from holdfast.operations import OPERATIONS

ROOT = Path(__file__).resolve().parents[3]


def test_every_json_function_of_the_header_has_a_method() -> None:
    header = (ROOT / "include" / "holdfast.h").read_text(encoding="utf-8")
    form = r"holdfast_(\w+)\(holdfast \*self, const char \*request,\s+char \*\*reply\);"
    declared = set(re.findall(form, header))
    assert declared == set(OPERATIONS)
    assert all(callable(getattr(Holdfast, name)) for name in declared)


def test_every_definition_of_the_schema_has_a_type() -> None:
    schema = json.loads((ROOT / "include" / "holdfast.schema.json").read_text(encoding="utf-8"))
    assert set(schema["$defs"]) <= set(holdfast.types.__all__)
