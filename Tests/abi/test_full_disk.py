"""ATK-16: a full disk stops neither the drain nor the logout."""

from __future__ import annotations

import errno
import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import children
from support.phone import Phone
from support.queue import EMPTY, add, add_offline, drain, stored
from support.sizes import crossed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from support.directory_fixtures import DirectoryFixtures
    from support.users import SignedIn


def run_on_disk(
    user: SignedIn,
    tmp_path: Path,
    size: str,
    child: str,
    *arguments: str,
    env: Mapping[str, str] | None = None,
) -> Any:  # noqa: ANN401
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
    mount = f"mount -t tmpfs -o size={size},mode=700 tmpfs {disk}"
    done = children.isolated(command, mount, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


#: What the system says of a full disk, of a used-up quota, and of a file that may not grow.
NO_ROOM = {"disk": errno.ENOSPC, "quota": errno.EDQUOT, "file": errno.EFBIG}


def full(killer: Path, how: str) -> dict[str, str]:
    """The environment of a process whose disk is full, and says so in this way."""
    return {"LD_PRELOAD": str(killer), "KILLER_FULL": str(NO_ROOM[how])}


@pytest.mark.parametrize("how", NO_ROOM)
def test_ATK_16_FIX_14_on_a_full_disk_the_queue_drains_and_the_user_can_log_out(
    user: SignedIn, directory: DirectoryFixtures, tmp_path: Path, killer: Path, how: str
) -> None:
    env = None if how == "disk" else full(killer, how)
    accepted, sent = run_on_disk(
        user, tmp_path, "8m", "drain_full_disk.py", "{disk}/filler", env=env
    )
    assert sorted(sent) == sorted(accepted)
    assert stored(directory, user.person) == sorted(accepted)


def test_ATK_16_a_start_on_a_full_disk_drains_and_logs_out(
    user: SignedIn, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    item = add(user.offline())
    found = run_on_disk(user, tmp_path, "8m", "open_on_full_disk.py", "{disk}/filler")
    assert found == [False, [], "sign_in"]
    assert stored(directory, user.person) == [item]


DRAIN = """
import json, sys
from holdfast import HoldfastError
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
app = phone.start(online=False)
kept, codes = [], []
while len(codes) < 3:
    try:
        kept.append(app.register(minutes=1, note="x" * 3000))
    except HoldfastError as error:
        codes.append([error.status, error.code, error.retryable])
app.go_online()
app.settle()
left = app.queue_list({"limit": 1})["counts"]
shown = app.session_logout()["screen"]["screen"]
phone.close()
print(json.dumps([kept, codes, left, shown]))
"""


IGNORE = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"


def test_ATK_16_a_main_file_that_goes_on_a_full_disk_ends_no_process(
    user: SignedIn, tmp_path: Path
) -> None:
    codes = run_on_disk(user, tmp_path, "8m", "moved_on_full_disk.py", "{disk}/filler")
    # The reserve has room for a new file
    assert codes[-1] == "", codes


def limited(script: str, user: SignedIn, size: int) -> Any:  # noqa: ANN401
    """What a script on the user's folder prints that may not let files grow beyond this size."""
    done = subprocess.run(
        [sys.executable, "-c", IGNORE + script, user.phone.spec()],
        capture_output=True,
        text=True,
        env=children.environment(),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        timeout=120 * children.PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_FIX_14_QUE_17_a_file_size_limit_refuses_items_and_the_queue_drains_below_it(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.phone.close()

    kept, codes, left, shown = limited(DRAIN, user, 3_000_000)
    assert codes == [[7, "storage.full", True]] * 3
    assert len(kept) > 100
    assert left == EMPTY
    assert shown == "sign_in"
    assert stored(directory, user.person) == sorted(kept)


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
        pytest.param(Disk("6m", 500, shared=False), id="small_items", marks=pytest.mark.slow),
        pytest.param(Disk("8m", 4000, shared=False), id="large_items", marks=pytest.mark.slow),
        pytest.param(Disk("8m", 60_000, shared=False), id="refused_items", marks=pytest.mark.slow),
        pytest.param(Disk("6m", 500, shared=True), id="small_items_and_others"),
        pytest.param(
            Disk("8m", 4000, shared=True), id="large_items_and_others", marks=pytest.mark.slow
        ),
        pytest.param(
            Disk("8m", 60_000, shared=True), id="refused_items_and_others", marks=pytest.mark.slow
        ),
    ],
)
def test_ATK_16_a_queue_that_filled_the_disk_drains_without_a_restart(
    user: SignedIn, directory: DirectoryFixtures, tmp_path: Path, disk: Disk
) -> None:
    accepted, sent, parked = run_on_disk(
        user, tmp_path, disk.size, "fill_disk_by_queue.py", *disk.arguments, "drain"
    )
    assert set(sent) == set(accepted)
    assert (parked > 0) == (disk.note > 4000)
    assert len(stored(directory, user.person)) == len(accepted) - parked


@pytest.mark.parametrize(
    ("note", "shared"),
    crossed([500, 60_000], [False, True], fast=lambda note, shared: (note == 500) != shared),
)
def test_ATK_16_on_a_disk_that_the_queue_filled_the_user_logs_out_and_discards_it(
    user: SignedIn, directory: DirectoryFixtures, tmp_path: Path, note: int, shared: bool
) -> None:
    disk = Disk("8m", note, shared)
    accepted, *_ = run_on_disk(
        user, tmp_path, disk.size, "fill_disk_by_queue.py", *disk.arguments, "discard"
    )
    assert len(accepted) > 10
    assert stored(directory, user.person) == []


FULL = """
import json, os, resource, sys
from holdfast import HoldfastError
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
app = phone.start(online=False)
assert app.screen["screen"] == "home", app.screen
kept, codes = [], []
for number in range(4000):
    try:
        kept.append(app.register(minutes=1 + number % 9, note="x" * 3000))
    except HoldfastError as error:
        codes.append([error.status, error.code, error.retryable])
        if len(codes) == 3:
            break
seen = []
page = app.queue_list({"limit": 500})
while True:
    seen += [item["id"] for item in page["items"]]
    if page["next"] is None:
        break
    page = app.queue_list({"limit": 500, "after": page["next"]})
assert seen == kept, (len(seen), len(kept))
print(json.dumps({"kept": kept, "codes": codes}))
phone.close()
"""


def test_QUE_17_a_real_full_disk_refuses_items_and_loses_none(
    user: SignedIn, directory: DirectoryFixtures, tmp_path: Path
) -> None:
    # Given a folder on a disk of 2.5 MB, of which 1 MiB is kept in reserve
    user.phone.close()
    folder, room = user.phone.folder, tmp_path / "room"
    prepare = (
        f"cp -a {folder} {room} && mount -t tmpfs -o size=2500k,mode=700 tmpfs {folder}"
        f" && cp -a {room}/. {folder}/"
    )
    # When more is registered than fits (the folder is then copied to a normal disk)
    command = [sys.executable, "-c", FULL, user.phone.spec()]
    done = children.isolated(command, prepare, f"cp -a {folder}/. {room}/")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["codes"] == [[7, "storage.full", True]] * 3
    assert len(result["kept"]) > 20
    twin = Phone.from_spec(json.dumps({**json.loads(user.phone.spec()), "folder": str(room)}))
    twin.config = {**user.phone.config, "data_dir": str(room)}
    twin.keychain = user.phone.keychain
    app = twin.start()
    more = add(app)
    drain(app)
    assert stored(directory, user.person) == sorted([*result["kept"], more])
    twin.close()


READ_ONLY = """
import sys
from holdfast import HoldfastError
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
try:
    app = phone.start(online=False)
    app.register()
    print("accepted")
except HoldfastError as error:
    print(error.status, error.code)
"""


def test_QUE_17_a_read_only_folder_refuses_items_and_loses_none(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    ids = add_offline(user, 3)
    user.phone.close()
    folder = user.phone.folder
    prepare = f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}"
    done = children.isolated([sys.executable, "-c", READ_ONLY, user.phone.spec()], prepare)
    assert done.stdout.strip() == "6 storage.read_only", (done.stdout, done.stderr)
    user.phone.network.up = True
    app = user.restart()
    more = add(app)
    drain(app)
    assert stored(directory, user.person) == sorted([*ids, more])


@pytest.mark.parametrize("how", NO_ROOM)
def test_QUE_17_FIX_14_a_full_disk_refuses_items_and_damages_nothing(
    user: SignedIn, directory: DirectoryFixtures, killer: Path, how: str
) -> None:
    user.phone.close()
    ended = children.run("full_disk.py", user.phone.spec(), env=full(killer, how))
    accepted = ended.check().output.split()
    user.restart()
    drain(user.app)
    assert stored(directory, user.person) == sorted(set(accepted))
