"""Calls every function of a library in one state with generated requests.

fuzz.py SPEC STATE TRACE MODE   MODE: any, or strict (only requests of about the right form).
The file TRACE holds the last call before a crash.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.operations import OPERATIONS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support import contract
from support.children import PATIENCE
from support.phone import App, Phone
from support.sizes import sized

EXAMPLES = {"any": sized(30, 300), "strict": sized(100, 1500)}
#: Texts of these sizes, in bytes, are sent, too.
LONG = sized([1 << 20], [1 << 20, 1 << 24])
#: Upper bound for one call: the wait for another process, plus time for a busy machine.
HANG_S = 30
FORKED, CLOSED = 10, 9

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**53) - 2, 2**53 + 2)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["", "\u0000", "\ud800", "activity", "/contacts/1", "success", "\U0001f9ad"])
    | st.uuids().map(str)
)
names = st.sampled_from(contract.property_names()) | st.text(max_size=8)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=6),
    max_leaves=20,
)
objects = st.dictionaries(names, values, max_size=6).map(
    lambda value: json.dumps(value).encode("ascii")
)


def for_operation(name: str) -> st.SearchStrategy[bytes]:
    """Requests with the operation's own fields and any values: these pass the field check."""
    choices = contract.forms(contract.OPERATIONS[name]["request"]["$ref"])
    own = [
        st.fixed_dictionaries(
            {}, optional={key: fitting(inner) for key, inner in choice["properties"].items()}
        )
        for choice in choices
    ]
    return st.one_of(own).map(lambda value: json.dumps(value).encode("ascii"))


def configs(folder: str) -> st.SearchStrategy[bytes]:
    """Configurations of about the right shape, with a separate folder."""
    shape = contract.DOCUMENT["$defs"]["Config"]["properties"]
    others = {name: fitting(inner) for name, inner in shape.items() if name != "data_dir"}
    backend = st.just({"url": "https://example.org", "api_key": "k"})
    others["backend"] = backend | backend | others["backend"]
    return st.fixed_dictionaries({"data_dir": st.just(folder)}, optional=others).map(
        lambda value: json.dumps(value).encode("ascii")
    )


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of about the right type, and wrong ones."""
    if "$ref" in schema:
        schema = contract.DOCUMENT["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | values
    right: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(max_size=40) | st.uuids().map(str),
        "integer": st.integers(-5, 5000),
        "boolean": st.booleans(),
        "object": st.dictionaries(names, values, max_size=6),
        "array": st.lists(st.uuids().map(str) | values, max_size=4),
    }
    kind = schema.get("type")
    return right.get(kind, values) | values if isinstance(kind, str) else values


def spoilt(data: bytes, at: int, value: int) -> bytes:
    """Change one byte, never to NUL, which would end the text."""
    if not data:
        return bytes([value])
    place = at % len(data)
    return data[:place] + bytes([value]) + data[place + 1 :]


def put_into(state: str, phone: Phone) -> tuple[App | None, int]:
    """Bring the app into this state; returns it."""
    if state == "closed":
        app = phone.open()
        handle = app._handle
        phone.close()
        return None, handle
    app = phone.start(online=state != "offline")
    if state == "signing_in":
        app.sign_in_begin({"method": "bankid"})
    expected = {
        "home": "home",
        "offline": "home",
        "two_handles": "home",
        "forked": "home",
        "locked": "unlock",
        "no_org": "select_org",
    }.get(state, "sign_in")
    assert app.screen["screen"] == expected, app.screen
    return app, app._handle


def go_on_in_a_child() -> None:
    """Fork and continue in the child; the parent exits with the child's status."""
    child = os.fork()
    if child != 0:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def main() -> None:
    phone, state, trace = Phone.from_spec(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    mode = sys.argv[4]
    app, handle = put_into(state, phone)
    library = phone.library
    handles = [handle]
    if state == "two_handles":
        second = Phone.from_spec(sys.argv[1])
        handles.append(second.start(online=False)._handle)
    calls = 0
    closing = {"session_logout", "session_lock"}
    if state in {"home", "offline", "two_handles"}:
        # These leave the state at once; the other states test them.
        functions = [name for name in OPERATIONS if name not in closing]
    else:
        functions = list(OPERATIONS)

    lax: dict[str, str] = {}

    def note_if_lax(name: str, request: bytes) -> None:
        """Record a request that was accepted although it does not match the schema."""
        sent = json.loads(request or b"{}")
        # null means "absent" for every optional field.
        given = {key: value for key, value in sent.items() if value is not None}
        try:
            contract.judge_accepted_request(name, given)
        except contract.ContractError as error:
            lax.setdefault(name, str(error))

    def attempt(name: str, request: bytes) -> None:
        nonlocal calls
        calls += 1
        trace.write_text(json.dumps({"function": name, "request": repr(request)}))
        start = time.monotonic()
        status, reply = library.call(name, handles[calls % len(handles)], request)
        assert time.monotonic() - start < HANG_S * PATIENCE, (name, request[:200])
        contract.judge_reply(name, status, None if reply is None else json.loads(reply))
        assert 0 <= status <= 12, (name, request, status)
        assert status not in {11, 12}, (name, request, reply)
        assert (status == CLOSED) == (state == "closed"), (name, request, reply)
        assert (status == FORKED) == (state == "forked"), (name, request, reply)
        if status == 0:
            note_if_lax(name, request)

    quiet = settings(
        settings.get_profile("ci"),
        max_examples=EXAMPLES[mode],
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    @quiet
    @given(st.sampled_from(functions), st.binary(max_size=200) | objects)
    def anything(name: str, request: bytes) -> None:
        attempt(name, request.replace(b"\0", b""))

    @quiet
    @given(st.data())
    def nearly_right(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(functions))
        attempt(name, data.draw(for_operation(name)))

    @quiet
    @given(st.data(), st.integers(0), st.integers(1, 255))
    def spoilt_byte(data: st.DataObject, at: int, value: int) -> None:
        name = data.draw(st.sampled_from(functions))
        attempt(name, spoilt(data.draw(for_operation(name)), at, value))

    folder = str(phone.folder.with_name("fuzzed"))

    @quiet
    @given(st.binary(max_size=300) | objects | configs(folder))
    def config(request: bytes) -> None:
        nonlocal calls
        calls += 1
        text = request.replace(b"\0", b"")
        trace.write_text(json.dumps({"function": "open", "request": repr(text)}))
        made, (status, reply) = library.open(text, None)
        assert status in {0, 1}, (text, status, reply)
        assert (made != 0) == (status == 0)
        contract.judge_reply("open", status, None if reply is None else json.loads(reply))
        library.close(made)

    if state == "forked":
        go_on_in_a_child()
    parts = [nearly_right] if mode == "strict" else [anything, nearly_right, spoilt_byte, config]
    for part in parts:
        part()
    for size in () if mode == "strict" else LONG:
        for name in random.Random(size).sample(functions, 4):
            attempt(name, b'{"query":"' + b"a" * size + b'"}')
            attempt(name, b"[" * size)
    for made in handles:
        library.close(made)
    del app
    phone.close()
    if state == "forked":
        # The parent's open handle still counts in this child.
        os.write(1, json.dumps({"calls": calls, "live": library.live() - 1, "lax": lax}).encode())
        os._exit(0)
    print(json.dumps({"calls": calls, "live": library.live(), "lax": lax}))


main()
