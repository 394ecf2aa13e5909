"""A handle that was in learns that the user locked, though somebody keeps it from hearing (LCK-1).

The attacker has the app's rights: puts older files back in place, leaves the process without a
watch, moves folders, kills the process that locks. `test_lock_elsewhere.py` has the lock that is
heard.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from holdfast import HoldfastError
from holdfast.keystore import KEY_FAILED

from conftest import MakeUser, SignedIn
from support import children, history
from support.elsewhere import ENDS, FIRST, ended_by_another_process
from support.phone import App
from support.sizes import crossed

#: What an attacker with the rights of the app can do is not proved at every commit.
pytestmark = pytest.mark.slow

ERASE = ("erase", "session")
#: Both ends go the same way through the key store and the notice; a logout is slow.
each_end = pytest.mark.parametrize("end", crossed(ENDS, fast=lambda end: end == "session_lock"))


@contextmanager
def child(
    script: str, user: SignedIn, *arguments: str, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """A process on the user's folder, which goes on at each line."""
    command = children.command(script, user.phone.spec(), *arguments)
    with subprocess.Popen(
        command,
        env=children.environment(env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            assert process.stdin
            process.stdin.close()
            process.wait(60 * children.PATIENCE)


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


# No watch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "first"),
    crossed(
        ENDS,
        FIRST,
        fast=lambda *case: case in {("session_lock", "poll"), ("session_logout", "session_resume")},
    ),
)
def test_LCK_1_a_lock_is_heard_without_a_watch(
    sign_in: MakeUser, no_watch: dict[str, str], end: str, first: str
) -> None:
    """All inotify instances are taken: the handle heard of no other process."""
    user = sign_in(contacts=1)
    # Given a process without a watch in which the user is in
    with child("stays_in.py", user, first, env=no_watch) as process:
        assert said(process) == "in"
        before = history.all_files(user.phone.folder)
        # When this process ends the session, and the files are older ones when the other looks
        ENDS[end](user.app)
        history.put_back(user.phone.folder, before)
        tell(process)
        # Then
        assert said(process) == "closed"


@each_end
def test_LCK_1_a_lock_reaches_a_process_without_a_watch_in_the_background(
    sign_in: MakeUser, no_watch: dict[str, str], end: str
) -> None:
    """The key store has no key that a lock could erase, and the process heard of no lock."""
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    with child("stays_in.py", user, "background", env=no_watch) as process:
        assert said(process) == "in"
        before = history.all_files(user.phone.folder)
        ENDS[end](user.app)
        history.put_back(user.phone.folder, before)
        tell(process)
        assert said(process) == "closed"


@pytest.mark.parametrize("makes_file", [False, True])
def test_LCK_1_without_a_watch_a_process_comes_back_from_the_background_beside_others(
    sign_in: MakeUser, no_watch: dict[str, str], makes_file: bool
) -> None:
    """What another process does besides locking leaves the session in memory. Attack 6, L7: a new
    file in the folder counted as a move, and ended the session."""
    user = sign_in(policy={"lock_on_background": "at_once", "biometric": "off"})
    user.phone.close()
    with child("stays_in.py", user, "come back", env=no_watch) as process:
        assert said(process) == "in"
        # When this process opens the folder, changes it and closes
        with history.start(user.phone, user.phone.folder) as other:
            other.session_resume()
            other.network_set({"online": False})
        if makes_file:
            (user.phone.folder / "new").touch()
        tell(process)
        assert said(process) == "home"


# The folder is another one meanwhile ------------------------------------------------------------


def move_in(user: SignedIn, folder: Path, *, by: Path | None = None) -> None:
    """Go on with the phone's folder at this path, opened at the path `by`."""
    user.phone.close()
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    user.phone.folder.rename(folder)
    user.phone.folder = folder
    user.phone.config["data_dir"] = str(by or folder)
    user.app = user.phone.start()


@pytest.mark.parametrize(
    ("what", "end"),
    crossed(
        ["the folder", "the one above", "a link"],
        ENDS,
        fast=lambda what, end: (end == "session_logout") == (what == "the one above"),
    ),
)
def test_LCK_1_a_lock_in_a_copy_of_the_folder_closes_the_first(
    sign_in: MakeUser, end: str, what: str
) -> None:
    """Nobody told the handle: the lock was told by the files of the copy."""
    # Given a handle in which the user is in
    user = sign_in(contacts=1)
    base = user.phone.folder.with_name("base")
    folder, link = base / "above" / "data", base / "link"
    if what == "a link":
        base.mkdir(mode=0o700)
        link.symlink_to(folder)
    move_in(user, folder, by=link if what == "a link" else None)
    user.app.settle()
    user.app.session_status()
    # When the user locks in a copy that is in its place, and it comes back
    place = {"the folder": folder, "the one above": folder.parent, "a link": link}[what]
    away = place.with_name("away")
    place.rename(away)
    if what == "a link":
        shutil.copytree(folder, base / "copy")
        place.symlink_to(base / "copy")
    else:
        shutil.copytree(away, place)
    with ended_by_another_process(user, end):
        place.rename(place.with_name("copied"))
        away.rename(place)
        # Then
        history.assert_closed(user.app, user.phone)


@each_end
def test_LCK_1_without_a_watch_a_lock_behind_a_link_closes_the_first(
    sign_in: MakeUser,
    no_watch: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
    end: str,
) -> None:
    """Review 7, 5: only the path without links was looked at, and nothing on it had changed."""
    # Given a process without a watch on a folder behind a link, away from the keychain's file
    user = sign_in(contacts=1)
    folder, links = tmp_path_factory.mktemp("data") / "data", tmp_path_factory.mktemp("links")
    link = links / "link"
    link.symlink_to(folder)
    move_in(user, folder, by=link)
    user.phone.close()
    keychain = str(user.phone.keychain.path)
    with child("stays_in.py", user, "session_status", keychain, env=no_watch) as process:
        assert said(process) == "in"
        # When the link leads to a copy in which the user locks, and then to the folder again
        shutil.copytree(folder, links / "copy")
        link.unlink()
        link.symlink_to(links / "copy")
        with ended_by_another_process(user, end):
            link.unlink()
            link.symlink_to(folder)
            # Then
            tell(process)
            assert said(process) == "closed"


@each_end
def test_LCK_1_a_lock_in_a_copy_closes_a_handle_in_the_background(
    sign_in: MakeUser, end: str
) -> None:
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    user.app.session_background()
    folder = user.phone.folder
    away = folder.with_name("away")
    folder.rename(away)
    shutil.copytree(away, folder)
    with ended_by_another_process(user, end):
        folder.rename(folder.with_name("copied"))
        away.rename(folder)
        assert user.app.session_foreground()["screen"] in {"unlock", "sign_in"}
        history.assert_closed(user.app, user.phone)


def test_LCK_1_a_lock_is_heard_though_the_notice_was_away(sign_in: MakeUser) -> None:
    """The lock was told by the file that stood in for the notice."""
    user = sign_in(contacts=1)
    user.app.session_status()
    before = history.all_files(user.phone.folder)
    notice = user.phone.folder / "holdfast.notice"
    away = notice.with_name("holdfast.notice.away")
    notice.rename(away)
    notice.touch(mode=0o600)
    with ended_by_another_process(user, "session_lock"):
        away.rename(notice)
        history.put_back(user.phone.folder, before)
        history.assert_closed(user.app, user.phone)


def test_LCK_1_a_moved_folder_leaves_the_session_open(sign_in: MakeUser) -> None:
    """Nobody locked: who moves a folder and back locks nobody out."""
    user = sign_in(contacts=1)
    folder = user.phone.folder
    folder.rename(folder.with_name("away"))
    folder.with_name("away").rename(folder)
    assert user.app.session_status()["state"] == "active"
    assert user.app.session_resume()["screen"] in {"home", "wait"}


@pytest.mark.parametrize("what", ["the notice was removed", "a folder above was moved"])
@pytest.mark.parametrize("biometric", ["preferred", "off"])
def test_LCK_5_a_folder_that_was_touched_once_ends_no_session_in_the_background(
    sign_in: MakeUser, what: str, biometric: str
) -> None:
    """Attack 6, L2: every later return asked for the finger, or for the sign-in without one."""
    user = sign_in(policy={"lock_on_background": "at_once", "biometric": biometric})
    folder = user.phone.folder
    move_in(user, folder.with_name("above") / "data")
    user.app.settle()
    if what == "the notice was removed":
        (user.phone.folder / "holdfast.notice").unlink()
    else:
        folder.with_name("above").rename(folder.with_name("away"))
        folder.with_name("away").rename(folder.with_name("above"))
    for _ in range(3):
        user.app.session_background()
        user.app.poll()
        assert user.app.session_foreground()["screen"] == "home"
    assert user.app.session_status()["state"] == "active"


def test_LCK_1_a_notice_that_cannot_be_used_keeps_no_host_busy(sign_in: MakeUser) -> None:
    """Attack 6, L4: each poll asked for the next one at once."""
    user = sign_in()
    notice = user.phone.folder / "holdfast.notice"
    notice.unlink()
    notice.mkdir()
    user.app.settle()
    for _ in range(4):
        user.app.poll()
        user.app.session_status()
        assert not select.select([user.app.wake_fd()], [], [], 0)[0]


# The key is saved while another handle locks ----------------------------------------------------


@each_end
def test_LCK_1_a_lock_in_another_file_counts_while_a_key_is_saved(
    sign_in: MakeUser, end: str
) -> None:
    """Attack 6, 1: the write locks of two files do not exclude each other, so the key that a lock
    had erased was saved again after it."""
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    user.app.session_background()
    folder = user.phone.folder
    files = [path for path in folder.iterdir() if path.name.startswith("holdfast.db")]
    ended = []

    def lock_meanwhile(call: str, name: str) -> None:
        if (call, name) != ("save", "session") or ended:
            return
        ended.append(end)
        # Given another main file in place of the first one, in which the user locks
        for path in files:
            shutil.copy(path, folder / f"{path.name}.copy")
            path.rename(folder / f"{path.name}.away")
            (folder / f"{path.name}.copy").rename(path)
        with ended_by_another_process(user, end):
            pass
        for path in files:
            (folder / f"{path.name}.away").rename(path)

    user.phone.keychain.watch = lock_meanwhile
    shown = user.app.session_foreground()["screen"]
    assert ended
    assert shown in {"unlock", "sign_in"}
    # Then
    assert "session" not in user.phone.keychain.names()
    history.assert_closed(user.app, user.phone)


# The process that locks is killed ---------------------------------------------------------------


@contextmanager
def dies_while_it_locks(user: SignedIn, who: str, looks: Callable[[], None]) -> Iterator[None]:
    """A process is killed as soon as it has erased the key; the other one looks before that."""
    with child("locks_and_dies.py", user, who) as locker:
        assert said(locker) == "erasing"
        looks()
        tell(locker)
        assert said(locker) == "erased"
        os.kill(locker.pid, signal.SIGKILL)
        assert locker.wait(60 * children.PATIENCE) == -signal.SIGKILL
        yield


@pytest.mark.parametrize("who", ["alone", "with a child", "without a watch"])
def test_LCK_1_a_lock_counts_though_its_process_is_killed(
    sign_in: MakeUser, no_watch: dict[str, str], who: str
) -> None:
    """The handle asked the key store before the key was erased, and then nobody told it: the
    notice stayed open in a child of the killed process."""
    user = sign_in(contacts=1)
    env = no_watch if who == "without a watch" else None
    with child("stays_in.py", user, "twice", env=env) as process:
        assert said(process) == "in"

        def looks() -> None:
            tell(process)
            assert said(process) == "looked"

        with dies_while_it_locks(user, who, looks):
            tell(process)
            assert said(process) == "closed"


@pytest.mark.parametrize("who", ["alone", "with a child"])
def test_LCK_1_a_killed_lock_reaches_a_handle_that_goes_to_the_background(
    sign_in: MakeUser, who: str
) -> None:
    """The handle found no key when it was to erase it, and stayed open all the same."""
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    with child("stays_in.py", user, "leaves") as process:
        assert said(process) == "in"

        def looks() -> None:
            tell(process)
            assert said(process) == "looked"

        with dies_while_it_locks(user, who, looks):
            tell(process)
            assert said(process) == "closed"


@pytest.mark.parametrize("way", ["by its name", "by a second name"])
def test_LCK_1_a_killed_lock_counts_though_it_held_another_notice(
    sign_in: MakeUser, way: str
) -> None:
    """The lock began with another file in the notice's place, and the first one came back before
    the key was erased."""
    user = sign_in(contacts=1)
    notice = user.phone.folder / "holdfast.notice"
    away = notice.with_name("holdfast.notice.away")
    with child("stays_in.py", user, "twice") as process:
        assert said(process) == "in"
        if way == "by its name":
            notice.rename(away)
        else:
            away.hardlink_to(notice)
            notice.unlink()
        notice.touch(mode=0o600)

        def looks() -> None:
            if way == "by its name":
                away.rename(notice)
            else:
                notice.unlink()
                notice.hardlink_to(away)
                away.unlink()
                os.utime(notice)
            tell(process)
            assert said(process) == "looked"

        with dies_while_it_locks(user, "with a child", looks):
            tell(process)
            assert said(process) == "closed"


# An erasure that is owed ------------------------------------------------------------------------


@each_end
def test_LCK_1_a_key_that_is_owed_is_erased_though_older_files_do_not_say_so(
    sign_in: MakeUser, end: str
) -> None:
    """The next call read from the older files that no erasure was owed, and forgot it."""
    # Given a lock for which the key store did not erase the key
    user = sign_in(contacts=1)
    before = history.all_files(user.phone.folder)
    user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
    ENDS[end](user.app)
    assert "session" in user.phone.keychain.names()
    # When older files are back, and the key store works again after some calls
    history.put_back(user.phone.folder, before)
    user.app.session_status()
    assert "erase" in user.app.session_status()["owed"]
    user.phone.keychain.forget_script()
    user.app.session_status()
    # Then
    assert "session" not in user.phone.keychain.names()
    history.assert_closed(user.app, user.phone)


def test_LCK_1_a_key_that_is_owed_is_not_confused_with_a_later_one(sign_in: MakeUser) -> None:
    """Another handle unlocks meanwhile: its key stays."""
    user = sign_in(contacts=1)
    with history.start(user.phone, user.phone.folder) as other:
        user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
        other.session_lock()
        user.phone.keychain.forget_script()
        # When the user unlocks in another handle before the first one's next call
        user.phone.keychain.present_finger()
        assert user.app.session_unlock({"outcome": "success"})["screen"] in {"home", "wait"}
        # Then the first one leaves the new key alone
        other.session_status()
        assert "erase" not in other.session_status()["owed"]
        assert "session" in user.phone.keychain.names()
        assert user.app.session_status()["state"] == "active"


# A worker beside the app ------------------------------------------------------------------------


@pytest.mark.parametrize("first", crossed(FIRST, fast=lambda first: first == "poll"))
def test_LCK_5_a_worker_is_out_when_the_app_goes_to_the_background(
    sign_in: MakeUser, first: str
) -> None:
    """With `at_once` the session is open in the app's process only, and not in a worker's."""
    # Given a second process in which the user is in
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    with child("stays_in.py", user, first) as worker:
        assert said(worker) == "in"
        # When the app leaves the screen
        user.app.session_background()
        tell(worker)
        # Then the worker is out, and the app comes back
        assert said(worker) == "closed"
        assert user.app.session_foreground()["screen"] in {"home", "wait"}


# The watch loses news ---------------------------------------------------------------------------


def overflow(notice: Path) -> None:
    """More news than the system keeps for a process that does not look."""
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text(encoding="ascii"))
    for _ in range(most // 2 + 200):
        file = os.open(notice, os.O_RDWR)
        os.pread(file, 1, 0)
        os.close(file)


@pytest.fixture
def away(sign_in: MakeUser) -> SignedIn:
    """A handle in the background, in a folder of its own."""
    user = sign_in(contacts=1, policy={"lock_on_background": "at_once"})
    move_in(user, user.phone.folder.with_name("above") / "data")
    user.app.settle()
    user.app.session_background()
    return user


def test_LCK_5_lost_news_of_others_end_no_session_in_the_background(away: SignedIn) -> None:
    """Attack 6, L3: 16,384 notices of other processes ended it, as a lock would have."""
    with history.start(away.phone, away.phone.folder) as other:
        other.session_resume()
        overflow(away.phone.folder / "holdfast.notice")
        (away.phone.folder / "new").touch()
        for _ in range(2):
            assert away.app.session_foreground()["screen"] == "home"
            away.app.session_background()


@each_end
def test_LCK_1_a_lock_counts_though_its_news_was_lost(away: SignedIn, end: str) -> None:
    before = history.all_files(away.phone.folder)
    overflow(away.phone.folder / "holdfast.notice")
    with ended_by_another_process(away, end):
        history.put_back(away.phone.folder, before)
        assert away.app.session_foreground()["screen"] in {"unlock", "sign_in"}
        history.assert_closed(away.app, away.phone)


@pytest.mark.parametrize(
    ("end", "what"),
    crossed(
        ENDS,
        ["the folder", "the one above"],
        fast=lambda end, what: (end == "session_logout") == (what == "the folder"),
    ),
)
def test_LCK_1_a_lock_in_a_copy_counts_though_its_news_was_lost(
    away: SignedIn, end: str, what: str
) -> None:
    folder = away.phone.folder
    overflow(folder / "holdfast.notice")
    place = folder if what == "the folder" else folder.parent
    moved = place.with_name("moved")
    place.rename(moved)
    shutil.copytree(moved, place)
    with ended_by_another_process(away, end):
        place.rename(place.with_name("copied"))
        moved.rename(place)
        assert away.app.session_foreground()["screen"] in {"unlock", "sign_in"}
        history.assert_closed(away.app, away.phone)


@pytest.mark.parametrize("biometric", ["preferred", "off"])
def test_LCK_5_an_app_that_leaves_twice_comes_back(sign_in: MakeUser, biometric: str) -> None:
    """Attack 7, 1: the second `session_background` found no key, as after a lock, and ended the
    session."""
    user = sign_in(policy={"lock_on_background": "at_once", "biometric": biometric})
    user.app.session_background()
    user.app.session_background()
    assert user.app.session_foreground()["screen"] == "home"
    assert user.app.session_status()["state"] == "active"


# Nobody is kept busy ----------------------------------------------------------------------------


def turns(user: SignedIn) -> int:
    """How often a host's loop turns in a while. It looks at no result."""
    count = 0
    end = time.monotonic() + 0.5
    while time.monotonic() < end and count < 40:
        with contextlib.suppress(HoldfastError):
            user.app.poll()
        with contextlib.suppress(HoldfastError):
            user.app.wait(500)
        count += 1
    return count


@pytest.mark.parametrize("what", ["nobody may read it", "a second name", "the folder is removed"])
def test_LCK_5_a_folder_that_cannot_be_used_keeps_no_host_busy(
    sign_in: MakeUser, what: str
) -> None:
    """Attack 6: the notice was opened and closed at each call, which woke the host again; and
    without its folder each wait failed at once."""
    user = sign_in()
    user.app.settle()
    user.app.wait(0)
    notice = user.phone.folder / "holdfast.notice"
    if what == "nobody may read it":
        notice.chmod(0o400)
    elif what == "a second name":
        notice.unlink()
        (user.phone.folder / "recovery.lock").touch(mode=0o600)
        notice.hardlink_to(user.phone.folder / "recovery.lock")
    else:
        shutil.rmtree(user.phone.folder)
    turns(user)
    asked = user.phone.keychain.calls["load", "session"]
    assert turns(user) < 10
    # Every look at the notice asks the key store.
    assert user.phone.keychain.calls["load", "session"] - asked < 40
    assert not select.select([user.app.wake_fd()], [], [], 0)[0]


# A lock that is owed, and the user who unlocks --------------------------------------------------


@pytest.fixture
def owed(sign_in: MakeUser) -> Iterator[tuple[SignedIn, App]]:
    """Another handle has locked, and its key store did not erase the key. The user has unlocked."""
    user = sign_in(policy={"lock_on_background": "at_once"})
    with history.start(user.phone, user.phone.folder) as other:
        user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
        other.session_lock()
        user.phone.keychain.forget_script()
        user.phone.keychain.present_finger()
        assert user.app.session_unlock({"outcome": "success"})["screen"] in {"home", "wait"}
        user.app.settle()
        yield user, other


def test_LCK_5_who_unlocks_after_a_lock_that_is_owed_comes_back(
    owed: tuple[SignedIn, App],
) -> None:
    """Attack 6, L6: as long as the other handle, or a child of its process, held the notice, each
    return from the background asked for the finger."""
    user, _other = owed
    for _ in range(3):
        user.app.session_background()
        assert user.app.session_foreground()["screen"] == "home"
    assert user.app.session_status()["state"] == "active"


def test_LCK_5_a_closed_handle_holds_nothing_in_a_child(owed: tuple[SignedIn, App]) -> None:
    """Attack 6, L6: a child that was forked without exec has the notice open."""
    user, other = owed
    ends = os.pipe()
    if (child_id := os.fork()) == 0:
        os.close(ends[1])
        os.read(ends[0], 1)
        os._exit(0)
    try:
        other.close()
        user.app.session_status()
        asked = user.phone.keychain.calls["load", "session"]
        user.app.session_status()
        user.app.session_status()
        assert user.phone.keychain.calls["load", "session"] == asked
    finally:
        os.close(ends[1])
        os.close(ends[0])
        os.waitpid(child_id, 0)


def test_LCK_1_a_handle_that_does_not_poll_erases_a_key_that_is_owed(sign_in: MakeUser) -> None:
    """Attack 6: only `poll` looked whether another process, which had ended, owed an erasure."""
    user = sign_in()
    with history.start(user.phone, user.phone.folder) as other:
        user.phone.keychain.answer(*ERASE, *[KEY_FAILED] * 99)
        other.session_lock()
        user.app.session_status()
    assert "session" in user.phone.keychain.names()
    user.phone.keychain.forget_script()
    user.app.session_status()
    assert "session" not in user.phone.keychain.names()
