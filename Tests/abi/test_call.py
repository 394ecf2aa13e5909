"""One entry for bindings, and the version of header and library (HST-1)."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from holdfast import Holdfast, HoldfastError, Library
from holdfast.operations import OPERATIONS

from support import contract, own_rows
from support.paths import EMULATOR, HEADER, ROOT
from support.phone import Phone
from support.users import MakeUser

pytestmark = pytest.mark.both_flavours

NOBODY = "01976b36-0000-7000-8000-000000000000"
ITEM = "01976b36-0000-7000-8000-000000000001"
OTHER = "01976b36-0000-7000-8000-000000000002"
PAYLOAD = {"type": "visit", "minutes": 30}

#: For each operation requests that succeed and that fail, in an order in which each has a meaning.
SCRIPT: list[tuple[str, Any]] = [
    ("clock_set", {"now_ms": "late"}),
    ("session_resume", {}),
    ("session_resume", {"at": 1}),
    ("network_report", {"online": False}),
    ("network_report", {"online": 1}),
    ("org_list", {}),
    ("org_select", {"org_id": NOBODY}),
    ("org_select", {"org_id": "none"}),
    ("route_check", {"route": "/contacts/1"}),
    ("route_check", {"route": "/nowhere"}),
    ("queue_add", {"kind": "activity", "payload": PAYLOAD, "id": ITEM}),
    ("queue_add", {"kind": "activity", "payload": PAYLOAD, "id": ITEM}),
    ("queue_add", {"kind": "activity", "payload": {"minutes": 31}, "id": ITEM}),
    ("queue_add", b'{"kind":"activity","payload":{"minutes":1.0},"id":"%b"}' % OTHER.encode()),
    ("queue_add", b'{"kind":"activity","payload":{"minutes":0.12345678901234567890}}'),
    ("queue_list", {}),
    ("queue_list", {"limit": 0}),
    ("queue_get", {"id": ITEM}),
    ("queue_get", {"id": NOBODY}),
    ("queue_edit", {"id": ITEM, "payload": {"type": "call", "minutes": 5}}),
    ("queue_edit", b'{"id":"%b","payload":{"minutes":12345678901234567890}}' % ITEM.encode()),
    ("queue_retry", {}),
    ("queue_retry", {"id": NOBODY}),
    ("queue_export", {}),
    ("queue_explain", {}),
    ("queue_explain", {"id": NOBODY}),
    ("queue_cancel", {"id": ITEM}),
    ("queue_cancel", {"id": ITEM}),
    ("item_list", {"kind": "activity"}),
    ("item_list", {"kind": "walk"}),
    ("contact_search", {"query": "a"}),
    ("contact_search", {"query": "a", "limit": 1000}),
    ("contact_get", {"id": NOBODY}),
    ("summary_get", {}),
    ("summary_get", []),
    ("sync_now", {}),
    ("sync_now", {"now": True}),
    ("sync_status", {}),
    ("complete", {"id": 1, "status": 200}),
    ("complete", {"id": 1}),
    ("session_status", {}),
    ("session_token", {}),
    ("session_background", {}),
    ("session_foreground", {}),
    ("session_lock", {}),
    ("session_token", {}),
    ("queue_list", {}),
    ("session_unlock", {}),
    ("session_unlock", {"outcome": "success"}),
    ("sign_in_begin", {"method": "email"}),
    ("sign_in_begin", {"method": "fax"}),
    ("sign_in_complete", {"callback_url": "https://elsewhere.example"}),
    ("sign_in_cancel", {}),
    ("session_adopt", {"session": {}}),
    ("session_logout", {"unsent": "discard"}),
    ("session_logout", {}),
    ("session_logout", {"unsent": "keep"}),
    ("session_status", {}),
    ("session_status", b"\xff"),
    ("session_status", None),
    *((name, {"unheard_of": 1}) for name in OPERATIONS),
]


#: The operations that the script only lets fail.
NEVER = {"clock_set", "session_adopt", "sign_in_complete", "org_select", "contact_get"}


def named(library: Library, name: str, handle: int | None, request: bytes | None) -> Any:  # noqa: ANN401
    """Status and reply of the function of an operation, holdfast_<name>()."""
    function = library._dll[f"holdfast_{name}"]
    function.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))
    function.restype = ctypes.c_int32
    reply = ctypes.c_void_p()
    status = function(handle, request, ctypes.byref(reply))
    return status, library._take(reply)


def test_HST_1_both_doors_give_the_same_replies_and_errors(
    sign_in: MakeUser, tmp_path: Path
) -> None:
    user = sign_in(contacts=2, tables=own_rows.tables())
    user.phone.close()
    twin = user.phone.twin(tmp_path / "twin")
    apps = [phone.open() for phone in (user.phone, twin)]
    library = user.phone.library
    statuses: dict[str, set[int]] = {}
    try:
        for name, request in SCRIPT:
            sent = json.dumps(request).encode() if isinstance(request, dict | list) else request
            by_function = named(library, name, apps[0]._handle, sent)
            by_name = library.call(name, apps[1]._handle, sent)
            assert by_function[0] == by_name[0], (name, request, by_function, by_name)
            assert by_function[1] == by_name[1], (name, request)
            contract.judge_reply(name, by_name[0], json.loads(by_name[1] or b""))
            statuses.setdefault(name, set()).add(by_name[0])
    finally:
        twin.close()
    assert set(statuses) == set(OPERATIONS), "an operation is missing in SCRIPT"
    assert {name for name in OPERATIONS if 0 not in statuses[name]} == NEVER


def test_HST_1_both_doors_on_a_handle_that_is_none(library: Library) -> None:
    for name in OPERATIONS:
        assert library.call(name, 8, b"{}") == named(library, name, 8, b"{}")
    assert library.call("no_such_operation", 8, b"{}")[0] == 9


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("queue_ad", "queue_add"),
        ("holdfast_queue_add", "queue_add"),
        ("session_stats", "session_status"),
        ("open", None),
        ("", None),
        ("queue_add\n" * 100_000, None),
        ("\udcff", None),
    ],
)
def test_HST_1_an_unknown_name_is_a_clear_error(
    phone: Phone, name: str, nearest: str | None
) -> None:
    app = phone.open()
    reply = ctypes.c_void_p()
    sent = name.encode("utf-8", "surrogateescape")
    status = phone.library._call(app._handle, sent, b"{}", ctypes.byref(reply))
    error = json.loads(phone.library._take(reply) or b"")["error"]
    assert (status, error["code"], error["field"]) == (1, "request.unknown_operation", None)
    assert not error["retryable"]
    assert (f'did you mean "{nearest}"?' in error["message"]) == (nearest is not None)


def test_HST_1_no_name_is_an_error_too(phone: Phone) -> None:
    app = phone.open()
    reply = ctypes.c_void_p()
    assert phone.library._call(app._handle, None, b"{}", ctypes.byref(reply)) == 1
    error = json.loads(phone.library._take(reply) or b"")["error"]
    assert error["code"] == "request.unknown_operation"
    assert phone.library._call(app._handle, None, None, None) == 1


def test_HST_1_python_raises_the_error_of_an_unknown_name(phone: Phone) -> None:
    app = phone.open()
    with pytest.raises(HoldfastError, match="did you mean") as caught:
        Holdfast._call(app, "queue_lst", None)
    assert caught.value.code == "request.unknown_operation"


def test_what_the_schema_determines_is_current() -> None:
    command = [sys.executable, str(ROOT / "mk" / "contract.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_header_has_the_version_of_the_library(library: Library) -> None:
    major, minor, patch = map(int, library.version().split("."))
    number = major * 1_000_000 + minor * 1000 + patch
    assert library.version_number() == number
    text = HEADER.read_text(encoding="utf-8")
    assert f"#define HOLDFAST_VERSION_NUMBER {number}\n" in text


def test_the_version_is_checked_at_compile_time_and_at_run_time(
    tmp_path: Path, library: Library
) -> None:
    major, minor, patch = map(int, library.version().split("."))
    source = tmp_path / "host.c"
    source.write_text(
        '#include "holdfast.h"\n'
        "#if HOLDFAST_VERSION_NUMBER < NUMBER\n#error too old\n#endif\n"
        "int main(void) { return holdfast_version_number() < HOLDFAST_VERSION_NUMBER; }\n"
    )
    program = tmp_path / "host"

    def compiled(major: int, minor: int, patch: int) -> subprocess.CompletedProcess[str]:
        number = major * 1_000_000 + minor * 1000 + patch
        command = ["cc", "-Wall", "-Wextra", "-Werror", f"-DNUMBER={number}"]
        command += ["-I", str(HEADER.parent)]
        command += ["-o", str(program), str(source), str(library.path)]
        command += [f"-Wl,-rpath,{library.path.parent}"]
        return subprocess.run(command, capture_output=True, text=True)

    for later in ((major, minor, patch + 1), (major, minor + 1, 0), (major + 1, 0, 0)):
        refused = compiled(*later)
        assert refused.returncode != 0
        assert "too old" in refused.stderr
    done = compiled(major, minor, patch)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([*EMULATOR, str(program)]).returncode == 0
