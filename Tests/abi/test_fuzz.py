"""Fuzzing: arbitrary bytes to every function in every state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support import children
from support.sizes import crossed, sized
from support.users import MakeUser, SignedIn

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
    """Prepare the user's phone for a child that starts in this state."""
    if state == "locked":
        user.app.session_lock()
    if state in {"signed_out", "signing_in"}:
        user.app.session_logout()
        user.app.settle()
    if state == "no_org":
        # A second organisation, so that none is chosen.
        user.app.session_logout()
        user.phone.directory.control.set_membership(
            user.person.id, user.phone.directory.organisation().id, role=user.role
        )
        user.app.sign_in(user.person)
    user.phone.close()
    return user.phone.spec()


def fuzz(spec: str, state: str, mode: str, trace: Path) -> dict[str, Any]:
    """The child's report; fails unless it exits with status 0."""
    ended = children.run("fuzz.py", spec, state, str(trace), mode, timeout_s=300)
    last = trace.read_text(encoding="utf-8") if trace.exists() else "none"
    assert ended.status == 0, f"{ended.status}\nlast call: {last[:2000]}\n{ended.errors[-6000:]}"
    done: dict[str, Any] = json.loads(ended.output.splitlines()[-1])
    return done


@pytest.mark.parametrize("state", crossed(STATES, fast=lambda state: state == "home"))
def test_ABI_1_any_bytes_on_any_function_are_answered(
    sign_in: MakeUser, tmp_path: Path, state: str
) -> None:
    done = fuzz(prepared(sign_in(contacts=2), state), state, "any", tmp_path / "last-call.json")
    assert done["calls"] >= 3 * sized(30, 300)
    assert done["live"] == 0


@pytest.mark.parametrize(
    "state", crossed(["home", "signed_out"], fast=lambda state: state == "home")
)
def test_ABI_3_accepted_requests_match_the_schema(
    sign_in: MakeUser, tmp_path: Path, state: str
) -> None:
    done = fuzz(prepared(sign_in(contacts=2), state), state, "strict", tmp_path / "last-call.json")
    assert done["lax"] == {}
