"""The bundled library, which contains SQLite, libsodium and jansson."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from consumers import ROOT, run

LIBRARY = ROOT / "build" / "lib-bundled" / "libholdfast.so"

#: The largest allowed size, stripped.
SIZE_LIMIT = 2_700_000


def test_it_needs_the_c_library_alone() -> None:
    # Parts of glibc: libm for the logarithm in SQLite's full-text ranking, the loader for
    # thread-local storage.
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", LIBRARY))
    foreign = [name for name in needed if not re.match(r"lib[cm]\.so\.6$|ld-linux", name)]
    assert needed, "readelf names no library at all"
    assert foreign == []


def test_it_is_stripped_and_small() -> None:
    assert ".symtab" not in run("readelf", "-SW", LIBRARY)
    assert LIBRARY.stat().st_size <= SIZE_LIMIT


def test_its_sqlite_has_the_promised_options() -> None:
    # The names of options as SQLite stores them for sqlite3_compileoption_used().
    strings = run("strings", "-n", "5", LIBRARY).splitlines()
    for option in ("DQS=0", "ENABLE_FTS5", "DEFAULT_MEMSTATUS=0", "SECURE_DELETE", "THREADSAFE=1"):
        assert option in strings, option
    assert "OMIT_LOAD_EXTENSION" in strings


#: Tests of areas where the bundled libraries could differ from the system's.
SHARE = [
    "test_build_info.py",
    "test_exports.py",
    "test_contract.py",
    "test_cache.py",
    "test_memory.py",
    "test_salvage.py",
    "test_session_storage.py",
    "test_lock_is_cryptographic.py",
    "test_queue.py",
    "test_boundary.py",
    "test_offline.py",
    "test_queue_batches.py",
    "test_session_keys.py",
]


def test_it_passes_the_tests_of_the_c_api() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        [*command, *SHARE],
        cwd=ROOT / "Tests" / "abi",
        env=environment | {"HOLDFAST_FLAVOUR": "bundled"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    [passed] = re.findall(r"(\d+) passed", done.stdout)
    assert int(passed) > 50, done.stdout
