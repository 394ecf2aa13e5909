"""A3, ATK-3: flipped bits in the main file or its log cost no item without a word."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from holdfast import Library

from support.counts import FLIPS, counts
from support.flips import FILES, Case, Keys, Original, Outcome, draw, report, take
from support.loop import Host
from support.sizes import sized

if TYPE_CHECKING:
    from pathlib import Path

    from support.directory_fixtures import DirectoryFixtures
    from support.users import MakePhone

pytestmark = pytest.mark.both_flavours

#: `make flips` draws more.
CASES = int(os.environ.get("HOLDFAST_FLIPS", sized(200, 1000)))
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
        # The copies run by the machine's clock, which may be past the session window by then.
        phone.monotonic_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        keys = Keys({})
        folder = phone.folder
        core: Any = Host(phone.config, keys, library=library)  # type: ignore[arg-type]
        core.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
        core.session_adopt({"session": session})
        payloads: dict[str, Any] = {}

        def settle(core: Any = core, phone: Any = phone) -> None:  # noqa: ANN401
            while requests := core.take().requests:
                for request in requests:
                    core.complete({"id": request["id"], **phone.network(request)})

        def register(count: int, core: Any = core, payloads: Any = payloads) -> None:  # noqa: ANN401
            for number in range(count):
                long = "x" * (9000 if number % 20 == 7 else 40 * (number % 5))
                payload = {"type": "visit", "minutes": 1 + number, "note": long}
                item = core.queue_add({"kind": "activity", "payload": payload})["id"]
                payloads[item] = core.queue_get({"id": item})["item"]["payload"]

        settle()
        core.network_report({"online": False})
        register(items)
        if after:
            core.close()
            core = Host(phone.config, keys, library=library)  # type: ignore[arg-type]
            core.clock_set({"now_ms": phone.now_ms, "monotonic_ms": phone.monotonic_ms})
            core.network_report({"online": False})
            core.session_resume()
            register(after, core)
            if not (folder / FILES[1]).exists():
                raise AssertionError("there is no log")
        else:
            core.close()
        result.append(take(name, folder, phone.config, keys.keys, session, payloads, in_log=after))
        if after:
            core.close()
    return result


def test_ATK_3_after_flips_and_cuts_every_item_is_there_or_it_is_said(
    originals: list[Original], tmp_path: Path, library: Library
) -> None:
    cases = []
    for number in range(CASES):
        original = originals[number % len(originals)]
        cases.append((original, draw(original, FIRST + number, cuts=number % 4 == 0)))
    judge(cases, tmp_path, library)


def test_ATK_3_a_flipped_bit_of_a_header_costs_no_item_of_the_file(
    originals: list[Original], tmp_path: Path, library: Library
) -> None:
    original = next(original for original in originals if original.name == "small")
    places = [(FILES[0], at) for at in range(100)] + [(FILES[1], at) for at in range(56)]
    places = places[FIRST % sized(3, 1) :: sized(3, 1)]
    bits = range(8) if CASES > 300 else [FIRST % 8]
    cases = [(original, [(name, at, (bit + at) % 8)]) for bit in bits for name, at in places]
    for outcome in judge(cases, tmp_path, library):
        of_log = original.in_log if outcome.flips[0][0] == FILES[1] else 0
        assert outcome.missing <= of_log, outcome


def judge(
    cases: list[tuple[Original, list[tuple[str, int, int]]]], tmp_path: Path, library: Library
) -> list[Outcome]:
    """Run cases: an original with these flips."""
    outcomes: list[Outcome] = []
    bad: list[str] = []
    for original, flips in cases:
        outcome = Case(original, tmp_path / "copy", library, flips).run()
        outcomes.append(outcome)
        counts[FLIPS] += 1
        if outcome.faults:
            bad.append(f"{original.name} {outcome.flips}: {outcome.faults}")
    print(report(outcomes))
    if out := os.environ.get("HOLDFAST_FLIPS_REPORT"):
        with open(out, "a") as file:
            json.dump({"report": json.loads(report(outcomes)), "bad": bad}, file)
            file.write("\n")
    assert not bad, "\n".join([report(outcomes), *bad])
    return outcomes
