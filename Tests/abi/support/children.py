"""Child processes, for calls that may crash and for processes that a test kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patience import FACTOR

from .paths import ROOT

if TYPE_CHECKING:
    from .phone import Phone

SCRIPTS = Path(__file__).resolve().parent.parent / "children"

#: Factor on every time limit: instrumented builds are slower, and so is a machine under load.
PATIENCE = FACTOR * (8 if os.environ.get("HOLDFAST_SANITIZER") else 1)


@dataclass(frozen=True)
class Ended:
    """How a child ended."""

    status: int
    output: str
    errors: str

    @property
    def killed(self) -> bool:
        """Whether SIGKILL ended it, so the process reached its kill point."""
        return self.status == -signal.SIGKILL

    @property
    def crashed(self) -> bool:
        """Whether any other signal ended it."""
        return self.status < 0 and not self.killed

    def check(self) -> Ended:
        """Fail unless the child exited with status 0."""
        assert self.status == 0, (
            f"status {self.status}\n{self.output[-4000:]}\n{self.errors[-8000:]}"
        )
        return self


def command(script: str, *arguments: str) -> list[str]:
    """The command line of a script in children/."""
    return [sys.executable, "-X", "faulthandler", str(SCRIPTS / script), *arguments]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment, with the import paths that a child needs."""
    here = SCRIPTS.parent
    paths = [here, ROOT / "bindings" / "python" / "src", ROOT / "Tests" / "server"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), **(more or {})}


def run_text(
    text: str, *arguments: str, timeout_s: float = 120, env: Mapping[str, str] | None = None
) -> Ended:
    """Run Python source text in a child and wait for it."""
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout_s * PATIENCE,
        env=environment(env),
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def run(
    script: str, *arguments: str, timeout_s: float = 120, env: Mapping[str, str] | None = None
) -> Ended:
    """Run a script of children/ and wait for it; AssertionError when it hangs."""
    try:
        done = subprocess.run(
            command(script, *arguments),
            capture_output=True,
            text=True,
            timeout=timeout_s * PATIENCE,
            env=environment(env),
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"{script} hangs\n{error.stdout!r}\n{error.stderr!r}") from error
    return Ended(done.returncode, done.stdout, done.stderr)


def deaths(
    phone: Phone, folder: Path, killer: Path, script: str, *arguments: str, stride: int = 1
) -> Iterator[tuple[Phone, Ended]]:
    """Twins of a phone, each after a process that died at its n-th change of a file.

    The last one's process ended by itself.
    """
    for number in range(1, 300, stride):
        twin = phone.twin(folder / f"twin-{number}")
        ended = run(script, twin.spec(), *arguments, str(number), env={"LD_PRELOAD": str(killer)})
        assert not ended.crashed, ended.errors
        yield twin, ended
        twin.close()
        if not ended.killed:
            ended.check()
            return
    raise AssertionError("the process died at every change")


def isolated(
    command: list[str], before: str, after: str = "true", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run in a private mount namespace, between two commands; skips the test if forbidden."""
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        import pytest  # not in children, which start often

        pytest.skip("mount namespaces are not allowed here")
    shell = ["unshare", "-m", "--propagation", "private", "sh", "-ec"]
    return subprocess.run(
        [*shell, f'{before}; "$@"; {after}', "sh", *command],
        capture_output=True,
        text=True,
        env=environment(env),
        timeout=120 * PATIENCE,
        check=False,
    )
