"""A3, ATK-3: what the library makes of a log that a killed process left."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from support.flips import FILES, FRAME_HEADER, INDEX, LOG_HEADER, PAGE

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import MakePhone, MakeUser, SignedIn
    from support.phone import App, Phone

#: Exits with 0 if another process holds a lock on the byte by which SQLite knows an index's users.
PROBE = """
import fcntl, sys
with open(sys.argv[1], "r+b") as index:
    try:
        fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)
    except OSError:
        sys.exit(0)
sys.exit(1)
"""


def killed(user: SignedIn, folder: Path, items: int) -> tuple[Phone, list[str]]:
    """A copy of the phone whose process was killed with these items in the log."""
    user.app.go_offline()
    user.restart(online=False)
    added = [user.app.register(1 + number) for number in range(items)]
    shutil.copytree(user.phone.folder, folder)
    user.phone.close()
    copy = user.phone.twin(folder.with_name(f"{folder.name}-twin"))
    for name in (*FILES, INDEX):
        (copy.folder / name).unlink(missing_ok=True)
        shutil.copyfile(folder / name, copy.folder / name)
    return copy, added


def listed(app: App) -> list[str]:
    return [item["id"] for item in app.queue_list({"limit": 500})["items"]]


def recovered(app: App) -> list[dict[str, object]]:
    app.settle()
    return app.of_type("storage_recovered")


def flip(path: Path, *places: int) -> None:
    data = bytearray(path.read_bytes())
    for at in places:
        data[at] ^= 4
    path.write_bytes(data)


def test_ATK_3_a_log_that_is_cut_short_by_a_flipped_bit_loses_nothing(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    # Given a killed process whose items are in the log, and a flipped bit in its first frame
    phone, added = killed(sign_in(), tmp_path / "killed", 5)
    flip(phone.folder / FILES[1], LOG_HEADER + FRAME_HEADER + 100)
    # When the app starts
    app = phone.start(online=False)
    # Then every item is there, and there is nothing to say
    assert not app.opened["recovered"]
    assert listed(app) == added
    assert not recovered(app)
    # And the log goes on
    more = app.register(50)
    phone.close()
    assert listed(phone.start(online=False)) == [*added, more]
    phone.close()


def test_ATK_3_a_destroyed_frame_costs_only_what_is_counted(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    # Given a log of which one frame is noise
    phone, added = killed(sign_in(), tmp_path / "killed", 5)
    log = bytearray((phone.folder / FILES[1]).read_bytes())
    start = LOG_HEADER + FRAME_HEADER
    log[start : start + PAGE] = bytes((7 * at + 3) % 251 for at in range(PAGE))
    (phone.folder / FILES[1]).write_bytes(log)
    # When the app starts
    app = phone.start(online=False)
    # Then later images of the page are used, and what is missing is counted
    missing = set(added) - set(listed(app))
    lost = sum(int(str(event["lost"])) for event in recovered(app))
    assert len(missing) <= lost
    phone.close()


def test_ATK_3_an_index_that_a_power_cut_left_from_an_earlier_log_claims_nothing(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    # Given the files of a killed process beside the index of an earlier log
    user = sign_in()
    _, _ = killed(user, tmp_path / "early", 9)
    user.app = user.phone.start(online=False)
    phone, _ = killed(user, tmp_path / "late", 2)
    shutil.copyfile(tmp_path / "early" / INDEX, phone.folder / INDEX)
    # When the app starts
    app = phone.start(online=False)
    # Then the log is taken as it is
    assert len(listed(app)) == 11
    assert not recovered(app)
    phone.close()


def test_ATK_3_a_log_with_a_damaged_header_is_repaired_once(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    # Given a killed process, and flipped bits in the log's header and in a frame's salt
    phone, added = killed(sign_in(), tmp_path / "killed", 5)
    flip(phone.folder / FILES[1], 3, 20, 24, LOG_HEADER + 5 * (PAGE + FRAME_HEADER) + 8)
    # When the app starts twice
    app = phone.start(online=False)
    assert listed(app) == added
    phone.close()
    app = phone.start(online=False)
    # Then all is there
    assert listed(app) == added
    assert not recovered(app)
    phone.close()


def test_ATK_3_a_second_handle_keeps_the_locks_of_the_first(
    sign_in: MakeUser, phones: MakePhone
) -> None:
    # Given a handle, and a second one in the same process that was opened and closed
    user = sign_in()
    index = user.phone.folder / INDEX
    probe = [sys.executable, "-c", PROBE, str(index)]
    assert subprocess.run(probe, check=False).returncode == 0
    other = type(user.app)(user.phone, user.phone.config)
    other.close()
    # Then other processes still see that the file is in use
    assert subprocess.run(probe, check=False).returncode == 0
