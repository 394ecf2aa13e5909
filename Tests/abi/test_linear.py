"""Every operation, and every list in a response, costs in proportion to its size (FIX-15).

Instructions are counted, not time: with little, with n and with 2n of something. What n adds must
not be more than doubled by 2n, with room for logarithms.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from holdfast.transport import Answer
from holdfast.types import HttpRequest
from local_supabase import LocalSupabase

from support import own_rows
from support.contact_data import DAY_S
from support.counted import CountedLibrary
from support.directory_fixtures import DirectoryFixtures
from support.hosted import HostedLibrary
from support.paths import BUILDS
from support.phone import App, FilePhone

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("valgrind") is None, reason="needs valgrind"),
]

#: More than this times as much for 2n as for n fails.
MOST = 2.3
LITTLE, SIZE = 2, 200

Act = Callable[[App, int], object]
#: What the server answers, by the purpose of a request and a part of its URL; None: the truth.
Canned = Callable[[HttpRequest], Answer | None]


def id_of(number: int) -> str:
    return str(uuid.UUID(int=(number + 1) << 64 | 0x4 << 76 | 0x8 << 60))


def rows(lines: list[str], **headers: str) -> Answer:
    return {"status": 200, "headers": headers, "body": f"[{','.join(lines)}]"}


def the_same(purpose: str, body: str) -> Canned:
    """The same answer to each request of a purpose."""
    same: Answer = {"status": 200, "headers": {}, "body": body}
    return lambda request: same if request["purpose"] == purpose else None


def answer_with(app: App, *canned: Canned) -> None:
    """The server answers so, and otherwise truthfully."""
    app.phone.network.instead = list(canned)


def foreground(app: App) -> None:
    """The app asks for everything again."""
    app.phone.pass_time(1_000)
    app.session_background()
    app.session_foreground()
    app.settle()


# Lists in responses ------------------------------------------------------------------------------


def memberships(count: int, status: str) -> Canned:
    """The server lists as many, in pages, by their ids."""
    lines = {
        id_of(number): json.dumps(
            {
                "org_id": id_of(number),
                "role": "peer_mentor",
                "status": status if number % 2 else "active",
                "organizations": {"name": f"Forening {number}", "status": "active"},
            }
        )
        for number in range(count)
    }

    def page(request: HttpRequest) -> Answer | None:
        if request["purpose"] != "guard":
            return None
        asked = parse_qs(urlsplit(request["url"]).query)
        after = asked.get("org_id", [""])[0].removeprefix("gt.")
        left = [line for org, line in lines.items() if org > after]
        limit = int(asked["limit"][0])
        return rows(left[:limit], **{"content-range": f"0-{limit}/{len(left)}"})

    return page


def lists_of_memberships(app: App, count: int) -> None:
    """New ones, the same ones, half of them ended, and others in their place."""
    for status in ("active", "active", "ended"):
        answer_with(app, memberships(count, status))
        foreground(app)
        assert len(app.org_list()["orgs"]) >= count
    answer_with(app, memberships(LITTLE, "active"))
    foreground(app)
    assert len(app.org_list()["orgs"]) <= LITTLE + 1


def pages(app: App, count: int, org: str) -> tuple[Canned, Canned]:
    """A page of contacts, and one of ids and times; all later ones are empty."""
    when = "2026-01-01T00:00:00.000000+00:00"
    base = {"updated_at": when, "org_id": org, "name": "Åse Prøve", "municipality": "Oslo"}
    contacts = [json.dumps({"id": id_of(n), "deleted_at": None, **base}) for n in range(count)]
    ids = [json.dumps({"id": id_of(n), "updated_at": when}) for n in range(count)]

    def of_contacts(request: HttpRequest) -> Answer | None:
        if request["purpose"] != "pull" or "select=id,updated_at" in request["url"]:
            return None
        return rows([] if "&or=" in request["url"] else contacts)

    def of_ids(request: HttpRequest) -> Answer | None:
        if request["purpose"] != "pull":
            return None
        is_first = "select=id,updated_at" in request["url"] and "&id=gt." not in request["url"]
        return rows(ids if is_first else [])

    return of_contacts, of_ids


def contacts(app: App, count: int) -> None:
    answer_with(app, pages(app, count, org_of(app))[0])
    foreground(app)
    assert app.contact_search({"query": ""})["total"] == count


def ids(app: App, count: int) -> None:
    app.phone.pass_time(DAY_S)
    answer_with(app, pages(app, count, org_of(app))[1])
    foreground(app)
    assert app.contact_search({"query": ""})["total"] == count


def upload(app: App, count: int) -> None:
    """More ids than were sent, and an item that is not among them."""
    lines = [json.dumps({"id": id_of(number)}) for number in range(count)]
    app.register()
    answer_with(app, lambda r: rows(lines) if r["purpose"] == "upload" else None)
    foreground(app)


def figures(app: App, count: int) -> None:
    body = json.dumps({f"figure_{number}": number for number in range(count)})
    answer_with(
        app,
        lambda r: (
            {"status": 200, "headers": {}, "body": body} if r["purpose"] == "summary" else None
        ),
    )
    foreground(app)
    assert len(app.summary_get()["summary"] or {}) == count


def metadata(app: App, count: int) -> None:
    """A user with metadata that nobody reads, some of it unreadable."""
    user = app.session_status()["user_id"]
    value = [{"a": [number, 0.5, "text"]} for number in range(count)]
    body = json.dumps({"id": user, "user_metadata": {"x": value}})
    body = body.replace("0.5", "1e400")
    answer_with(
        app,
        lambda r: (
            {"status": 200, "headers": {}, "body": body} if r["purpose"] == "validate" else None
        ),
    )
    foreground(app)


def headers(app: App, count: int) -> None:
    many = {f"x-header-{number}": "v" * 20 for number in range(count)}
    answer_with(app, lambda r: rows([], **many) if r["purpose"] in ("pull", "summary") else None)
    foreground(app)


# Operations --------------------------------------------------------------------------------------


def chain(app: App, count: int) -> None:
    """Items of which each depends on the one before; the first one is parked."""
    app.go_offline()
    for number in range(count):
        item: Any = {
            "kind": "activity",
            "id": id_of(number),
            "payload": {"type": "visit", "minutes": 100_000 if number == 0 else 30},
            "occurred_at_ms": app.phone.now_ms,
            **({"depends_on": [id_of(number - 1)]} if number else {}),
        }
        app.queue_add(item)
    app.reconnect()
    assert app.queue_list({"state": "parked"})["items"][0]["id"] == id_of(0)


def many_memberships(app: App, count: int) -> None:
    answer_with(app, memberships(count, "active"))
    foreground(app)
    assert len(app.org_list()["orgs"]) >= count


def org_of(app: App) -> str:
    org = app.screen["org"]
    assert org is not None
    return org["id"]


def nothing(app: App, count: int) -> None:
    pass


@dataclass
class Case:
    """What is counted: the calls of a function in `act`, after `prepare` in another process."""

    function: str
    act: Act
    prepare: Act = nothing
    #: Where sorting is most of the cost, its logarithm counts less with more.
    size: int = SIZE
    #: The mapping of the phone.
    tables: dict[str, Any] | None = None


def last(app: App, count: int) -> None:
    item: Any = app.queue_get({"id": id_of(count - 1)})["item"]
    assert item["reason"]["code"] == "dependency_parked"


def whole_list(app: App, count: int) -> None:
    page: Any = app.queue_list({"limit": 500})
    assert page["counts"]["waiting"] == count - 1
    assert {item["reason"]["code"] for item in page["items"][1:]} == {"dependency_parked"}


def one_more(app: App, count: int) -> None:
    app.queue_add(
        {
            "kind": "activity",
            "payload": {"type": "visit", "minutes": 30},
            "occurred_at_ms": app.phone.now_ms,
            "depends_on": [id_of(count - 1)],
        }
    )


def own_items(app: App, count: int) -> None:
    """As many stored as queued, in turn."""
    when = "2026-01-01T00:00:00.000000+00:00"
    made = [
        json.dumps({
            "id": id_of(number), "org_id": org_of(app), "updated_at": when, "minutes": 30,
            "occurred_at": f"2026-11-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
        })
        for number in range(count)
    ]  # fmt: skip

    def page(request: HttpRequest) -> Answer | None:
        if request["purpose"] != "pull" or "/activities?" not in request["url"]:
            return None
        return rows([] if "&or=" in request["url"] else made)

    answer_with(app, page)
    foreground(app)
    app.go_offline()
    for number in range(count):
        at = f"2026-11-01T00:{number // 60 % 60:02}:{number % 60:02}.500Z"
        payload = {"type": "visit", "minutes": 30, "occurred_at": at}
        app.queue_add({"kind": "activity", "id": id_of(count + number), "payload": payload})


def first_page(app: App, count: int) -> None:
    app.go_offline()
    items = app.item_list({"kind": "activity", "limit": 10})["items"]
    assert len(items) == min(10, 2 * count)
    assert {item["state"] for item in items} == {"stored", "pending"}


def retried(app: App, count: int) -> None:
    app.queue_edit({"id": id_of(0), "payload": {"type": "visit", "minutes": 30}})


CASES = {
    "memberships": Case("complete", lists_of_memberships),
    "contacts": Case("complete", contacts),
    "ids": Case("complete", ids, contacts),
    "upload": Case("complete", upload, size=3 * SIZE),
    "figures": Case("complete", figures),
    "metadata": Case("complete", metadata),
    "headers": Case("complete", headers),
    "queue_list": Case("queue_list", whole_list, chain),
    "queue_get": Case("queue_get", last, chain),
    "queue_add": Case("queue_add", one_more, chain),
    "queue_edit": Case("queue_edit", retried, chain),
    "queue_explain": Case("queue_explain", lambda app, _: app.queue_explain(), chain),
    "queue_export": Case("queue_export", lambda app, _: app.queue_export(), chain),
    "queue_cancel": Case("queue_cancel", lambda app, _: app.queue_cancel({"id": id_of(0)}), chain),
    "next": Case("next", lambda app, _: app.settle(), chain),
    "sync_status": Case("sync_status", lambda app, _: app.sync_status(), chain),
    "summary_get": Case("summary_get", lambda app, _: app.summary_get(), chain),
    "org_list": Case("org_list", lambda app, _: app.org_list(), many_memberships),
    "session_resume": Case("session_resume", nothing, many_memberships),
    "session_status": Case("session_status", lambda app, _: app.session_status(), many_memberships),
    "contact_search": Case(
        "contact_search", lambda app, _: app.contact_search({"query": "prøve"}), contacts
    ),
    "item_list": Case("item_list", first_page, own_items, tables=own_rows.tables()),
    "contact_get": Case(
        "contact_get", lambda app, _: app.contact_get({"id": id_of(0)}), contacts
    ),
}  # fmt: skip


#: A page costs the same whatever the lists' lengths are.
FLAT = {"item_list"}


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("name", CASES)
def test_FIX_15_a_cost_is_linear(
    host_program: Path,
    flavour: str,
    tmp_path: Path,
    backend: LocalSupabase,
    directory: DirectoryFixtures,
    name: str,
) -> None:
    case = CASES[name]

    def cost(count: int) -> int:
        folder = tmp_path / str(count)
        folder.mkdir()
        policy = {"biometric": "off", "session_window_s": 10**7, "offline_limit_s": 10**7}
        quick = HostedLibrary(host_program, BUILDS[flavour])
        phone = FilePhone(folder / "phone", quick, backend, policy=policy, tables=case.tables)
        app = phone.start()
        app.sign_in(directory.person(directory.organisation()))
        case.prepare(app, count)
        phone.close()
        quick.end()
        counted = CountedLibrary(host_program, BUILDS[flavour], case.function, folder)
        phone.library = counted
        app = phone.start()
        case.act(app, count)
        phone.close()
        return counted.count()

    little, once, twice = (cost(count) for count in (LITTLE, case.size, 2 * case.size))
    # What does not grow at all has no ratio
    growth = (twice - little) / max(once - little, little // 10)
    print(f"{name}: {little:,} {once:,} {twice:,} instructions, {growth:.2f}")
    if name in FLAT:
        assert twice < 1.1 * once, (once, twice)
    assert growth < MOST, (little, once, twice)
