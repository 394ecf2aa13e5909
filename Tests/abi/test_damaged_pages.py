"""Pages of the main file that are cut, damaged, or written to another one's place."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from support.flips import FILES, INDEX
from support.phone import App
from support.users import MakeUser


def listed(app: App) -> list[str]:
    return [item["id"] for item in app.queue_list({"limit": 500})["items"] if item["kind"]]


def recovered(app: App) -> list[dict[str, Any]]:
    app.settle()
    return app.of_type("storage_recovered")


# A file that is cut ------------------------------------------------------------------------------


@pytest.mark.both_flavours
@pytest.mark.parametrize("index", ["with_index", "without_index"])
def test_A3_a_file_cut_within_its_header_costs_nothing_of_its_log(
    sign_in: MakeUser, index: str
) -> None:
    """SQLite takes a file of one byte for an empty one, too, and deletes its log."""
    # Given a killed process whose items are in the log
    user = sign_in()
    user.app.go_offline()
    ids = [user.app.register(1 + number) for number in range(3)]
    folder, files = user.phone.folder, user.phone.folder.with_suffix(".files")
    shutil.copytree(folder, files)
    user.phone.close()
    log = (files / FILES[1]).read_bytes()
    failed = []
    for size in (0, 1, 2, 15, 16, 24, 99, 100, 101, 255, 510, 511, 512):
        # When the main file is cut
        shutil.rmtree(folder)
        shutil.copytree(files, folder)
        (folder / FILES[0]).write_bytes((files / FILES[0]).read_bytes()[:size])
        if index == "without_index":
            (folder / INDEX).unlink()
        # Then all items and the session come back, at each start
        for _ in range(2):
            app = user.phone.start(online=False)
            if app.screen["screen"] != "home" or listed(app) != ids:
                failed.append(f"{size}: {app.screen['screen']}, {len(listed(app))} items")
            said = [event["unreadable"] for event in recovered(app)]
            if any(said):
                failed.append(f"{size}: said {said}")
            user.phone.close()
        # and a file that was set aside has its log
        for aside in folder.glob("holdfast.db.damaged-*-wal"):
            assert aside.read_bytes() == log
    assert not failed, "\n".join(failed)
