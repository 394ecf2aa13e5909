"""A client that was generated from the former schema reads what later versions add (HST-8)."""

from __future__ import annotations

import importlib.util
import json
import lzma
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import MakeUser
from support import contract

#: The first schema whose replies are open. After the release of 0.2 this file stays as it is.
#: Before, a change that may break clients writes it anew: `xz -9e < include/holdfast.schema.json`.
FORMER = Path(__file__).parent / "fixtures" / "schema-0.2.json.xz"

NEW = {"something_new": {"deep": [1, None, "x"]}}


def generated(folder: Path, name: str, schema: str) -> ModuleType:
    """The classes that a generator makes of a schema."""
    (folder / f"{name}.json").write_text(schema)
    made = folder / f"{name}.py"
    options = ["--input-file-type", "jsonschema", "--output-model-type", "pydantic_v2.BaseModel"]
    options += ["--target-python-version", "3.11", "--formatters", "builtin"]
    command = [sys.executable, "-m", "datamodel_code_generator", *options]
    command += ["--input", str(folder / f"{name}.json"), "--output", str(made)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location(name, made)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def former() -> str:
    """The text of the former schema."""
    return lzma.decompress(FORMER.read_bytes()).decode("utf-8")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The client of the former schema."""
    return generated(tmp_path_factory.mktemp("client"), "former_client", former())


def extended(reference: str, value: Any) -> Any:  # noqa: ANN401
    """A reply as a later version may send it: new fields in its objects, and new codes."""
    return _extended({"$ref": reference}, value)


def _extended(schema: dict[str, Any], value: Any) -> Any:  # noqa: ANN401
    if "$ref" in schema:
        return _extended(contract.DOCUMENT["$defs"][schema["$ref"].rsplit("/", 1)[1]], value)
    for choice in schema.get("oneOf", schema.get("anyOf", ())):
        if contract.fits(choice, value):
            return _extended(choice, value)
    if "x-known-values" in schema:
        assert value in schema["x-known-values"]
        return "something_new"
    if isinstance(value, list):
        return [_extended(schema.get("items", {}), one) for one in value]
    if isinstance(value, dict) and "properties" in schema:
        fields = schema["properties"]
        return {key: _extended(fields.get(key, {}), one) for key, one in value.items()} | NEW
    return value


def check(client: ModuleType, reference: str, value: Any) -> None:  # noqa: ANN401
    """The client reads the value as it is, and as a later version may send it."""
    model = getattr(client, reference.rsplit("/", 1)[1])
    later = extended(reference, value)
    for sent in (value, later):
        read = model.model_validate_json(json.dumps(sent))
        assert json.loads(read.model_dump_json(exclude_unset=True)) == sent
    assert later != value


@pytest.mark.parametrize("operation", contract.OPERATIONS)
def test_HST_8_a_client_of_the_former_schema_reads_what_is_new(
    client: ModuleType, operation: str
) -> None:
    # Given a client that a generator made of the former schema
    # When a reply has a field that it does not know, and codes that it does not know
    # Then it reads the reply, and keeps what it does not know
    if f"{operation}_reply" not in json.loads(former())["properties"]:
        pytest.skip("the former version did not have this operation")
    shape = contract.OPERATIONS[operation]
    for example in shape["examples"]:
        check(client, shape["reply"]["$ref"], example["reply"])


def example_of(name: str) -> dict[str, Any]:
    """An event, of the examples of its fields."""
    value = {}
    for key, field in contract.DOCUMENT["$defs"][name]["properties"].items():
        if "const" in field:
            value[key] = field["const"]
        elif "examples" in field:
            value[key] = field["examples"][0]
        else:
            value[key] = [] if "items" in field else example_of(field["$ref"].rsplit("/", 1)[1])
    return value


@pytest.mark.parametrize("choice", contract.DOCUMENT["$defs"]["Event"]["oneOf"], ids=str)
def test_HST_8_events_of_known_and_of_new_types_are_read(
    client: ModuleType, choice: dict[str, str]
) -> None:
    # Given the same client
    # When an event has a new field or code, or a type that the client does not know
    # Then a known event is read as its class, and another one as OtherEvent
    name = choice["$ref"].rsplit("/", 1)[1]
    event = example_of(name)
    shapes = json.loads(former())["$defs"]
    for sent in (event, extended(choice["$ref"], event)):
        read = client.Event.model_validate(sent)
        expected = name if name in shapes else "OtherEvent"
        assert type(read.root).__name__ == expected
        assert read.root.seq.root == event["seq"]
    poll = {
        "requests": [],
        "events": [event, {"seq": 99, "type": "unheard_of"} | NEW],
        "wake_in_ms": None,
    }
    later = client.PollReply.model_validate(poll)
    assert type(later.events[1].root).__name__ == "OtherEvent"
    assert later.events[1].root.type == "unheard_of"


def test_HST_8_errors_with_new_codes_are_read(client: ModuleType) -> None:
    error = {
        "code": "weather.bad",
        "message": "it rains",
        "field": None,
        "retryable": True,
        "detail": {"mm": 4},
    }
    read = client.ErrorReply.model_validate({"error": error | NEW} | NEW)
    assert read.error.code.root == "weather.bad"
    assert read.error.retryable is True


def test_HST_8_the_client_reads_what_the_library_sends_now(
    client: ModuleType, sign_in: MakeUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a session of use whose replies this version makes
    # When the client of the former schema reads each
    # Then none breaks it
    replies: list[tuple[str, Any]] = []
    judge = contract.judge_reply

    def record(operation: str, status: int, reply: dict[str, Any] | None) -> None:
        judge(operation, status, reply)
        name = "ErrorReply" if status else contract.OPERATIONS[operation]["reply"]["$ref"]
        replies.append((name.rsplit("/", 1)[-1], reply))

    monkeypatch.setattr(contract, "judge_reply", record)
    app = sign_in(contacts=2).app
    app.register()
    app.go_offline()
    app.register()
    app.queue_list()
    app.contact_search({"query": ""})
    app.summary_get()
    app.sync_status()
    app.go_online()
    app.settle_until("sync_completed")
    app.session_lock()
    with pytest.raises(Exception, match="locked"):
        app.queue_list()
    app.session_logout()
    for name, reply in replies:
        getattr(client, name).model_validate(reply)
    assert len(replies) > 30


def test_a_closed_client_does_not_read_what_is_new(tmp_path: Path) -> None:
    """The check can fail: of a closed schema the generator makes a client that breaks."""
    text = former().replace('"additionalProperties": true', '"additionalProperties": false')
    module = generated(tmp_path, "closed_client", text)
    with pytest.raises(ValueError, match="something_new"):
        check(
            module,
            "#/$defs/QueueAddReply",
            {"id": "01976b36-0000-7000-8000-000000000000", "state": "pending"},
        )
