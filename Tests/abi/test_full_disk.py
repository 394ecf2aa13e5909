"""ATK-16: a full disk stops neither the drain nor the logout."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import children
from support.queue import stored

if TYPE_CHECKING:
    from conftest import MakeUser
    from support.directory_fixtures import DirectoryFixtures

CHILD = Path(__file__).parent / "children" / "drain_full_disk.py"


def test_ATK_16_on_a_full_disk_the_queue_drains_and_the_user_can_log_out(
    sign_in: MakeUser, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    # Given a phone on a disk of 8 MB that others fill, again after each request
    user = sign_in()
    user.app.go_offline()
    user.phone.close()
    disk = tmp_path / "disk"
    disk.mkdir()
    spec = json.loads(user.phone.spec())
    spec["folder"] = spec["config"]["data_dir"] = str(disk / "phone")
    command = [
        sys.executable,
        str(CHILD),
        json.dumps(spec),
        str(user.phone.keychain.path),
        str(user.phone.folder),
        str(disk / "filler"),
    ]
    # When items are added until it is full, the network comes, and the user logs out
    mount = f"mount -t tmpfs -o size=8m,mode=700 tmpfs {disk}"
    done = children.isolated(command, mount)
    # Then the child's checks hold, every accepted item is stored, and each was sent once
    assert done.returncode == 0, done.stderr
    accepted, sent = json.loads(done.stdout)
    assert sorted(sent) == sorted(accepted)
    assert stored(directory, user.person) == sorted(accepted)


@dataclass(frozen=True)
class Disk:
    """A disk that the queue fills."""

    size: str
    #: The length of each item's note, in characters of four bytes. The server takes up to 4000.
    note: int
    #: Others take all room that is left, at a restart and after each step.
    shared: bool


@pytest.mark.parametrize(
    "disk",
    [
        pytest.param(Disk("6m", 500, shared=False), id="small_items"),
        pytest.param(Disk("8m", 4000, shared=False), id="large_items"),
        pytest.param(Disk("8m", 60_000, shared=False), id="refused_items"),
        pytest.param(Disk("6m", 500, shared=True), id="small_items_and_others"),
        pytest.param(Disk("8m", 4000, shared=True), id="large_items_and_others"),
        pytest.param(Disk("8m", 60_000, shared=True), id="refused_items_and_others"),
    ],
)
def test_B5_a_queue_that_filled_the_disk_drains_without_a_restart(
    sign_in: MakeUser, directory: DirectoryFixtures, tmp_path: Path, disk: Disk
) -> None:
    """Finding B5: of 720 items only 441 drained before the reserve was used up."""
    # Given a phone on a small disk
    user = sign_in()
    user.app.go_offline()
    user.phone.close()
    room = tmp_path / "disk"
    room.mkdir()
    spec = json.loads(user.phone.spec())
    spec["folder"] = spec["config"]["data_dir"] = str(room / "phone")
    command = [
        *children.command("fill_disk_by_queue.py", json.dumps(spec)),
        str(user.phone.keychain.path),
        str(user.phone.folder),
        str(disk.note),
        str(room / "others") if disk.shared else "",
    ]
    # When the queue fills the disk, the network comes, and the user logs out
    mount = f"mount -t tmpfs -o size={disk.size},mode=700 tmpfs {room}"
    done = children.isolated(command, mount)
    # Then the child's checks hold: every item was sent, and is stored or parked as refused
    assert done.returncode == 0, done.stderr
    accepted, sent, parked = json.loads(done.stdout)
    assert set(sent) == set(accepted)
    assert (parked > 0) == (disk.note > 4000)
    assert len(stored(directory, user.person)) == len(accepted) - parked
