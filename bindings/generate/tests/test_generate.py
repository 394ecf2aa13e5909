"""The generated files are current, and the model refuses what it does not know."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "include" / "holdfast.schema.json"
sys.path.insert(0, str(ROOT / "bindings" / "generate"))

from model import (  # noqa: E402
    Codes,
    Constant,
    MapOf,
    Model,
    Nullable,
    Reader,
    Reference,
    Scalar,
    Union,
)


def generate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "bindings" / "generate"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def listed() -> list[str]:
    return generate("--list").stdout.split()


@pytest.fixture(scope="session")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return loaded


@pytest.fixture(scope="session")
def model() -> Model:
    return Model.load(SCHEMA)


# ---- files ----


def test_generated_files_are_current() -> None:
    done = generate("--check")
    assert done.returncode == 0, done.stderr


def test_a_change_of_the_schema_changes_the_files_of_every_language(
    schema: dict[str, Any], tmp_path: Path
) -> None:
    """A writer that ignores fields or operations would pass `--check` for ever."""
    changed = json.loads(json.dumps(schema))
    changed["$defs"]["QueueGetRequest"]["properties"]["color"] = {
        "type": "string",
        "description": "A new field.",
    }
    changed["x-operations"]["queue_paint"] = {
        **schema["x-operations"]["queue_get"],
        "description": "A new operation.",
    }
    other = tmp_path / "schema.json"
    other.write_text(json.dumps(changed), encoding="utf-8")
    assert generate("--schema", other, "--root", tmp_path).returncode == 0
    different = {
        name.rpartition("/")[0]
        for name in listed()
        if (tmp_path / name).read_bytes() != (ROOT / name).read_bytes()
    }
    assert different == {name.rpartition("/")[0] for name in listed()}
    # Of those in git, the check says so.
    done = generate("--check", "--schema", other)
    assert done.returncode == 1
    assert {line.split(" ")[0] for line in done.stderr.splitlines()} < set(listed())


def test_the_generator_writes_what_it_lists(tmp_path: Path) -> None:
    assert generate("--root", tmp_path).returncode == 0
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == set(listed())
    assert all((tmp_path / name).read_bytes() == (ROOT / name).read_bytes() for name in written)


@pytest.mark.parametrize("name", listed())
def test_a_generated_file_says_so_and_names_the_schema(name: str) -> None:
    head = (ROOT / name).read_text(encoding="utf-8")[:400]
    assert "bindings/generate" in head
    assert "holdfast.schema.json" in head


def test_a_description_cannot_end_a_comment(schema: dict[str, Any], tmp_path: Path) -> None:
    changed = json.loads(json.dumps(schema))
    changed["$defs"]["Counts"]["description"] = "Ends */ here"
    other = tmp_path / "schema.json"
    other.write_text(json.dumps(changed), encoding="utf-8")
    assert generate("--schema", other, "--root", tmp_path).returncode == 0
    written = (tmp_path / "bindings/node/src/types.ts").read_text(encoding="utf-8")
    assert "/** Ends * / here */\nexport interface Counts" in written


# ---- the model ----


def test_every_definition_and_operation_of_the_schema_is_in_the_model(
    schema: dict[str, Any], model: Model
) -> None:
    named = {name for name, one in model.definitions.items() if not one.inner}
    assert named == set(schema["$defs"])
    assert model.open is not None
    assert {one.name for one in model.operations} | {"open"} == set(schema["x-operations"])


def test_requests_are_closed_and_replies_are_open(model: Model) -> None:
    for one in model.operations:
        for name, closed in ((one.request, True), (one.reply, False)):
            shape = model.resolved(Reference(name))
            names = (
                [choice.name for choice in shape.choices] if isinstance(shape, Union) else [name]
            )
            assert all(model.record(record).closed is closed for record in names), name


def test_notices_have_a_tag_and_a_record_for_unknown_ones(model: Model) -> None:
    notice = model.definitions["Notice"].shape
    assert isinstance(notice, Union)
    assert (notice.tag, notice.other, notice.open) == ("type", "OtherNotice", True)
    assert model.tag_of(notice, "ItemParkedNotice") == "item_parked"
    types = model.definitions["NoticeType"].shape
    assert isinstance(types, Codes)
    assert [model.tag_of(notice, one.name) for one in notice.choices] == list(types.values)


def test_codes_inside_a_field_get_a_name(model: Model) -> None:
    one = model.definitions["SessionLogoutRequestScope"]
    assert one.inner
    assert one.shape == Codes(("local", "global"), open=False)


def test_a_field_has_what_the_schema_says_of_it(model: Model) -> None:
    fields = {one.name: one for one in model.record("Config").fields}
    assert fields["data_dir"].required
    assert not fields["locale"].required
    assert fields["locale"].default == '"en"'
    assert fields["policy"].about == "Limits that an organisation sets."
    assert fields["routes"].type == MapOf(Reference("RoleRoutes"))
    assert model.record("HttpAnswer").fields[3].type == Nullable(Scalar("string"))
    assert model.record("RouteAllowed").fields[0].type == Constant(value=True)
    assert model.record("Contact").extra == Scalar("any")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"propertyNames": {"pattern": "x"}, "type": "object"}, "does not know propertyNames"),
        ({"type": ["string", "integer"]}, "lists of a type and null"),
        ({"const": 0}, "constants that are texts or flags"),
        ({"const": None}, "constants that are texts or flags"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "unions of records"),
        ({"type": "object", "properties": {}}, "whether it is closed"),
        ({"$ref": "#/$defs/Counts"}, "contains itself"),
        (
            {"anyOf": [{"$ref": "#/$defs/AsOf"}, {"$ref": "#/$defs/Banner"}]},
            "no required field tells AsOf",
        ),
    ],
)
def test_the_model_refuses_a_form_that_it_does_not_know(
    schema: dict[str, Any], change: dict[str, Any], message: str
) -> None:
    changed = json.loads(json.dumps(schema))
    changed["$defs"]["Counts"]["properties"]["pending"] = change
    with pytest.raises(ValueError, match=message):
        Reader(changed).model()
