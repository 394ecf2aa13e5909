"""Checks this server against the measured behaviour of real GoTrue."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
from local_supabase import LocalSupabase
from patience import patience

CHECK = pathlib.Path(__file__).resolve().parent / "conformance" / "gotrue" / "check"


def run(backend: LocalSupabase, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECK), backend.auth_url, "--apikey", backend.anon_key, *arguments],
        capture_output=True,
        text=True,
        timeout=patience(240),
    )


@pytest.mark.both_servers
def test_all_checks_pass(backend: LocalSupabase) -> None:
    backend.control.set(reuse_interval=1)
    done = run(backend, "--interval", "1", "--secret", backend.jwt_secret)
    assert (done.returncode, done.stdout.strip()) == (0, "56 passed, 0 failed"), (
        done.stdout + done.stderr
    )


def test_check_can_fail(backend: LocalSupabase) -> None:
    """Given a server with a longer reuse interval than claimed, then the check fails."""
    backend.control.set(reuse_interval=60)
    done = run(backend, "--interval", "0.1", "--secret", backend.jwt_secret)
    assert done.returncode == 1
