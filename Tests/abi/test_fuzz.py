"""Any bytes on any function in any state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import MakeUser
from support import children

STATES = ["closed", "signed_out", "home", "locked", "signing_in", "offline"]


@pytest.mark.parametrize("state", STATES)
def test_ABI_1_any_bytes_on_any_function_are_answered(
    sign_in: MakeUser, tmp_path: Path, state: str
) -> None:
    # Given a handle in one of the states that an app can be in
    # When any bytes whatever come as a request to any function
    # Then there is always a reply or an error of the schema; nothing crashes, hangs or leaks
    user = sign_in(contacts=2)
    if state == "locked":
        user.app.session_lock()
    if state in {"signed_out", "signing_in"}:
        user.app.session_logout()
        user.app.settle()
    user.phone.close()
    trace = tmp_path / "last-call.json"
    ended = children.run("fuzz.py", user.phone.spec(), state, str(trace), timeout_s=300)
    last = trace.read_text(encoding="utf-8") if trace.exists() else "none"
    assert ended.status == 0, f"{ended.status}\nlast call: {last}\n{ended.errors[-6000:]}"
    done = json.loads(ended.output.splitlines()[-1])
    assert done["calls"] >= 300
    assert done["live"] == 0
