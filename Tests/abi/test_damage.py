"""Damage to the log: nothing is lost without a word."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support import children
from support.damage import listed, recovered
from support.flips import FILES, FRAME_HEADER, INDEX, LOG_HEADER, PAGE
from support.phone import Phone
from support.users import MakePhone, MakeUser, SignedIn

# The log of a killed process ----------------------------------------------------------------------


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


def flipped(*places: int) -> Callable[[bytes], bytes]:
    def damage(log: bytes) -> bytes:
        data = bytearray(log)
        for at in places:
            data[at] ^= 4
        return bytes(data)

    return damage


def noisy(log: bytes) -> bytes:
    """One frame is noise."""
    start = LOG_HEADER + FRAME_HEADER
    noise = bytes((7 * at + 3) % 251 for at in range(PAGE))
    return log[:start] + noise + log[start + PAGE :]


#: What becomes of a log, and whether something of it is gone then.
LOGS: dict[str, tuple[Callable[[bytes], bytes], bool]] = {
    "whole": (lambda log: log, False),
    "a page": (flipped(LOG_HEADER + FRAME_HEADER + 100), True),
    "a page's number": (flipped(LOG_HEADER, LOG_HEADER + 3), True),
    "a frame's salt": (flipped(LOG_HEADER + 5 * (PAGE + FRAME_HEADER) + 8), True),
    "the header's magic number": (flipped(3), True),
    "the header's salt": (flipped(20), True),
    "the header's checksum": (flipped(24), True),
    "noise": (noisy, True),
    "gone": (lambda _log: b"", True),
    "half of the header": (lambda log: log[:16], True),
    "only the header": (lambda log: log[:LOG_HEADER], True),
    "a frame less": (lambda log: log[: -(PAGE + FRAME_HEADER)], True),
    "half of the last frame": (lambda log: log[: -PAGE // 2], True),
}


def committed(folder: Path) -> bytes:
    """The log without what is behind the last commit."""
    index = (folder / INDEX).read_bytes()
    frames = int.from_bytes(index[16:20], sys.byteorder)
    return (folder / FILES[1]).read_bytes()[: LOG_HEADER + frames * (PAGE + FRAME_HEADER)]


@pytest.mark.parametrize(("damage", "is_gone"), LOGS.values(), ids=LOGS)
def test_ATK_3_a_log_that_has_lost_commits_is_noticed(
    sign_in: MakeUser, tmp_path: Path, damage: Callable[[bytes], bytes], *, is_gone: bool
) -> None:
    phone, added = killed(sign_in(), tmp_path / "killed", 5)
    damaged = damage(committed(phone.folder))
    (phone.folder / FILES[1]).write_bytes(damaged)
    app = phone.start(online=False)
    assert app.opened["recovered"] == is_gone
    found = listed(app)
    assert found == [item for item in added if item in found]
    assert (found == added) or is_gone
    events = recovered(app)
    assert [event["unreadable"] for event in events] == [True] * is_gone
    for event in events:
        assert (phone.folder / f"{event['file']}-wal").read_bytes() == damaged
        assert event["carried"] == len(found)
    more = app.register(50)
    phone.close()
    app = phone.start(online=False)
    assert not app.opened["recovered"]
    assert listed(app) == [*found, more]
    phone.close()


def test_ATK_3_a_log_that_was_copied_into_the_file_may_be_damaged(
    user: SignedIn, tmp_path: Path
) -> None:
    user.app.go_offline()
    user.restart(online=False)
    added = [user.app.register(1 + number) for number in range(5)]
    with contextlib.closing(sqlite3.connect(user.phone.folder / FILES[0])) as database:
        busy, frames, copied = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        assert (busy, copied) == (0, frames)
        shutil.copytree(user.phone.folder, tmp_path / "files")
    for damage in (flipped(LOG_HEADER + 7 * (PAGE + FRAME_HEADER) + 99), lambda _log: b""):
        restore(user.phone, tmp_path / "files")
        log = user.phone.folder / FILES[1]
        log.write_bytes(damage(log.read_bytes()))
        app = user.phone.start(online=False)
        assert listed(app) == added
        assert not any(event["unreadable"] for event in recovered(app))
        user.phone.close()


def test_ATK_3_what_a_log_has_lost_is_said_when_the_keys_are_there(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    phone, _ = killed(sign_in(), tmp_path / "killed", 5)
    log = phone.folder / FILES[1]
    log.write_bytes(flipped(LOG_HEADER + FRAME_HEADER + 100)(log.read_bytes()))
    phone.keychain.unlocked_since_boot = False
    assert phone.start(online=False).opened["recovered"]
    phone.close()
    phone.keychain.unlocked_since_boot = True
    app = phone.start(online=False)
    assert [event["unreadable"] for event in recovered(app)] == [True]
    phone.close()


def test_ATK_3_an_index_that_a_power_cut_left_from_an_earlier_log_claims_nothing(
    user: SignedIn, tmp_path: Path
) -> None:
    _, _ = killed(user, tmp_path / "early", 9)
    user.app = user.phone.start(online=False)
    phone, _ = killed(user, tmp_path / "late", 2)
    shutil.copyfile(tmp_path / "early" / INDEX, phone.folder / INDEX)
    app = phone.start(online=False)
    assert len(listed(app)) == 11
    assert not recovered(app)
    phone.close()


def test_ATK_3_a_second_handle_keeps_the_locks_of_the_first(
    user: SignedIn, phones: MakePhone
) -> None:
    index = user.phone.folder / INDEX
    probe = [sys.executable, "-c", PROBE, str(index)]
    assert subprocess.run(probe, check=False).returncode == 0
    other = type(user.app)(user.phone, user.phone.config)
    other.close()
    assert subprocess.run(probe, check=False).returncode == 0


def restore(phone: Phone, files: Path) -> None:
    """Give the phone these files."""
    shutil.rmtree(phone.folder)
    shutil.copytree(files, phone.folder)


SHORTENED = """
import os, sys
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
app = phone.start(online=False)
for number in range(5):
    print(app.register(1 + number), flush=True)
os.truncate(phone.folder / "holdfast.db-shm", 0)
print(app.register(9), flush=True)
"""


def test_FIX_17_what_was_acknowledged_survives_an_index_that_is_shortened(
    user: SignedIn,
) -> None:
    user.phone.close()
    # When it goes on, which may end the process
    ended = children.run_text(SHORTENED, user.phone.spec())
    print(f"ended with {ended.status}")
    added = ended.output.split()
    assert len(added) >= 5, ended.errors
    assert listed(user.restart(online=False)) == added
