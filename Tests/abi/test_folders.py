"""Unusual and hostile data folders, each with a defined result (docs/storage.md)."""

from __future__ import annotations

import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from support import children
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of, error_of_open
from support.phone import FilePhone, Phone
from support.queue import drain, edit, stored
from support.sizes import crossed
from support.users import MakePhone, SignedIn

NOBODY = 65534

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to change the owner of a folder"
)


@pytest.fixture
def tmp_path(open_to_all: Path) -> Path:
    """Other users reach the folders of this module."""
    return open_to_all


def refused(phone: Phone) -> dict[str, Any]:
    """The error of an open() with key files."""
    policy = {**phone.config["policy"], "biometric": "off"}
    config = {**phone.config, "policy": policy, "keystore": {"kind": "file"}}
    return error_of_open(phone.library, config)


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_ABI_1_a_missing_folder_is_created_with_its_parents(phone: Phone) -> None:
    phone.config["data_dir"] = str(phone.folder / "a" / "b")
    old = os.umask(0)
    try:
        phone.open()
    finally:
        os.umask(old)
    for made in (phone.folder, phone.folder / "a", phone.folder / "a" / "b"):
        assert stat.S_IMODE(made.stat().st_mode) == 0o700, made


@pytest.mark.parametrize(
    "mode", crossed([0o755, 0o750, 0o775, 0o711], fast=lambda mode: mode == 0o775)
)
def test_ABI_1_a_folder_readable_by_others_keeps_its_mode(
    phones: MakePhone, directory: DirectoryFixtures, mode: int
) -> None:
    phone = phones()
    phone.folder.mkdir()
    phone.folder.chmod(mode)
    org = directory.organisation()
    old = os.umask(0)
    try:
        phone.start().sign_in(directory.person(org))
        assert phone.app is not None
        phone.app.register()
    finally:
        os.umask(old)
    assert stat.S_IMODE(phone.folder.stat().st_mode) == mode
    files = [path for path in phone.folder.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_ABI_1_only_the_user_can_read_the_built_in_key_store_s_files(
    phone: Phone, directory: DirectoryFixtures
) -> None:
    kiosk = FilePhone(phone.folder, phone.library, phone.backend)
    kiosk.folder.mkdir(mode=0o755)
    old = os.umask(0)
    try:
        kiosk.start().sign_in(directory.person(directory.organisation()))
    finally:
        os.umask(old)
        kiosk.close()
    assert stat.S_IMODE((kiosk.folder / "keys").stat().st_mode) == 0o700
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (kiosk.folder / "keys").iterdir()}
    assert modes == {0o600}


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_ABI_1_a_world_writable_folder_is_refused(phone: Phone, mode: int) -> None:
    phone.folder.mkdir()
    phone.folder.chmod(mode)
    error = refused(phone)
    assert (error["code"], error["field"]) == ("request.invalid_value", "/data_dir")
    assert entries(phone.folder) == set(), "a refused folder was changed"
    assert stat.S_IMODE(phone.folder.stat().st_mode) == mode
    phone.folder.chmod(0o700)
    assert phone.start().screen["screen"] == "sign_in"


@needs_root
def test_ABI_1_the_folder_of_another_user_is_refused(phone: Phone) -> None:
    phone.folder.mkdir(mode=0o700)
    os.chown(phone.folder, NOBODY, NOBODY)
    error = refused(phone)
    assert (error["code"], error["field"]) == ("request.invalid_value", "/data_dir")
    assert entries(phone.folder) == set()


OPEN = """
import os, sys
from holdfast import HoldfastError
from support.phone import Phone
os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
try:
    Phone.from_spec(sys.argv[1]).start(online=False)
    print("opened")
except HoldfastError as error:
    print(error.status, error.code, error.field)
"""


@needs_root
def test_ABI_1_another_user_of_the_machine_is_refused(user: SignedIn) -> None:
    user.phone.close()
    files = {path: path.read_bytes() for path in user.phone.folder.iterdir()}
    for mode in (0o700, 0o755):
        user.phone.folder.chmod(mode)
        done = children.run_text(OPEN, user.phone.spec(), str(NOBODY)).check()
        assert done.output.strip() == "1 request.invalid_value /data_dir"
        assert {path: path.read_bytes() for path in user.phone.folder.iterdir()} == files


@needs_root
@pytest.mark.parametrize("before", ["empty", "used"])
def test_ABI_1_a_folder_without_write_permission_is_refused(
    phone: Phone, directory: DirectoryFixtures, before: str
) -> None:
    if before == "used":
        phone.start().sign_in(directory.person(directory.organisation()))
        phone.close()
    else:
        phone.folder.mkdir()
    for path in (phone.folder, *phone.folder.iterdir()):
        os.chown(path, NOBODY, NOBODY)
        path.chmod(0o500 if path.is_dir() else 0o400)
    files = {path: path.read_bytes() for path in phone.folder.iterdir()}
    done = children.run_text(OPEN, phone.spec(), str(NOBODY)).check()
    assert done.output.strip() == "6 storage.read_only None"
    assert {path: path.read_bytes() for path in phone.folder.iterdir()} == files


def test_ABI_1_a_link_to_a_folder_is_followed(
    phones: MakePhone, directory: DirectoryFixtures
) -> None:
    phone = phones()
    place = phone.folder.with_name("elsewhere")
    place.mkdir(mode=0o700)
    phone.folder.symlink_to(place)
    person = directory.person(directory.organisation())
    phone.start().sign_in(person)
    assert phone.app is not None
    item = phone.app.register()
    assert {"holdfast.db", "cache.db"} <= entries(place)
    assert phone.folder.is_symlink()
    twin = Phone(place, phone.library, phone.backend)
    twin.keychain = phone.keychain
    with_other_name = twin.start(online=False)
    assert [kept["id"] for kept in with_other_name.queue_list()["items"]] == [item]
    other = with_other_name.register()
    assert {kept["id"] for kept in phone.app.queue_list()["items"]} == {item, other}
    twin.close()


def test_ABI_1_a_dangling_link_or_a_link_to_an_open_folder_is_refused(phone: Phone) -> None:
    phone.folder.symlink_to(phone.folder.with_name("nowhere"))
    assert refused(phone)["code"] == "storage.failed"
    assert not phone.folder.with_name("nowhere").exists()
    phone.folder.unlink()
    everybody_s = phone.folder.with_name("everybody-s")
    everybody_s.mkdir()
    everybody_s.chmod(0o777)
    phone.folder.symlink_to(everybody_s)
    assert refused(phone)["code"] == "request.invalid_value"
    phone.folder.unlink()
    phone.folder.symlink_to(phone.folder)
    assert refused(phone)["code"] == "storage.failed"


def test_ABI_1_a_file_or_folder_of_the_wrong_type_has_a_defined_result(phone: Phone) -> None:
    phone.folder.write_text("a file")
    assert refused(phone)["code"] == "request.invalid_value"
    assert phone.folder.read_text() == "a file"
    phone.folder.unlink()
    for name in ("holdfast.db", "cache.db"):
        (phone.folder / name).mkdir(parents=True)
        if name == "holdfast.db":
            assert refused(phone)["code"] == "storage.failed"
        else:
            # The cache can be fetched again, so its failure does not stop the start.
            assert phone.start().screen["screen"] == "sign_in"
            phone.close()
        (phone.folder / name).rmdir()


def test_ABI_1_an_impossible_path_is_refused(phone: Phone) -> None:
    for name in ("\u0000", "a" * 300, "a/" * 3000, "/dev/null/x", "/proc/x"):
        phone.config["data_dir"] = name if name.startswith("/") else str(phone.folder / name)
        assert refused(phone)["code"].startswith(("request.", "storage.")), name[:20]
    phone.config["data_dir"] = ""
    assert refused(phone)["code"].startswith(("request.", "storage."))


TINY = """
import json, sys
from holdfast import HoldfastError
from support.phone import Phone
phone = Phone.from_spec(sys.argv[1])
filler = open(sys.argv[2], "wb", buffering=0)
codes = []
def fill():
    for size in (65536, 4096, 1):
        try:
            while True:
                filler.write(bytes(size))
        except OSError:
            pass
fill()
try:
    phone.start(online=False)
except HoldfastError as error:
    codes.append(f"{error.status} {error.code}")
filler.truncate(0)
app = phone.start(online=False)
print(json.dumps([codes, app.screen["screen"]]))
"""


def test_ABI_1_a_first_start_on_a_full_disk_is_refused_until_there_is_room(
    phone: Phone, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    phone.config["data_dir"] = str(disk / "phone")
    command = [sys.executable, "-c", TINY, phone.spec(), str(disk / "filler")]
    mount = f"mount -t tmpfs -o size=512k,mode=700 tmpfs {disk}"
    done = children.isolated(command, mount)
    assert done.returncode == 0, done.stderr
    codes, screen = json.loads(done.stdout)
    assert codes == ["7 storage.full"]
    assert screen == "sign_in"


def test_ABI_1_a_first_start_on_a_read_only_disk_is_refused(phone: Phone, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    phone.config["data_dir"] = str(disk / "phone")
    command = [sys.executable, "-c", OPEN, phone.spec(), str(os.geteuid())]
    done = children.isolated(command, f"mount -t tmpfs -o ro tmpfs {disk}")
    assert done.stdout.strip() == "6 storage.read_only None", (done.stdout, done.stderr)


def test_ABI_1_two_handles_in_one_process_see_each_other(
    user: SignedIn, directory: DirectoryFixtures
) -> None:
    user.app.go_offline()
    second = Phone(user.phone.folder, user.phone.library, user.phone.backend)
    second.keychain = user.phone.keychain
    second.now_ms, second.monotonic_ms = user.phone.now_ms, user.phone.monotonic_ms
    other = second.start(online=False)
    first, later = user.app.register(minutes=1), other.register(minutes=2)
    edit(other, first, 7)
    user.app.queue_cancel({"id": later})
    seen = [[item["id"] for item in app.queue_list()["items"]] for app in (user.app, other)]
    assert seen == [[first], [first]]
    second.close()
    assert error_of(other.queue_list).code == "handle.closed"
    user.app.go_online()
    drain(user.app)
    assert stored(directory, user.person) == [first]
    assert [row["minutes"] for row in directory.activities(user.person)] == [7]
    # A logout through one is a logout for all.
    other = second.start(online=False)
    user.app.session_logout()
    assert other.session_status()["state"] == "signed_out"
    second.close()
