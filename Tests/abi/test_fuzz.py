"""Any bytes on any function in any state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import MakeUser, SignedIn
from support import children

STATES = [
    "closed",
    "signed_out",
    "signing_in",
    "no_org",
    "home",
    "offline",
    "locked",
    "forked",
    "two_handles",
]


def prepared(user: SignedIn, state: str) -> str:
    """The user's phone, ready for a child that begins in this state."""
    if state == "locked":
        user.app.session_lock()
    if state in {"signed_out", "signing_in"}:
        user.app.session_logout()
        user.app.settle()
    if state == "no_org":
        # A second organisation, and no choice made.
        user.app.session_logout()
        user.phone.directory.control.set_membership(
            user.person.id, user.phone.directory.organisation().id, role=user.role
        )
        user.app.sign_in(user.person)
    user.phone.close()
    return user.phone.spec()


def fuzz(spec: str, state: str, mode: str, trace: Path) -> dict[str, Any]:
    """What the child reports; it must come back well."""
    ended = children.run("fuzz.py", spec, state, str(trace), mode, timeout_s=300)
    last = trace.read_text(encoding="utf-8") if trace.exists() else "none"
    assert ended.status == 0, f"{ended.status}\nlast call: {last[:2000]}\n{ended.errors[-6000:]}"
    done: dict[str, Any] = json.loads(ended.output.splitlines()[-1])
    return done


@pytest.mark.parametrize("state", STATES)
def test_ABI_1_any_bytes_on_any_function_are_answered(
    sign_in: MakeUser, tmp_path: Path, state: str
) -> None:
    # Given a handle in one of the states that an app can be in
    # When any bytes whatever come as a request to any function
    # Then there is always a reply or an error of the schema; nothing crashes, hangs or leaks
    done = fuzz(prepared(sign_in(contacts=2), state), state, "any", tmp_path / "last-call.json")
    assert done["calls"] >= 1000
    assert done["live"] == 0


@pytest.mark.parametrize("state", ["home", "signed_out"])
def test_ABI_3_what_is_accepted_is_in_the_schema(
    sign_in: MakeUser, tmp_path: Path, state: str
) -> None:
    # Given requests of about the right form
    # When a function accepts one
    # Then the published schema has it: every wrong type and missing field is refused
    done = fuzz(prepared(sign_in(contacts=2), state), state, "strict", tmp_path / "last-call.json")
    assert done["lax"] == {}
