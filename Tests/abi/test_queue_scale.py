"""A hundred thousand items: adding stays cheap, sending needs little memory (QUE-14)."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_supabase import LocalSupabase

from support.directory_fixtures import DirectoryFixtures
from support.hosted import HostedLibrary
from support.phone import App, FilePhone
from support.sizes import sized

#: A few thousand in `make test`; `slow`, with all of them in `make test-all`.
FEW = 5_000
MANY = sized(20_000, 100_000)
LIMIT_KB = 64 * 1024


@pytest.fixture
def memory_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder on a memory disk if there is one, so that the disk's speed does not count."""
    if not Path("/dev/shm").is_dir():
        yield tmp_path
        return
    folder = Path("/dev/shm") / f"queue-{uuid.uuid4().hex}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def field_of(path: str, name: str) -> int:
    """A numeric field of a file in /proc."""
    for line in Path(path).read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise KeyError(name)


def work(pid: int) -> int:
    """Bytes read and written so far: what adding costs that a busy machine does not change."""
    return field_of(f"/proc/{pid}/io", "rchar") + field_of(f"/proc/{pid}/io", "wchar")


def fill(app: App, count: int) -> int:
    """Add `count` items without schema checks; returns the work that it took."""
    library = app.library
    assert isinstance(library, HostedLibrary)
    before = work(library.pid)
    text = json.dumps(
        {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 30, "note": "Gikk en tur rundt vannet."},
            "occurred_at_ms": app.phone.now_ms,
        }
    ).encode()
    for _ in range(count):
        status, reply = library.call("queue_add", app._handle, text)
        assert status == 0, reply
    return work(library.pid) - before


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_QUE_14_a_hundred_thousand_items(
    hosted: HostedLibrary,
    memory_folder: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    count: int,
) -> None:
    phone = FilePhone(memory_folder / "phone", hosted, backend)
    org = directory.organisation()
    person = directory.person(org)
    app = phone.start()
    app.sign_in(person)
    app.go_offline()
    fill(app, 10)
    first = fill(app, 1000)
    fill(app, count - 2010)
    last = fill(app, 1000)
    # Then the last ones take little more work than the first (deeper trees, colder pages)
    assert last <= 3 * first, (first, last)
    page = app.queue_list({"limit": 500})
    assert page["counts"]["pending"] == count
    seqs = [item["seq"] for item in page["items"]]
    assert len(seqs) == 500
    assert page["next"] == seqs[-1]
    end = app.queue_list({"limit": 500, "after": count - 400})
    assert (len(end["items"]), end["next"]) == (400, None)
    Path(f"/proc/{hosted.pid}/clear_refs").write_text("5")
    resident = field_of(f"/proc/{hosted.pid}/status", "VmRSS")
    phone.network.up = True
    app.network_report({"online": True})
    directory.control.clear_requests()
    app.settle(limit=5000)
    growth = field_of(f"/proc/{hosted.pid}/status", "VmHWM") - resident
    assert growth < LIMIT_KB, f"{growth} kB"
    print(f"drain of {count}: peak memory {growth} kB above {resident} kB; adds {first} {last}")
    sent = directory.control.requests("/rest/v1/activities", "POST")
    assert [entry["rows_in"] for entry in sent] == [500] * (count // 500)
    query = "select count(*) as n from activities where user_id = %s"
    assert directory.control.sql(query, person.id)[0]["n"] == count
    [done] = app.of_type("sync_completed")
    assert (done["sent"], done["parked"], done["waiting"]) == (count, 0, 0)
    assert app.queue_list()["items"] == []
    phone.close()
    # Plans of foreign keys that were made on an empty table read all of it for each row.
    directory.control.sql("analyze activities")
    directory.control.sql("delete from activities where user_id = %s", person.id)
