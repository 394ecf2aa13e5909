"""Pages of the main file that are cut, damaged, or written to another one's place."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import struct
from pathlib import Path

import pytest

from support.damage import PAGE, destroy_header, listed, recovered, root_of
from support.errors import error_of
from support.flips import FILES, INDEX
from support.screens import seen
from support.users import MakePhone, MakeUser, SignedIn


def filled(user: SignedIn, count: int, size: int) -> list[str]:
    """Register items whose rows fill several pages, and close the app."""
    user.app.go_offline()
    ids = [user.app.register(1 + number % 60, note="x" * size) for number in range(count)]
    user.phone.close()
    return ids


def leaves(folder: Path, table: str = "queue") -> list[int]:
    """The leaves of a table whose root is their parent."""
    data = (folder / FILES[0]).read_bytes()
    at = (root_of(folder, table) - 1) * PAGE
    assert data[at] == 5
    [count] = struct.unpack_from(">H", data, at + 3)
    cells = struct.unpack_from(f">{count}H", data, at + 12)
    children = [struct.unpack_from(">I", data, at + cell)[0] for cell in cells]
    return [*children, struct.unpack_from(">I", data, at + 8)[0]]


def cells_of(data: bytes, page: int) -> list[int]:
    """Where the rows of a leaf are in the file."""
    at = (page - 1) * PAGE
    assert data[at] == 13
    [count] = struct.unpack_from(">H", data, at + 3)
    return [at + cell for cell in struct.unpack_from(f">{count}H", data, at + 8)]


def copy_page(folder: Path, source: int, target: int) -> None:
    """As a disk does that writes a page to the place of another one."""
    path = folder / FILES[0]
    data = bytearray(path.read_bytes())
    data[(target - 1) * PAGE : target * PAGE] = data[(source - 1) * PAGE : source * PAGE]
    path.write_bytes(data)


# A file that is cut ------------------------------------------------------------


@pytest.mark.both_flavours
@pytest.mark.parametrize("index", ["with_index", "without_index"])
def test_ATK_3_a_file_cut_within_its_header_costs_nothing_of_its_log(
    user: SignedIn, index: str
) -> None:
    """SQLite takes a file of one byte for an empty one, too, and deletes its log."""
    user.app.go_offline()
    ids = [user.app.register(1 + number) for number in range(3)]
    folder, files = user.phone.folder, user.phone.folder.with_suffix(".files")
    shutil.copytree(folder, files)
    user.phone.close()
    log = (files / FILES[1]).read_bytes()
    failed = []
    for size in (0, 1, 2, 15, 16, 24, 99, 100, 101, 255, 510, 511, 512):
        shutil.rmtree(folder)
        shutil.copytree(files, folder)
        (folder / FILES[0]).write_bytes((files / FILES[0]).read_bytes()[:size])
        if index == "without_index":
            (folder / INDEX).unlink()
        for _ in range(2):
            app = user.phone.start(online=False)
            if app.screen["screen"] != "home" or listed(app) != ids:
                failed.append(f"{size}: {app.screen['screen']}, {len(listed(app))} items")
            said = [event["unreadable"] for event in recovered(app)]
            if any(said):
                failed.append(f"{size}: said {said}")
            user.phone.close()
        for aside in folder.glob("holdfast.db.damaged-*-wal"):
            assert aside.read_bytes() == log
    assert not failed, "\n".join(failed)


# A page in the place of another one ------------------------------------------------------------


@pytest.mark.both_flavours
@pytest.mark.parametrize(("count", "size"), [(60, 300), (70, 16_000)], ids=["small", "large"])
def test_ATK_3_an_item_lost_to_a_page_in_its_place_is_said_to_be_lost(
    user: SignedIn, count: int, size: int
) -> None:
    ids = filled(user, count, size)
    folder, files = user.phone.folder, user.phone.folder.with_suffix(".files")
    assert ((folder / FILES[0]).stat().st_size > 1 << 20) == (size > 1000)
    shutil.copytree(folder, files)
    pages = leaves(folder)
    assert len(pages) > 4
    failed = []
    for source, target in [(0, 1), (0, 4), (3, 1), (-1, 0), (0, -1)]:
        shutil.rmtree(folder)
        shutil.copytree(files, folder)
        copy_page(folder, pages[source], pages[target])
        app = user.phone.start(online=False)
        if size > 1000:
            # The damage is found when the items are sent.
            app.go_online()
            for _ in range(400):
                app.step()
                if app.of_type("storage_recovered"):
                    break
            app.go_offline()
        said = [event["unreadable"] for event in recovered(app)]
        if said != [True]:
            failed.append(
                f"{source} over {target}: said {said}, lost {set(ids) - set(listed(app))}"
            )
        user.phone.close()
    assert not failed, "\n".join(failed)


@pytest.mark.both_flavours
def test_ATK_3_a_row_of_the_queue_is_not_taken_for_the_session(user: SignedIn) -> None:
    ids = filled(user, 30, 300)
    folder, files = user.phone.folder, user.phone.folder.with_suffix(".files")
    shutil.copytree(folder, files)
    session = root_of(folder, "session")
    failed = []
    pages = leaves(folder)
    for source in [pages[0], pages[1], pages[-1], root_of(folder, "stored_item")]:
        shutil.rmtree(folder)
        shutil.copytree(files, folder)
        copy_page(folder, source, session)
        app = user.phone.start(online=False)
        # Then the session is lost, which is said, and it has not ended
        events = [(event["session"], event["unreadable"]) for event in recovered(app)]
        found = seen(app.screen)
        if found != ("sign_in", "session_missing") or events != [(False, True)]:
            failed.append(f"page {source}: {found}, {events}")
        app.go_online()
        app.sign_in(user.person)
        app.go_offline()
        if source in pages and not set(listed(app)) <= set(ids):
            failed.append(f"page {source}: {len(listed(app))} items")
        user.phone.close()
    assert not failed, "\n".join(failed)


# Rows that cannot be read ------------------------------------------------------------


@pytest.mark.both_flavours
@pytest.mark.parametrize("at", [1, 2, -2])
@pytest.mark.parametrize("wrong", [1, 2])
def test_ATK_3_a_number_that_reads_higher_costs_no_row_of_another_page(
    user: SignedIn, at: int, wrong: int
) -> None:
    ids = filled(user, 100, 300)
    folder = user.phone.folder
    page = leaves(folder)[at]
    path = folder / FILES[0]
    data = bytearray(path.read_bytes())
    cells = cells_of(data, page)
    numbers = []
    for cell in cells:
        assert data[cell] & 0x80
        assert not data[cell + 1] & 0x80
        assert not data[cell + 2] & 0x80
        numbers.append(data[cell + 2])
    for cell in cells[:wrong]:
        # The number's byte becomes the first one of two.
        data[cell + 2] |= 0x80
    for cell in cells[wrong:]:
        data[cell + 3 : cell + 25] = b"\xff" * 22
    path.write_bytes(data)
    destroy_header(folder)
    app = user.phone.start(online=False)
    lost = {ids[number - 1] for number in numbers}
    found = listed(app)
    assert [id_ for id_ in ids if id_ not in lost] == [id_ for id_ in found if id_ not in lost]
    assert [event["unreadable"] for event in recovered(app)] == [True]


# Folders in the place of files ------------------------------------------------------------


@pytest.mark.both_flavours
@pytest.mark.parametrize("name", ["holdfast.db.damaged", "holdfast.db.keyless"])
def test_ATK_3_a_folder_that_has_a_recovery_s_name_keeps_no_intact_file_from_opening(
    user: SignedIn, name: str
) -> None:
    ids = filled(user, 3, 10)
    (user.phone.folder / name).mkdir()
    (user.phone.folder / name / "x").write_text("x")
    app = user.phone.start(online=False)
    assert not app.opened["recovered"]
    assert listed(app) == ids
    user.phone.close()
    if name == "holdfast.db.damaged":
        destroy_header(user.phone.folder)
        error = error_of(lambda: user.phone.start(online=False))
        assert error.code == "storage.failed"
        assert error.detail["file"] == name


@pytest.mark.both_flavours
@pytest.mark.parametrize("name", [*FILES, INDEX, "cache.db", "cache.db-wal"])
def test_ATK_3_a_folder_in_the_place_of_a_file_is_named(user: SignedIn, name: str) -> None:
    filled(user, 3, 10)
    path = user.phone.folder / name
    path.unlink(missing_ok=True)
    path.mkdir()
    # The cache is opened when it is used.
    error = error_of(lambda: user.phone.start(online=False).contact_search({"query": ""}))
    assert error.code == "storage.failed"
    assert error.detail["file"] == name


@pytest.mark.both_flavours
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_ATK_3_a_copy_that_a_killed_recovery_left_is_removed(
    sign_in: MakeUser, phones: MakePhone, suffix: str
) -> None:
    fresh = phones()
    fresh.open()
    fresh.close()
    user = sign_in()
    ids = filled(user, 3, 10)
    folder = user.phone.folder
    destroy_header(folder)
    moved = folder / "holdfast.db.damaged"
    (folder / FILES[0]).rename(moved)
    shutil.copyfile(fresh.folder / FILES[0], folder / FILES[0])
    with contextlib.closing(sqlite3.connect(folder / FILES[0])) as database, database:
        database.execute("INSERT INTO meta VALUES ('salvage', 'holdfast.db.damaged-5')")
    (folder / f"{moved.name}.scratch{suffix}").write_bytes(b"left")
    app = user.phone.start(online=False)
    assert app.opened["recovered"]
    assert listed(app) == ids
    assert not list(folder.glob("*.scratch*"))
