"""Killed at any instant: what was acknowledged is there, and on the server once."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from holdfast import Library
from local_supabase import LocalSupabase
from support.phone import Phone
from support.secrecy import Secrets
from support.town import Town

from conftest import STORIES
from reaper import Reaper
from story import Story

#: The kills of one story, in an order of its own. (A salvage kills twice: its forerunner, too.)
THEMES = ["add", "edit", "drain", "drain", "refresh", "refresh", "logout", "org_switch"]
THEMES += ["migration", "salvage", "edit", "migration"]
MONTH_S = 30 * 86400


@pytest.mark.parametrize("number", range(STORIES))
def test_QUE_1_killed_at_any_instant(
    number: int,
    seed: int,
    flavour: str,
    library: Library,
    backend: LocalSupabase,
    town: Town,
    tmp_path: Path,
    reaper: Reaper,
    no_secret_is_readable: Secrets,
    record_property: Callable[[str, object], None],
) -> None:
    # Given somebody who works with an app
    # When its process is killed at random instants of whatever it does
    # Then after each kill all that was acknowledged is there, and at last on the server, once
    phones: list[Phone] = []

    def new_phone() -> Phone:
        policy = {"session_window_s": MONTH_S, "offline_limit_s": MONTH_S}
        phones.append(Phone(tmp_path / f"phone-{len(phones)}", library, backend, policy=policy))
        return phones[-1]

    # No two stories of a run make up the same ids.
    seed = zlib.crc32(f"{seed} {flavour} {number}".encode())
    story = Story(reaper, town, new_phone, seed, no_secret_is_readable.children)
    themes = random.Random(seed).sample(THEMES, len(THEMES))
    try:
        for theme in themes:
            story.kill(theme)
        story.end()
    except BaseException:
        print(f"kills so far: {story.kills}")
        raise
    finally:
        for phone in phones:
            phone.close()
        record_property("kills", story.kills)
    assert library.live() == 0
