"""Calls every operation in one state with requests made from the schema, right and nearly right.

fuzz.py SPEC STATE TRACE   The file TRACE holds the last call before a crash.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from holdfast.operations import OPERATIONS
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support import contract
from support.children import PATIENCE
from support.phone import Phone
from support.sizes import sized

EXAMPLES = sized(100, 1500)
#: Upper bound for one call: the wait for another process, plus time for a busy machine.
HANG_S = 30
SCREENS = {"home": "home", "signed_out": "sign_in"}

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


def main() -> None:
    phone, state, trace = Phone.from_spec(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    app = phone.start()
    assert app.screen["screen"] == SCREENS[state], app.screen
    library, handle = phone.library, app._handle
    # A logout or a lock leaves the state at once; the other state tests them.
    closing = {"session_logout", "session_lock"} if state == "home" else set()
    functions = [name for name in OPERATIONS if name not in closing]
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
        trace.write_text(json.dumps({"function": name, "request": repr(request)}))
        start = time.monotonic()
        status, reply = library.call(name, handle, request)
        assert time.monotonic() - start < HANG_S * PATIENCE, (name, request[:200])
        contract.judge_reply(name, status, None if reply is None else json.loads(reply))
        # No handle is closed or forked, no memory is missing, and nothing is a defect.
        assert 0 <= status <= 8, (name, request, status, reply)
        if status == 0:
            note_if_lax(name, request)

    @settings(
        settings.get_profile("ci"),
        max_examples=EXAMPLES,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def nearly_right(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(functions))
        attempt(name, data.draw(for_operation(name)))

    nearly_right()
    phone.close()
    print(json.dumps({"live": library.live(), "lax": lax}))


main()
