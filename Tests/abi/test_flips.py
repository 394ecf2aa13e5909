"""A3: flipped bits in the main file cost no item without a word."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import Holdfast, Library

from support.flips import FILES, Case, Keys, Original, Outcome, find_images, report, take

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import MakePhone
    from support.directory_fixtures import DirectoryFixtures

#: `make flips` draws more.
CASES = int(os.environ.get("HOLDFAST_FLIPS", "300"))
FIRST = int(os.environ.get("HOLDFAST_FLIPS_FIRST", "1"))


@pytest.fixture
def originals(
    phones: MakePhone, directory: DirectoryFixtures, tmp_path: Path, library: Library
) -> list[Original]:
    """A queue in the file alone, and one of which the newest part is in the log."""
    person = directory.person(directory.organisation())
    session: Any = directory.session(person)
    result = []
    for name, items, after in [("closed", 60, 0), ("killed", 40, 25), ("small", 5, 3)]:
        phone = phones(policy={"biometric": "preferred"})
        keys = Keys({})
        folder = phone.folder
        core: Any = Holdfast(phone.config, keys, library=library)  # type: ignore[arg-type]
        core.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
        core.session_start({"session": session})
        payloads: dict[str, Any] = {}

        def settle(core: Any = core, phone: Any = phone) -> None:  # noqa: ANN401
            while requests := core.poll()["requests"]:
                for request in requests:
                    core.complete({"id": request["id"], **phone.network(request)})

        def register(count: int, core: Any = core, payloads: Any = payloads) -> None:  # noqa: ANN401
            for number in range(count):
                long = "x" * (9000 if number % 20 == 7 else 40 * (number % 5))
                payload = {"type": "visit", "minutes": 1 + number, "note": long}
                item = core.queue_add({"kind": "activity", "payload": payload})["id"]
                payloads[item] = core.queue_get({"id": item})["item"]["payload"]

        settle()
        core.network_set({"online": False})
        register(items)
        if after:
            core.close()
            core = Holdfast(phone.config, keys, library=library)  # type: ignore[arg-type]
            core.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
            core.network_set({"online": False})
            core.session_resume()
            register(after, core)
            if not (folder / FILES[1]).exists():
                raise AssertionError("there is no log")
        else:
            core.close()
        scratch = tmp_path / f"scratch-{name}"
        scratch.mkdir()
        config = {**phone.config, "clock": "system", "scratch": scratch}
        original = take(name, folder, config, keys.keys, session, payloads)
        if after:
            core.close()
        find_images(original)
        shutil.rmtree(scratch)
        del original.config["scratch"]
        result.append(original)
    return result


def test_A3_after_flipped_bits_every_readable_item_is_there_and_the_rest_is_counted(
    originals: list[Original], tmp_path: Path, library: Library
) -> None:
    """ATK-3, the main file."""
    # Given copies of data folders, each with one to eight flipped bits
    outcomes: list[Outcome] = []
    bad: list[str] = []
    for number in range(CASES):
        original = originals[number % len(originals)]
        # When the app starts, signs in if it must, and lists the queue
        outcome = Case(original, tmp_path / "copy", library, FIRST + number).run()
        outcomes.append(outcome)
        # Then no call fails twice, and no item is gone without a word
        if outcome.faults:
            bad.append(f"{original.name} seed {FIRST + number} {outcome.flips}: {outcome.faults}")
    print(report(outcomes))
    if out := os.environ.get("HOLDFAST_FLIPS_REPORT"):
        with open(out, "a") as file:
            json.dump({"report": json.loads(report(outcomes)), "bad": bad}, file)
            file.write("\n")
    assert not bad, "\n".join([report(outcomes), *bad])
