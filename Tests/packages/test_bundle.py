"""The bundled library, which contains SQLite, libsodium and jansson.

`make test-all` runs the tests of the C API on it, with HOLDFAST_FLAVOUR=bundled.
"""

from __future__ import annotations

import re

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
