"""Requests made from the schema, with wrong values among them, to every operation.

Any bytes on any function, in every state, are the matter of Tests/fuzz.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support import children
from support.sizes import crossed
from support.users import MakeUser


@pytest.mark.parametrize(
    "state", crossed(["home", "signed_out"], fast=lambda state: state == "home")
)
def test_ABI_3_accepted_requests_match_the_schema(
    sign_in: MakeUser, tmp_path: Path, state: str
) -> None:
    user = sign_in(contacts=2)
    if state == "signed_out":
        user.app.session_logout()
        user.app.settle()
    user.phone.close()
    trace = tmp_path / "last-call.json"
    ended = children.run("fuzz.py", user.phone.spec(), state, str(trace), timeout_s=300)
    last = trace.read_text(encoding="utf-8") if trace.exists() else "none"
    assert ended.status == 0, f"{ended.status}\nlast call: {last[:2000]}\n{ended.errors[-6000:]}"
    done = json.loads(ended.output.splitlines()[-1])
    assert done == {"live": 0, "lax": {}}
