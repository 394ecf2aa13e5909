"""Runs one seed from beginning to end."""

from __future__ import annotations

import functools
import random
import shutil
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from holdfast import Holdfast, Library

from . import actions
from .actions import Action
from .end_state import check_end_state
from .invariants import Violation
from .trace import Trace
from .world import URL, VERSION, World

#: One seed of this many makes its databases itself.
FIRST_STARTS = 8


@dataclass
class Outcome:
    """The result of a run."""

    seed: int
    actions: list[Action]
    digest: str
    calls: int
    #: The invariant that was broken; None when none was.
    rule: str | None = None
    detail: str = ""
    lines: list[str] | None = None


def planned(seed: int, version: int) -> list[Action]:
    """Return the actions of a seed in this version of the world."""
    return actions.draw(seed, random.Random(f"length {seed}").choice((15, 40, 80)), version)


@functools.cache
def warm_up(library: Library) -> bytes:
    """Open a handle once, so that one-time initialisation is not part of any run.

    Return the database that it made: every first start makes the same one, without a key.
    """
    with tempfile.TemporaryDirectory() as folder:
        backend = {"url": URL, "api_key": "none"}
        config = {
            "data_dir": folder,
            "backend": backend,
            "keystore": {"kind": "file"},
            "role": "worker",
        }
        Holdfast(
            {**config, "policy": {"biometric": "off"}, "auth_methods": []}, library=library
        ).close()
        return (Path(folder) / "holdfast.db").read_bytes()


def play(
    seed: int,
    library: Library,
    steps: list[Action] | None = None,
    *,
    keep: bool = False,
    version: int = VERSION,
) -> Outcome:
    """Run a seed; `steps` replaces the seed's own actions."""
    made = warm_up(library)
    # A first start is a fifth of a seed's time, so only one seed in eight makes its own.
    first_file = made if seed % FIRST_STARTS else None
    steps = planned(seed, version) if steps is None else steps
    folder = Path(tempfile.mkdtemp(prefix="holdfast-world-"))
    trace = Trace(keep=keep)
    world: World | None = None
    rule, detail = None, ""
    try:
        world = World(seed, library, folder, trace, first_file, version)
        for step in steps:
            actions.perform(world, step)
        check_end_state(world)
        world.close()
    except Violation as violation:
        rule, detail = violation.rule, str(violation)
    except Exception as error:
        rule, detail = f"crash: {type(error).__name__}", traceback.format_exc()
    finally:
        if world is not None and rule is not None:
            for device in world.devices:
                device.give_back()
        shutil.rmtree(folder, ignore_errors=True)
    calls = world.calls if world is not None else 0
    if rule is not None:
        trace.note(f"!! {detail}")
    lines = [line.replace(str(folder), "FOLDER") for line in trace.lines] if keep else None
    return Outcome(seed, steps, trace.digest(), calls, rule, detail, lines)
