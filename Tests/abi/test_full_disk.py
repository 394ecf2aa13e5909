"""ATK-16: a full disk stops neither the drain nor the logout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
