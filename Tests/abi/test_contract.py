"""The published schema against the header, the core's enumerations, and real replies."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import jsonschema_rs
import pytest

from support import contract, own_rows
from support.directory_fixtures import DirectoryFixtures
from support.errors import error_of
from support.paths import HEADER, ROOT, SCHEMA
from support.users import MakePhone, MakeUser

NOBODY = "01976b36-0000-7000-8000-000000000000"


def listed(name: str) -> set[str]:
    """The values of an enumeration in the schema."""
    return set(contract.known(contract.DOCUMENT["$defs"][name]))


def swift_cases(path: str, kind: str, until: str = "\n}") -> set[str]:
    """The raw values of a Swift enumeration, or of its first ones."""
    text = (ROOT / "Sources" / path).read_text(encoding="utf-8")
    body = text.split(f"enum {kind}:", 1)[1].split(until, 1)[0]
    found: set[str] = set()
    for line in re.findall(r"^  case (.*)$", body, flags=re.M):
        if line.startswith(".") or line.endswith(":"):
            continue
        for case in line.split(", "):
            name, _, raw = case.partition(" = ")
            found.add(raw.strip('"') or name)
    return found


def test_the_schema_is_valid() -> None:
    jsonschema_rs.meta.validate(contract.DOCUMENT)


def test_every_reference_in_the_schema_resolves() -> None:
    names = re.findall(r'"#/\$defs/(\w+)"', SCHEMA.read_text(encoding="utf-8"))
    assert set(names) == set(contract.DOCUMENT["$defs"])


def test_the_schema_lists_the_core_s_error_codes() -> None:
    assert listed("ErrorCode") == swift_cases("Base/ErrorCode.swift", "ErrorCode")


def test_the_schema_lists_the_core_s_screens_and_banners_and_what_they_say() -> None:
    assert listed("ScreenCode") == swift_cases(
        "Policy/MessageCode.swift", "MessageCode", until="// Why a sign-in failed."
    )
    assert listed("Screen") == swift_cases("Policy/Decision.swift", "Screen")
    assert listed("BannerCode") == swift_cases("Policy/Banners.swift", "Banner")
    assert listed("Tone") == swift_cases("Policy/Banners.swift", "Tone")


def test_the_schema_maps_every_function_of_the_header() -> None:
    form = r"holdfast_(\w+)\(holdfast \*self, const char \*request,\s+char \*\*reply\);"
    declared = set(re.findall(form, HEADER.read_text(encoding="utf-8")))
    assert set(contract.OPERATIONS) == declared | {"open"}


def test_schema_and_header_share_their_constants() -> None:
    text = re.sub(r"\n \* *", "", HEADER.read_text(encoding="utf-8"))
    for name, pattern in {
        "Screen": r'"screen":"([\w|]+)"',
        "TransportError": r'"error":"([\w|]+)"',
        "Purpose": r'"purpose":"([\w|]+)"',
        "ItemState": r'"kind","state":"([\w|]+)"',
    }.items():
        found = re.search(pattern, text)
        assert found, name
        assert set(found[1].split("|")) == listed(name), name


def constants(union: str, field: str) -> set[str]:
    """The constants of a union's members."""
    members = [one["$ref"].rsplit("/", 1)[1] for one in contract.DOCUMENT["$defs"][union]["oneOf"]]
    shapes = [contract.DOCUMENT["$defs"][name]["properties"][field] for name in members]
    return {shape["const"] for shape in shapes if "const" in shape}


def test_every_notice_and_answer_that_is_made_is_in_the_schema_and_its_header() -> None:
    sources = sorted((ROOT / "Sources/Engine").rglob("*.swift"))
    texts = "".join(path.read_text(encoding="utf-8") for path in sources)
    header = re.sub(r"\n \* *", "", HEADER.read_text(encoding="utf-8"))
    for union, field, made in (
        ("Notice", "type", r'notices\.add\(\s*"(\w+)"'),
        ("Answer", "to", r'news\.answer\(\s*"(\w+)"'),
    ):
        found = set(re.findall(made, texts))
        assert found, union
        assert found == constants(union, field) == listed(f"{union}{field.capitalize()}")
        told = re.search(rf'"{field}":"([\w|]+)"', header)
        assert told, union
        assert set(told[1].split("|")) == found


def test_the_schema_check_refuses_mismatches() -> None:
    with pytest.raises(contract.ContractError):
        contract.judge_reply("queue_add", 0, {"id": "x", "state": "pending"})
    with pytest.raises(contract.ContractError):
        contract.judge_reply("network_report", 0, {"surplus": 1})
    with pytest.raises(contract.ContractError):
        contract.judge_reply("network_report", 1, {"error": {"code": "no.such"}})
    with pytest.raises(contract.ContractError):
        contract.judge_next(0, {"notice": {"type": "unheard_of", "reason": "x", "text": "x"}})


def test_ABI_5_every_operation_and_all_that_next_gives_fits_the_schema(
    sign_in: MakeUser, phones: MakePhone, directory: DirectoryFixtures
) -> None:
    before = Counter(contract.judged)
    user = sign_in(contacts=3, tables=own_rows.tables())
    app, org = user.app, user.org
    second = directory.organisation()
    directory.control.set_membership(user.person.id, second.id, role="peer_mentor")

    app.session_background()
    app.session_foreground()
    app.settle()
    app.org_list()
    app.route_check({"route": "/contacts/1"})
    app.route_check({"route": "/nowhere"})
    found = app.contact_search({"query": "", "limit": 1})["contacts"]
    app.contact_get({"id": found[0]["id"], "live": True})
    app.settle()
    app.summary_get()

    app.go_offline()
    kept = app.register()
    edited = app.register()
    app.queue_get({"id": kept})
    app.queue_list({"state": "pending", "limit": 1})
    app.queue_edit({"id": edited, "payload": {"type": "call", "minutes": 5}})
    app.item_list({"kind": "activity"})
    app.queue_explain()
    app.queue_export()
    app.queue_cancel({"id": edited})
    app.register(note="of another shape: it takes a request of its own")
    app.go_online()
    app.sync_now()
    app.sync_status()
    app.settle_until("sync_completed")

    refused = app.register(minutes=100_000)
    app.settle_until("item_parked")
    app.queue_retry({"id": refused})
    app.settle_until("item_parked")
    app.queue_cancel({"id": refused})

    directory.control.set_membership(user.person.id, org.id, status="ended")
    user.restart()
    user.app.settle()
    user.app.org_select({"org_id": second.id})
    user.app.settle()
    user.app.session_status()
    user.app.session_lock()
    user.app.touch()
    user.app.settle()
    directory.control.revoke_sessions(user.person.id)
    user.restart()
    user.app.settle()
    assert user.app.screen["screen"] == "sign_in"
    user.app.sign_in_begin({"method": "bankid"})
    user.app.sign_in_cancel()
    user.app.sign_in_begin({"method": "email"})
    user.app.sign_in_complete({"email": user.person.email, "password": "correct-horse-battery"})
    user.app.settle()
    user.app.session_token()
    user.app.sign_in(user.person)
    user.app.session_logout()
    user.phone.close()
    seen = contract.judged - before
    answered = {name for kind, name in seen if kind == "reply"}
    assert set(contract.OPERATIONS) - answered == set()
    things = {name for kind, name in seen if kind == "next"}
    assert things == {"screen", "answer", "notice", "sync", "request", "wake_in_ms"}
    notices = {name for kind, name in seen if kind == "notice"}
    assert constants("Notice", "type") - notices == {"storage_recovered"}
    assert {name for kind, name in seen if kind == "answer"} == constants("Answer", "to")


#: What is refused, with its code, field and class. More of queue_add: QUE-13.
WRONG: list[tuple[str, dict[str, Any], str, str | None, int]] = [
    ("queue_add", {"kind": "nothing", "payload": {}}, "queue.unknown_kind", "/kind", 1),
    ("queue_get", {"id": NOBODY}, "queue.not_found", "/id", 3),
    ("contact_get", {"id": NOBODY}, "contact.not_found", None, 3),
    ("org_select", {"org_id": NOBODY}, "org.not_a_member", "/org_id", 3),
    ("sign_in_begin", {"method": "fax"}, "sign_in.unknown_method", "/method", 1),
    ("queue_list", {"limit": 0}, "request.invalid_value", "/limit", 1),
    ("queue_list", {"limit": "many"}, "request.wrong_type", "/limit", 1),
    ("session_unlock", {"outcome": "success"}, "request.unknown_field", "/outcome", 1),
    ("session_logout", {"unsent": "perhaps"}, "request.invalid_value", "/unsent", 1),
    ("session_logout", {"unsent": "discard"}, "session.confirm_unsent", None, 4),
    ("session_logout", {}, "session.confirm_unsent", None, 4),
]


def test_ABI_5_errors_carry_code_class_and_field(sign_in: MakeUser) -> None:
    app = sign_in().app
    app.go_offline()
    app.register()
    for operation, request, code, field, status in WRONG:
        error = error_of(getattr(app, operation), request)
        assert (error.code, error.status) == (code, status), (operation, request, str(error))
        if field is not None:
            assert error.field == field, (operation, request)
        assert error.message
