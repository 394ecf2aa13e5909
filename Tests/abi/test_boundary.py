"""The C boundary: NULL, invalid handles, threads, forks, and strict requests."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from holdfast import HoldfastError, Library
from holdfast.keystore import KeyStoreStruct, struct_for
from holdfast.operations import OPERATIONS
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from patience import patience

from support import children, contract
from support.errors import error_of, error_of_open
from support.phone import FilePhone, Phone
from support.screens import why
from support.sizes import sized
from support.users import MakePhone, MakeUser, SignedIn
from support.waking import Waiting

# The boundary is what a mode of the compiler can change.
pytestmark = pytest.mark.both_flavours

CLOSED, OK, INVALID = 9, 0, 1


def error_in(reply: bytes | None) -> dict[str, Any]:
    assert reply is not None
    error: dict[str, Any] = json.loads(reply)["error"]
    return error


def test_ABI_2_null_and_garbage_handles_answer_closed(library: Library) -> None:
    garbage = [None, 1, 8, 0xDEADBEEF, 0x7FFF_FFFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF_FFFF, id(library)]
    for handle in garbage:
        for name in OPERATIONS:
            status, reply = library.call(name, handle, b"{}")
            assert status == CLOSED, (name, handle)
            assert error_in(reply)["code"] == "handle.closed"
            assert ("NULL" in error_in(reply)["message"]) == (handle is None)
            contract.judge_reply(name, status, json.loads(reply or b""))
        assert library.next(handle, 3, 0)[0] == library.next(handle, 1, -1)[0] == CLOSED
        assert library.wake_fd(handle, 3) == -1
        library.close(handle)
    assert library.live() == 0


def test_ABI_2_a_null_request_equals_an_empty_one(phone: Phone) -> None:
    app = phone.open()
    for sent in (None, b"", b"{}", b" {} "):
        status, reply = phone.library.call("session_resume", app._handle, sent)
        assert status == OK, (sent, reply)
        assert json.loads(reply or b"") == {}
        assert app.next(0)["screen"]["screen"] == "sign_in"


def test_ABI_2_a_null_reply_pointer_allocates_no_reply(phone: Phone) -> None:
    app = phone.open()
    live = phone.library.live()
    for name in OPERATIONS:
        phone.library.call_without_reply(name, app._handle, b"{}")
        phone.library.call_without_reply(name, app._handle, None)
        phone.library.call_without_reply(name, None, None)
    assert phone.library.live() == live


def test_ABI_2_null_in_open_and_free(library: Library, phone: Phone) -> None:
    handle, (status, reply) = library.open(None, None)
    assert (handle, status) == (0, INVALID)
    assert error_in(reply)["code"].startswith(("request.", "config."))
    config = json.dumps(phone.config).encode()
    assert library._open(config, None, None, None) == INVALID
    assert library._open(None, None, None, None) == INVALID
    library.free(None)
    assert library.live() == 0


def test_ABI_2_a_key_store_of_the_wrong_size_is_refused(library: Library, phone: Phone) -> None:
    config = json.dumps(phone.config).encode()
    for size in (0, 8, 40, struct_for(phone.keychain).size - 1):
        struct = struct_for(phone.keychain)
        struct.size = size
        handle, (status, _) = library.open(config, struct)
        assert (handle, status) == (0, INVALID), size
    holes: KeyStoreStruct = struct_for(phone.keychain)
    empty = KeyStoreStruct(holes.size, None)
    handle, (status, _) = library.open(config, empty)
    assert (handle, status) == (0, INVALID)


def test_ABI_2_closing_twice_and_using_a_closed_handle(phone: Phone) -> None:
    app = phone.open()
    handle = app._handle
    app.close()
    app.close()
    for name in OPERATIONS:
        assert phone.library.call(name, handle, None)[0] == CLOSED
    assert phone.library.next(handle, 3, -1)[0] == CLOSED
    again = phone.open()
    assert again._handle != handle, "a closed handle was reused"
    assert phone.library.call("session_status", handle, None)[0] == CLOSED
    phone.library.close(handle)
    assert again.session_status()["state"] == "signed_out"


def test_ABI_2_close_wakes_every_waiter(phone: Phone) -> None:
    app = phone.start()
    app.settle()
    waiting = [Waiting(app) for _ in range(4)]
    app.close()
    assert all(each.ends() for each in waiting)
    assert [each.answers for each in waiting] == [[None]] * 4


def test_ABI_2_many_threads_survive_a_concurrent_close(sign_in: MakeUser) -> None:
    user = sign_in(contacts=5)
    app = user.offline()
    added: list[str] = []
    odd: list[object] = []
    started = threading.Barrier(17)

    def work(number: int) -> None:
        started.wait()
        try:
            for turn in range(400):
                if number % 4 == 0:
                    added.append(app.register(minutes=1 + turn))
                elif number % 4 == 1:
                    app.queue_list({"limit": 3})
                elif number % 4 == 2:
                    app.contact_search({"query": "a"})
                elif app.next(0) is None:
                    return
        except HoldfastError as error:
            if error.status != CLOSED:
                odd.append(error)
        except Exception as error:
            odd.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    started.wait()
    while len(added) < 20 and any(thread.is_alive() for thread in threads):
        threads[0].join(0.01)
    app.close()
    for thread in threads:
        thread.join(patience(60))
    assert not any(thread.is_alive() for thread in threads)
    assert odd == []
    assert len(added) >= 20
    app = user.restart(online=False)
    kept = {item["id"] for item in app.queue_export()["items"]}
    assert set(added) <= kept


def test_ABI_2_a_forked_child_gets_forked(phone: Phone) -> None:
    phone.open()
    phone.close()
    children.run("fork.py", phone.spec()).check()


def test_ABI_2_what_a_forked_child_adds_outlives_the_parents_handle(
    user: SignedIn, tmp_path: Path
) -> None:
    user.phone.close()
    ended = children.run("fork_and_add.py", user.phone.spec(), str(tmp_path))
    ended.check()
    ids = ended.output.split()
    assert len(ids) == 7
    app = user.restart(online=False)
    assert {item["id"] for item in app.queue_list({"limit": 100})["items"]} == set(ids)


def test_ABI_2_a_fork_during_other_threads_calls_does_not_deadlock(phone: Phone) -> None:
    phone.open()
    phone.close()
    children.run("fork_busy.py", phone.spec(), sized("40", "150")).check()


def test_ABI_2_a_call_from_a_key_store_callback_answers_busy(phone: Phone) -> None:
    app = phone.open()
    inner: list[int] = []

    def call_back(_call: str, _name: str) -> None:
        inner.append(phone.library.call("session_status", app._handle, None)[0])

    phone.keychain.watch = call_back
    assert app.session_resume()["screen"] == "sign_in"
    phone.keychain.watch = lambda _call, _name: None
    assert inner
    assert set(inner) == {8}


def misspelt(name: str) -> str:
    """The name with a typing error."""
    return name[:-1] + ("y" if name[-1] != "y" else "i") if len(name) > 3 else name + "x"


def test_ABI_3_unknown_fields_are_refused_with_a_suggestion(sign_in: MakeUser) -> None:
    app = sign_in().app
    generation = app.session_status()["generation"]
    for operation in OPERATIONS:
        error = error_of(getattr(app, operation), {"unheard/of": 1})
        assert error.code == "request.unknown_field", operation
        assert error.field == "/unheard~1of", operation
        for choice in contract.forms(contract.OPERATIONS[operation]["request"]["$ref"]):
            for name in choice["properties"]:
                slip = misspelt(name)
                error = error_of(getattr(app, operation), {slip: 1})
                assert error.code == "request.unknown_field", (operation, slip)
                assert error.field == f"/{slip}", (operation, slip)
                assert f'"{name}"' in error.message, (operation, slip)
        assert app.session_status()["generation"] == generation, operation


#: A service role's token: {"role":"service_role"}.
SERVICE_ROLE = "e30.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2ln"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("url", "http://10.0.2.2:54321"),
        ("url", "http://localhost.example.org"),
        ("api_key", "sb_secret_0123456789"),
        ("api_key", SERVICE_ROLE),
    ],
)
def test_an_unsafe_backend_is_refused(phone: Phone, field: str, value: str) -> None:
    config = json.loads(json.dumps(phone.config))
    config["backend"][field] = value
    assert error_of_open(phone.library, config)["field"] == f"/backend/{field}"
    assert not phone.folder.exists(), "a refused configuration created files"
    # Plain http is possible when the host asks for it by name.
    if field == "url":
        config["backend"]["allow_insecure"] = True
        store = struct_for(phone.keychain)
        handle, (status, _) = phone.library.open(json.dumps(config).encode(), store)
        assert status == 0
        phone.library.close(handle)


def test_ABI_3_unknown_fields_of_the_config(phone: Phone) -> None:
    cases: list[tuple[tuple[str | int, ...], str, str]] = [
        ((), "polisy", "policy"),
        (("backend",), "api_kye", "api_key"),
        (("policy",), "session_window", "session_window_s"),
        (("auth_methods", 0), "providr", "provider"),
        (("routes", "peer_mentor"), "screen", "screens"),
    ]
    for path, slip, known in cases:
        config = json.loads(json.dumps(phone.config))
        place = config
        for step in path:
            place = place[step]
        place[slip] = 1
        error = error_of_open(phone.library, config)
        assert error["field"] == "".join(f"/{step}" for step in (*path, slip))
        assert f'"{known}"' in error["message"]
        assert not phone.folder.exists(), f"{slip}: a refused configuration created files"


#: What is sent, the code and the field.
NO_REQUESTS: list[tuple[bytes, str | None, str | None]] = [
    (b'{"query":"\xff"}', "request.not_json", None),
    (b'{"query":"a","query":"b"}', "request.duplicate_key", "/query"),
    (b'{"query":' + b"[" * 65 + b"]" * 65 + b"}", "request.too_deep", "/query" + "/0" * 63),
    (b'{"a\\u0000":1}', "request.not_json", "/a\\u0000"),
    (b'{"query":[' + b"0," * 262_144 + b"0]}", "request.too_many_values", None),
    (b'{"query":1}', "request.wrong_type", "/query"),
    (b'{"query":"a","limit":1.5}', "request.wrong_type", "/limit"),
    (b'{"query":"a","limit":9007199254740993}', "request.invalid_value", "/limit"),
    (b'{"query":"a","limit":1e300}', "request.wrong_type", "/limit"),
    (b'{"query":"a","limit":1e400}', "request.not_json", None),
    (b'{"query":"a"', "request.not_json", None),
    (b'{"query":"a"} {}', "request.not_json", None),
    (b"null", None, None),
    (b"\xef\xbb\xbf{}", "request.not_json", None),
]


def test_ABI_3_invalid_json_is_refused(sign_in: MakeUser) -> None:
    app = sign_in().app
    for sent, code, field in NO_REQUESTS:
        status, reply = app.library.call("contact_search", app._handle, sent)
        error = error_in(reply)
        assert status == INVALID, sent[:60]
        assert code is None or error["code"] == code, (sent[:60], error)
        assert field is None or error["field"] == field, (sent[:60], error)


def test_ABI_1_a_value_that_is_no_object_is_called_so(sign_in: MakeUser) -> None:
    app = sign_in().app
    for sent in (b"3", b'"x"', b"true", b"[]", b"[{}]", b"1.5"):
        for name in ("session_status", "queue_add", "complete", "contact_search"):
            status, reply = app.library.call(name, app._handle, sent)
            assert (status, error_in(reply)["code"]) == (1, "request.not_an_object"), (name, sent)


def test_ABI_1_a_configuration_that_is_no_object_is_called_so(library: Library) -> None:
    for sent in (b"null", b"3", b'"x"', b"[]"):
        _, (status, reply) = library.open(sent, None)
        assert (status, error_in(reply)["code"]) == (1, "request.not_an_object"), sent


def test_ABI_1_a_request_that_is_null_is_an_empty_object(sign_in: MakeUser) -> None:
    """Go's nil map and Java's null become `null`."""
    app = sign_in().app
    for name in contract.OPERATIONS:
        if name != "open":
            empty = app.library.call(name, app._handle, b"{}")
            absent = app.library.call(name, app._handle, b" null ")
            assert empty[0] == absent[0], name
    status, reply = app.library.call("session_status", app._handle, b"null")
    assert status == 0 and reply is not None


def test_ABI_5_a_whole_number_may_have_a_point(sign_in: MakeUser) -> None:
    """Gson writes the numbers of a map as 12.0."""
    user = sign_in(contacts=2)
    app = user.app
    app.settle()
    assert app.contact_search({"query": "", "limit": 1.0})["contacts"]  # type: ignore[typeddict-item]
    payload = {"type": "visit", "minutes": 41.0}
    added = app.queue_add(
        {"kind": "activity", "payload": payload, "occurred_at_ms": 1795000000000.0}  # type: ignore[typeddict-item]
    )
    item: Any = app.queue_get({"id": added["id"]})["item"]
    assert item["occurred_at_ms"] == 1795000000000
    [request] = list(app.poll()["requests"])
    answer: Any = {"id": float(request["id"]), "status": 503.0, "headers": {}, "body": ""}
    assert app.complete(answer) == {}


#: Opens a folder with 0, 1, 2, … free descriptors, and prints the codes of the errors.
CROWDED = """
import json, os, resource, sys
from holdfast import Library
library, config = Library(sys.argv[1]), sys.argv[2].encode()
handle, _ = library.open(config, None)
library.close(handle)
codes, highest = [], os.open("/dev/null", os.O_RDONLY)
os.close(highest)
for free in range(40):
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + free, 4096))
    handle, (status, reply) = library.open(config, None)
    codes.append("" if status == 0 else json.loads(reply)["error"]["code"])
    library.close(handle)
print(json.dumps(codes))
"""


def test_ABI_2_an_open_without_descriptors_says_so(phone: Phone, tmp_path: Path) -> None:
    kiosk = FilePhone(tmp_path / "kiosk", phone.library, phone.backend, clock="system")
    ended = children.run_text(CROWDED, str(phone.library.path), json.dumps(kiosk.config))
    codes = json.loads(ended.check().output)
    # The answer is that there are too few, until there are enough
    enough = codes.index("")
    assert enough > 3
    assert set(codes[:enough]) == {"handle.too_many"}
    assert set(codes[enough:]) == {""}


def test_a_log_function_that_calls_the_library_ends(library: Library, tmp_path: Path) -> None:
    ended = children.run("log_calls_back.py", str(library.path), str(tmp_path))
    assert ended.check().output == "handle.reentered\nended\n"


def enriched(_request: HttpRequest, answer: Answer) -> Answer:
    """The same answer with additional fields, as from a newer server."""

    def richer(value: object) -> object:
        if isinstance(value, dict):
            known = {name: richer(inner) for name, inner in value.items()}
            return {"aaa_new": {"deep": [1, None]}, **known, "zzz_new": "ny"}
        return [richer(inner) for inner in value] if isinstance(value, list) else value

    if not answer.get("body"):
        return answer
    body = json.dumps(richer(json.loads(answer["body"])))
    return {**answer, "body": body, "headers": {**answer["headers"], "x-new": "1"}}


def test_ABI_3_unknown_fields_in_server_replies_are_ignored(
    phones: MakePhone, sign_in: MakeUser
) -> None:
    user = sign_in(contacts=4)
    user.phone.network.alter.append(enriched)
    user.phone.pass_time(3700)
    app = user.restart()
    assert why(app.screen) == "token_expired"
    app.touch()
    app.settle()
    assert app.screen["screen"] == "home"
    assert app.screen["banners"] == []
    assert user.phone.network.count("refresh") == 1
    app.register()
    [done] = [e for e in app.settle_until("sync_completed") if e["type"] == "sync_completed"]
    assert (done["sent"], done["parked"]) == (1, 0)
    assert app.contact_search({"query": ""})["total"] == 4
    assert app.org_list()["freshness"] == "confirmed"
