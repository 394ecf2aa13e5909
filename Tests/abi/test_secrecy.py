"""Tests of the secret scan itself: it finds planted secrets."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support import children, secrecy
from support.scan import LEAST, Scanner, ScannerError
from support.secrecy import Notebook, Secrets, SecretsOfAChild
from support.users import MakeUser

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJrYXJpIn0.c2lnbmF0dXJlLW9mLWthcmk"
NAME = "Åse Øvingsdal"
ID = "0f000000-0000-4000-8000-00000000abcd"


def knowing() -> Secrets:
    """Known secrets of a sign-in and of a contact."""
    secrets = Secrets()
    secrets.answered({"status": 200, "body": json.dumps({"access_token": TOKEN})})
    secrets.answered({"status": 200, "body": json.dumps([{"id": ID, "name": NAME}])})
    secrets.request("queue_add", {"kind": "activity", "payload": {"note": "fortrolig"}})
    return secrets


@pytest.mark.parametrize("secret", [TOKEN, TOKEN.split(".")[1], NAME, ID, "fortrolig"])
def test_a_file_with_a_secret_in_any_form_is_found(tmp_path: Path, secret: str) -> None:
    raw = secret.encode()
    shapes = {
        "raw": raw,
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "utf-16-le": secret.encode("utf-16-le"),
        "utf-16-be": secret.encode("utf-16-be"),
        **{f"base64 {n}": base64.b64encode(b"ab"[:n] + raw + b"tail") for n in range(3)},
        **{f"base64url {n}": base64.urlsafe_b64encode(b"ab"[:n] + raw) for n in range(3)},
        "json": json.dumps(secret).encode(),
    }
    for shape, data in shapes.items():
        secrets = knowing()
        secrets.folders[tmp_path] = None
        (tmp_path / "holdfast.db").write_bytes(bytes(999) + data + b"\xff")
        assert secrets.search_all(), shape
    (tmp_path / "holdfast.db").write_bytes(bytes(range(256)) * 9)
    secrets = knowing()
    secrets.folders[tmp_path] = None
    assert secrets.search_all() == []


@given(
    st.lists(st.binary(min_size=LEAST, max_size=12), max_size=8),
    st.lists(st.integers(0, 7), max_size=4),
    st.binary(max_size=40),
    st.binary(max_size=5),
)
def test_the_scan_finds_exactly_the_planted_secrets(
    secrets: list[bytes], chosen: list[int], noise: bytes, between: bytes
) -> None:
    data = noise + between.join(secrets[n] for n in chosen if n < len(secrets))
    names = {secret: secret.hex() for secret in secrets}
    for part in (data, data[:-1], b""):
        raw = {
            find.split()[0] for find in Scanner(dict(names)).find(part) if find.endswith("(raw)")
        }
        assert raw == {secret.hex() for secret in secrets if secret in part}


def test_a_scan_with_damaged_memory_reports_the_damage() -> None:
    scanner = Scanner({TOKEN: "token", NAME: "name", "fortrolig": "note"})
    edges = list(scanner._edges)
    scanner._text = bytes(edges[-1])
    scanner._scan = scanner._program.scan_make(scanner._text, scanner._edges, len(edges) - 1)
    with pytest.raises(ScannerError, match="memory is damaged"):
        scanner.find(bytes(32768))


def test_a_log_line_an_error_and_news_are_searched() -> None:
    for number in range(3):
        secrets = knowing()
        secrets.line(3, "request 1: refresh" + f" {TOKEN}" * (number == 0))
        error = {"code": "queue.not_found", "message": "no item " + ID * (number == 1)}
        secrets.reply("queue_get", 3, {"error": error})
        secrets.given(0, {"sync": {"message": {"text": NAME * (number == 2)}}})
        assert len(secrets.search_all()) >= 1, number


def test_a_screen_may_hold_only_the_organisation() -> None:
    secrets = Secrets()
    secrets.add("name", NAME)
    secrets.add("id", ID)
    secrets.add("token", TOKEN)
    org = {"id": ID, "name": NAME, "role": "coordinator"}
    orgs = [{"org_id": ID, "name": NAME, "role": "coordinator", "status": "revoked"}]
    message = {"code": "membership_revoked", "text": f"Tilgangen til {NAME} er avsluttet."}
    screen = {"org": org, "orgs": orgs, "message": message, "route": "/coordinator"}
    secrets.given(0, {"screen": screen})
    assert secrets.search_all() == []
    for slip in ({"banners": [ID]}, {"route": f"/contacts/{TOKEN}"}, {"reason": NAME}):
        thing = {"screen": {**screen, **slip}}
        left = json.dumps(secrecy.searched("screen", thing))
        found = Scanner(secrets.known).find(left.encode())
        assert bool(found) == ("route" not in slip), slip


def test_the_secrets_of_a_killed_child_are_known(tmp_path: Path) -> None:
    child = SecretsOfAChild(tmp_path)
    child.add("token", TOKEN)
    child.add("key", b"\x00\x01" * 16)
    child.line(3, "a line")
    Notebook(tmp_path).write(["name", f"t{NAME}", False])
    secrets = Secrets()
    secrets.read_children(tmp_path)
    assert set(secrets.known) == {TOKEN, b"\x00\x01" * 16, NAME}
    assert secrets.heard == [("a log line of level 3", "a line")]


def test_fixtures_register_every_secret(sign_in: MakeUser, no_secret_is_readable: Secrets) -> None:
    user = sign_in(contacts=2)
    app = user.app
    item = app.register(note="en fortrolig samtale")
    app.settle_until("sync_completed")
    [first, _] = app.contact_search({"query": ""})["contacts"]
    user.phone.close()
    worker = children.run("queue_worker.py", user.phone.spec(), "1", "7").check()
    elsewhere = worker.output.splitlines()[1]
    secrets = no_secret_is_readable
    secrets.read_children(secrets.children)
    session = next(name for name, what in secrets.known.items() if what == "refresh_token")
    assert len(session) >= 12
    token = next(name for name, what in secrets.known.items() if what == "access_token")
    assert str(token).count(".") == 2
    keys = [what for secret, what in secrets.known.items() if isinstance(secret, bytes)]
    assert {"key device", "key biometric"} <= set(keys)
    expected = {user.org.id, user.org.name, user.person.id, user.person.email, item, first["id"]}
    expected |= {first["name"], "en fortrolig samtale", elsewhere}
    assert expected <= set(secrets.known)
    assert any(what == "a log line of level 3" for what, _ in secrets.heard)
    assert any(what == "a sync" for what, _ in secrets.heard)
