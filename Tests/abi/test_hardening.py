"""What others could have put into the data folder (LCK-6), locks that are held or fail, memory."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import children
from support.damage import destroy_header
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of, error_of_open
from support.phone import FilePhone, Phone
from support.users import MakePhone, MakeUser, SignedIn

pytestmark = pytest.mark.both_flavours

NOBODY = 65534

needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root to change the owner of a file"
)

KEYS = ["keys/device.key", "keys/session.key", "keys/biometric.key"]
FILES = [
    "holdfast.db",
    "holdfast.db-wal",
    "holdfast.db-shm",
    "cache.db",
    "cache.db-wal",
    "cache.db-shm",
    "holdfast.db.damaged",
    "holdfast.handles",
    "holdfast.reserve",
    *KEYS,
]


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Every entry with its content, owner, mode and time of the last change."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        status = path.lstat()
        content: object = os.readlink(path) if path.is_symlink() else None
        if stat.S_ISREG(status.st_mode):
            content = path.read_bytes()
        modified = None if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        found[str(path)] = (status.st_mode, status.st_uid, status.st_gid, modified, content)
    return found


@pytest.fixture
def used(phones: MakePhone, directory: DirectoryFixtures, tmp_path: Path) -> FilePhone:
    """A folder with every file that the library makes, as a killed process leaves it."""
    first = phones()
    kiosk = FilePhone(first.folder, first.library, first.backend)
    org = directory.organisation(contacts=1)
    app = kiosk.start()
    app.sign_in(directory.person(org))
    app.register()
    place = tmp_path / "used"
    shutil.copytree(kiosk.folder, place)
    # A recovery that was cut short leaves this file.
    (place / "holdfast.db.damaged").touch(mode=0o600)
    kiosk.close()
    kiosk.folder = place
    kiosk.config["data_dir"] = str(place)
    missing = [name for name in FILES if not (place / name).exists()]
    assert missing == [], "the test leaves files out"
    return kiosk


def opens(phone: Phone) -> None:
    """The folder is in order again."""
    (phone.folder / "holdfast.db.damaged").unlink(missing_ok=True)
    assert phone.start(online=False).screen["screen"] == "home"
    phone.close()


def refused_unchanged(phone: Phone, name: str, reason: str) -> None:
    """open() names the file and the reason, and changes nothing: another case may follow."""
    before = snapshot(phone.folder.parent)
    error = error_of_open(phone.library, phone.config)
    assert error["code"] == "storage.not_private"
    assert error["detail"] == {"file": name, "reason": reason}
    assert error["message"].startswith(f"{name} ")
    assert not error["retryable"]
    assert snapshot(phone.folder.parent) == before, "a refused folder was changed"


Fault = Callable[[Path], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def of_another_user(path: Path) -> Iterator[None]:
    os.chown(path, NOBODY, NOBODY)
    yield
    os.chown(path, os.geteuid(), os.getegid())


def with_mode(bits: int) -> Fault:
    @contextlib.contextmanager
    def changed(path: Path) -> Iterator[None]:
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | bits)
        yield
        path.chmod(mode)

    return changed


@contextlib.contextmanager
def linked(path: Path) -> Iterator[None]:
    elsewhere = path.with_name("elsewhere")
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    yield
    path.unlink()
    elsewhere.rename(path)


@contextlib.contextmanager
def named_twice(path: Path) -> Iterator[None]:
    elsewhere = path.with_name("elsewhere")
    os.link(path, elsewhere)
    yield
    elsewhere.unlink()


#: What is wrong with one of these files, and the reason that open() gives.
FAULTS: dict[str, tuple[Fault, list[str], str]] = {
    "the owner": (of_another_user, [*FILES, "keys"], "owner"),
    "all may write": (with_mode(stat.S_IWOTH), [*FILES, "keys"], "writable"),
    "a link": (linked, [*FILES, "keys"], "link"),
    "two names": (named_twice, FILES, "second_name"),
    "a group reads a key": (with_mode(stat.S_IRGRP), KEYS, "readable"),
    "all read a key": (with_mode(stat.S_IROTH), KEYS, "readable"),
}


@pytest.mark.parametrize(
    "fault", [pytest.param(f, marks=needs_root if "own" in f else ()) for f in FAULTS]
)
def test_LCK_6_a_file_that_others_could_change_or_read_is_refused(
    used: FilePhone, fault: str
) -> None:
    change, names, reason = FAULTS[fault]
    for name in names:
        with change(used.folder / name):
            refused_unchanged(used, name, reason)
    opens(used)


@needs_root
def test_LCK_6_a_file_that_a_group_may_write_is_refused(used: FilePhone) -> None:
    is_private = os.getegid() == os.geteuid()
    for name in ("holdfast.db", "holdfast.handles", "keys", KEYS[0]):
        path = used.folder / name
        mode = stat.S_IMODE(path.stat().st_mode)
        os.chown(path, -1, NOBODY)
        path.chmod(mode | stat.S_IWGRP)
        refused_unchanged(used, name, "writable")
        os.chown(path, -1, os.getegid())
        if not is_private:
            path.chmod(mode)
    opens(used)


@needs_root
@pytest.mark.parametrize(("group", "code"), [(NOBODY, None), (1, "request.invalid_value")])
def test_LCK_6_only_the_private_group_may_write_the_folder(
    used: FilePhone, open_to_all: Path, group: int, code: str | None
) -> None:
    (used.folder / "holdfast.db.damaged").unlink()
    folder = shutil.copytree(used.folder, open_to_all / "used")
    for path in [folder, *folder.rglob("*")]:
        os.chown(path, NOBODY, group)
    folder.chmod(0o770)
    before = snapshot(folder)
    config = json.dumps({**used.config, "data_dir": str(folder)})
    done = children.run_text(OPEN, str(used.library.path), config, str(group))
    [status, reply] = json.loads(done.check().output)
    assert status == (1 if code else 0)
    if code:
        assert (reply["error"]["code"], reply["error"]["field"]) == (code, "/data_dir")
        assert reply["error"]["detail"] == {"reason": "writable"}
        assert "chmod" in reply["error"]["message"]
        assert snapshot(folder) == before


#: Opens a folder as the user NOBODY of a group, and prints status and reply.
OPEN = """
import json, os, sys
from holdfast import Library
if len(sys.argv) > 3:
    os.setgroups([]), os.setgid(int(sys.argv[3])), os.setuid(65534)
library = Library(sys.argv[1])
handle, (status, reply) = library.open(sys.argv[2].encode(), None)
library.close(handle)
print(json.dumps([status, json.loads(reply)]))
"""


def test_LCK_6_a_link_to_nothing_makes_no_file(used: FilePhone) -> None:
    elsewhere, kept = used.folder.with_name("elsewhere"), used.folder.with_name("kept")
    for name in ("holdfast.db", "holdfast.db-wal", "holdfast.handles", KEYS[1]):
        path = used.folder / name
        path.rename(kept)
        path.symlink_to(elsewhere)
        refused_unchanged(used, name, "link")
        assert not elsewhere.exists(), name
        path.unlink()
        kept.rename(path)


def test_LCK_6_a_pipe_in_the_place_of_a_file_is_refused(used: FilePhone) -> None:
    names = (*FILES[:2], "holdfast.db-journal", "holdfast.db.damaged", KEYS[0])
    folders = []
    for number, name in enumerate(names):
        folder = used.folder.with_name(f"pipe-{number}")
        shutil.copytree(used.folder, folder)
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name, 0o600)
        folders.append(str(folder))
    config = json.dumps(used.config)
    done = children.run_text(OPEN_EACH, str(used.library.path), config, *folders).check()
    for name, line in zip(names, done.output.splitlines(), strict=True):
        error = json.loads(line)["error"]
        assert error["code"] == "storage.not_private", name
        assert error["detail"] == {"file": name, "reason": "no_file"}


#: Opens the folders one after the other, and prints each reply.
OPEN_EACH = """
import json, sys
from holdfast import Library
library = Library(sys.argv[1])
for folder in sys.argv[3:]:
    config = json.loads(sys.argv[2]) | {"data_dir": folder}
    handle, (status, reply) = library.open(json.dumps(config).encode(), None)
    library.close(handle)
    print(reply.decode())
"""


@pytest.mark.parametrize("fault", ["owner", "link"])
def test_LCK_6_a_damaged_file_is_not_read_through_others(sign_in: MakeUser, fault: str) -> None:
    if fault == "owner" and os.geteuid() != 0:
        pytest.skip("needs root to change the owner of a file")
    user = sign_in()
    queued = user.offline().register()
    user.phone.close()
    destroy_header(user.phone.folder)
    user.phone.keychain.unlocked_since_boot = False
    user.phone.open()
    user.phone.close()
    [aside] = user.phone.folder.glob("holdfast.db.damaged-*")
    elsewhere = user.phone.folder.with_name("elsewhere")
    if fault == "owner":
        os.chown(aside, NOBODY, NOBODY)
    else:
        aside.rename(elsewhere)
        aside.symlink_to(elsewhere)
    user.phone.keychain.unlocked_since_boot = True
    error = error_of(lambda: user.phone.start(online=False))
    assert error.code == "storage.not_private"
    assert aside.name in str(error)
    if fault == "owner":
        os.chown(aside, os.geteuid(), os.getegid())
    else:
        aside.unlink()
        elsewhere.rename(aside)
    app = user.phone.start(online=False)
    assert [item["id"] for item in app.queue_list()["items"]] == [queued]


# Finding 9: locks ------------------------------------------------------------------------------


def open_apart(phone: FilePhone, program: str, env: dict[str, str]) -> tuple[int, Any]:
    """Open the folder in a process of its own; the status and the reply."""
    arguments = (str(phone.library.path), json.dumps(phone.config))
    [status, reply] = json.loads(children.run_text(program, *arguments, env=env).check().output)
    return status, reply


def test_ABI_1_a_lock_that_somebody_keeps_ends_the_open(
    used: FilePhone, sleepless: dict[str, str]
) -> None:
    opens(used)
    before = (used.folder / "holdfast.db").read_bytes()
    lock = os.open(used.folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    status, reply = open_apart(used, OPEN, sleepless)
    os.close(lock)
    assert (status, reply["error"]["code"]) == (8, "storage.busy")
    assert reply["error"]["retryable"]
    assert (used.folder / "holdfast.db").read_bytes() == before
    opens(used)


def test_ABI_1_an_exclusive_lock_on_the_data_ends_the_open(
    used: FilePhone, sleepless: dict[str, str]
) -> None:
    opens(used)
    database = sqlite3.connect(used.folder / "holdfast.db", isolation_level=None)
    with contextlib.closing(database):
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
        database.execute("BEGIN EXCLUSIVE")
        status, reply = open_apart(used, OPEN, sleepless)
        database.execute("ROLLBACK")
    assert (status, reply["error"]["code"]) == (8, "storage.busy")
    opens(used)


WITHOUT_LOCKS = """
import ctypes, errno
ctypes.CDLL(None).killer_lock_fails(errno.ENOLCK)
"""


def test_ABI_1_a_lock_that_fails_is_an_error(used: FilePhone, killer: Path) -> None:
    opens(used)
    before = snapshot(used.folder)
    status, reply = open_apart(used, WITHOUT_LOCKS + OPEN, {"LD_PRELOAD": str(killer)})
    assert (status, reply["error"]["code"]) == (6, "storage.failed")
    assert reply["error"]["detail"]["errno"] > 0
    assert snapshot(used.folder) == before
    opens(used)


def test_LCK_3_a_file_after_vacuum_is_no_damage(user: SignedIn) -> None:
    """VACUUM stores the entries of the schema in another order."""
    queued = user.offline().register()
    user.phone.close()
    query = "SELECT name FROM sqlite_master"
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as database:
        before = database.execute(query).fetchall()
        database.execute("VACUUM")
        assert database.execute(query).fetchall() != before
    app = user.restart(online=False)
    assert not app.opened["recovered"]
    assert [item["id"] for item in app.queue_list()["items"]] == [queued]


@pytest.mark.parametrize(
    ("words", "others"),
    [
        # A type of four names, and no rule.
        ("item BLOB NOT NULL UNIQUE", 'item "BLOB" "NOT" "NULL" "UNIQUE"'),
        ("item BLOB NOT NULL UNIQUE", 'item BLOB NOT NULL "unique"'),
        ("locked INTEGER NOT NULL DEFAULT 0", "locked INTEGER NOT NULL DEFAULT 0 CHECK(locked=0)"),
        ("WHERE state = 2", "WHERE state = 3"),
    ],
)
def test_LCK_3_a_schema_that_says_something_else_is_damage(
    user: SignedIn, words: str, others: str
) -> None:
    queued = user.offline().register()
    user.phone.close()
    change = f"UPDATE sqlite_master SET sql = replace(sql, '{words}', '{others}') WHERE sql LIKE ?"
    with contextlib.closing(sqlite3.connect(user.phone.folder / "holdfast.db")) as file, file:
        file.execute("PRAGMA writable_schema=ON")
        assert file.execute(change, [f"%{words}%"]).rowcount > 0
    app = user.restart(online=False)
    assert app.opened["recovered"]
    assert [item["id"] for item in app.queue_list()["items"]] == [queued]


# Finding 16: memory ----------------------------------------------------------------------------

UNLOCKED = """
import json, os, resource, sys
from holdfast import Library
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
limit = int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
library, lines = Library(sys.argv[1]), []
def run():
    for _ in range(2):
        handle, (status, reply) = library.open(sys.argv[2].encode(), None)
        assert status == 0, reply
        assert library.call("session_resume", handle, None)[0] == 0
        library.close(handle)
if sys.argv[4] == "late":
    run()
library.set_log(1, lambda level, line: lines.append(line))
run()
print(json.dumps(lines))
"""


@pytest.mark.parametrize("listener", ["early", "late"])
@pytest.mark.parametrize(("limit", "warnings"), [(0, 1), (1 << 20, 0)])
def test_SES_12_memory_that_cannot_be_locked_is_told_once(
    phone: Phone, open_to_all: Path, listener: str, limit: int, warnings: int
) -> None:
    kiosk = FilePhone(open_to_all / "kiosk", phone.library, phone.backend, clock="system")
    kiosk.folder.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(kiosk.folder, NOBODY, NOBODY)
    arguments = (str(phone.library.path), json.dumps(kiosk.config), str(limit), listener)
    lines = json.loads(children.run_text(UNLOCKED, *arguments).check().output)
    assert [line for line in lines if "RLIMIT_MEMLOCK" in line] == lines
    assert len(lines) == warnings
