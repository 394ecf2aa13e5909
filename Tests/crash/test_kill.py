"""Killed at any moment: acknowledged items are there, and on the server once."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from holdfast import Library
from local_supabase import LocalSupabase

from conftest import SCENARIOS, SEED
from process_killer import ProcessKiller
from scenario import Scenario
from support.directory_fixtures import DirectoryFixtures
from support.phone import Phone
from support.secrecy import Secrets

#: The workloads of one scenario, in random order. A "salvage" kills twice: first an "add".
KILLS = ["add", "edit", "drain", "drain", "refresh", "refresh", "logout", "org_switch"]
KILLS += ["first_start", "salvage", "edit", "first_start"]
MONTH_S = 30 * 86400


@pytest.mark.parametrize("number", range(SCENARIOS))
def test_QUE_1_kills_at_random_moments_lose_nothing(
    number: int,
    flavour: str,
    library: Library,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    tmp_path: Path,
    process_killer: ProcessKiller,
    no_secret_is_readable: Secrets,
    record_property: Callable[[str, object], None],
) -> None:
    # Given a user of the app
    # When its process is killed at random moments of every workload
    # Then after each kill every acknowledged item is there, and in the end on the server once
    phones: list[Phone] = []

    def new_phone() -> Phone:
        policy = {"session_window_s": MONTH_S, "offline_limit_s": MONTH_S}
        phones.append(Phone(tmp_path / f"phone-{len(phones)}", library, backend, policy=policy))
        return phones[-1]

    # Different seeds, so that no two scenarios of a run generate the same ids.
    seed = zlib.crc32(f"{SEED} {flavour} {number}".encode())
    scenario = Scenario(process_killer, directory, new_phone, seed, no_secret_is_readable.children)
    workloads = random.Random(seed).sample(KILLS, len(KILLS))
    try:
        for workload in workloads:
            scenario.kill(workload)
        scenario.end()
    except BaseException:
        print(f"kills so far: {scenario.kills}")
        raise
    finally:
        for phone in phones:
            phone.close()
        record_property("kills", scenario.kills)
    assert library.live() == 0
