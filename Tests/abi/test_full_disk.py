"""ATK-16: a full disk stops neither the drain nor the logout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from support import children
from support.queue import stored

if TYPE_CHECKING:
    from pathlib import Path

    from support.directory_fixtures import DirectoryFixtures
    from support.users import MakeUser, SignedIn


def run_on_disk(user: SignedIn, tmp_path: Path, size: str, child: str, *arguments: str) -> Any:  # noqa: ANN401
    """Run a child with a copy of the user's phone on a disk of this size; what it prints.

    `{disk}` in an argument is the disk's folder.
    """
    user.app.go_offline()
    user.phone.close()
    disk = tmp_path / "disk"
    disk.mkdir()
    spec = json.loads(user.phone.spec())
    spec["folder"] = spec["config"]["data_dir"] = str(disk / "phone")
    command = children.command(
        child,
        json.dumps(spec),
        str(user.phone.keychain.path),
        str(user.phone.folder),
        *(argument.format(disk=disk) for argument in arguments),
    )
    done = children.isolated(command, f"mount -t tmpfs -o size={size},mode=700 tmpfs {disk}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_ATK_16_on_a_full_disk_the_queue_drains_and_the_user_can_log_out(
    sign_in: MakeUser, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    # Given a phone on a disk of 8 MB that others fill, again after each request
    user = sign_in()
    # When items are added until it is full, the network comes, and the user logs out
    accepted, sent = run_on_disk(user, tmp_path, "8m", "drain_full_disk.py", "{disk}/filler")
    # Then the child's checks hold, every accepted item is stored, and each was sent once
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

    @property
    def arguments(self) -> tuple[str, str]:
        """The child's SIZE and OTHERS."""
        return str(self.note), "{disk}/others" if self.shared else ""


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
    # When the queue fills the disk, the network comes, and the user logs out
    accepted, sent, parked = run_on_disk(
        user, tmp_path, disk.size, "fill_disk_by_queue.py", *disk.arguments, "drain"
    )
    # Then the child's checks hold: every item was sent, and is stored or parked as refused
    assert set(sent) == set(accepted)
    assert (parked > 0) == (disk.note > 4000)
    assert len(stored(directory, user.person)) == len(accepted) - parked


@pytest.mark.parametrize("shared", [False, True], ids=["alone", "others"])
@pytest.mark.parametrize("note", [500, 60_000], ids=["small_items", "large_items"])
def test_N3_on_a_disk_that_the_queue_filled_the_user_logs_out_and_discards_it(
    sign_in: MakeUser, directory: DirectoryFixtures, tmp_path: Path, note: int, shared: bool
) -> None:
    """Finding N3: the logout answered `storage.full` when the queue was larger than the log."""
    # Given a phone on a small disk
    user = sign_in()
    disk = Disk("8m", note, shared)
    # When the queue fills the disk, and the user logs out and discards it
    accepted, *_ = run_on_disk(
        user, tmp_path, disk.size, "fill_disk_by_queue.py", *disk.arguments, "discard"
    )
    # Then the logout succeeds, and nothing was sent
    assert len(accepted) > 10
    assert stored(directory, user.person) == []
