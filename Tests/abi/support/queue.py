"""Helpers of the queue tests: both upload methods, and the state of queue and server."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from .directory_fixtures import DirectoryFixtures, Person
from .phone import App

if TYPE_CHECKING:
    from support.users import MakeUser, SignedIn

#: Table mapping that uploads through a function, which answers for each row.
RPC = {
    "queue": {
        "activity": {
            "table": "activities",
            "columns": ["type", "minutes", "occurred_at", "contact_id", "follows", "note"],
            "upload": "rpc",
            "function": "submit_activities",
        }
    }
}
#: The path of each upload method.
UPLOADS = {"table": "/rest/v1/activities", "rpc": "/rest/v1/rpc/submit_activities"}
#: Runs a test once with each upload method.
BOTH = pytest.mark.parametrize("upload", UPLOADS)
#: More minutes than a day has: a check constraint refuses it.
BAD_MINUTES = 100_000
EMPTY = {"pending": 0, "sending": 0, "waiting": 0, "parked": 0}


def user_of(sign_in: MakeUser, upload: str, **options: Any) -> SignedIn:  # noqa: ANN401
    """A user whose app uploads to the table or through the function."""
    return sign_in(tables=RPC if upload == "rpc" else None, **options)


def stored(directory: DirectoryFixtures, person: Person) -> list[str]:
    """The ids of the user's activities on the server, sorted."""
    return sorted(str(row["id"]) for row in directory.activities(person))


def drain(app: App, within_s: float = 7200) -> dict[str, Any]:
    """Follow `wake_in_ms` until a sync run completes; returns its event."""
    before = len(app.of_type("sync_completed"))
    if not before or app.queue_list({"limit": 1})["counts"] != EMPTY:
        app.settle_until("sync_completed", within_s=within_s)
    return app.of_type("sync_completed")[-1]


def ask_until_believed(app: App) -> None:
    """Let time pass for the eight questions after which a row that is not shown counts as gone."""
    for _ in range(10):
        app.wait(600)


def item_of(app: App, item: str) -> dict[str, Any]:
    """The item as `queue_get` shows it."""
    return dict(app.queue_get({"id": item})["item"])


def code_of(app: App, item: str) -> str | None:
    """Why the item waits or is parked."""
    reason = item_of(app, item)["reason"]
    return None if reason is None else str(reason["code"])


def add(
    app: App,
    item: str | None = None,
    minutes: int = 5,
    depends_on: Sequence[str] = (),
    **more: Any,  # noqa: ANN401
) -> str:
    """Add an activity, with this id if one is given; returns its id."""
    request: Any = {
        "kind": "activity",
        "payload": {"type": "visit", "minutes": minutes, **more},
        "occurred_at_ms": app.phone.now_ms,
    }
    if item is not None:
        request["id"] = item
    if depends_on:
        request["depends_on"] = [*depends_on]
    return str(app.queue_add(request)["id"])


def add_offline(user: SignedIn, count: int) -> list[str]:
    """Cut the network and add so many activities; returns their ids."""
    app = user.offline()
    return [add(app) for _ in range(count)]


def edit(app: App, item: str, minutes: int, **more: Any) -> str | None:  # noqa: ANN401
    """Edit an activity; returns its state."""
    payload: Any = {"type": "visit", "minutes": minutes, **more}
    return app.queue_edit({"id": item, "payload": payload})["state"]


def in_doubt(
    user: SignedIn,
    directory: DirectoryFixtures,
    upload: str = "table",
    *,
    arrives: bool = True,
    **payload: Any,  # noqa: ANN401
) -> str:
    """An item whose upload got no answer: it arrived or not. The phone is offline."""
    user.app.go_offline()
    item = add(user.app, **payload)
    drop = directory.control.drop_after if arrives else directory.control.drop_before
    drop(UPLOADS[upload], method="POST", times=1)
    user.app.reconnect()
    user.app.go_offline()
    assert (item in stored(directory, user.person)) == arrives
    return item


def only_the_user_can_tell(app: App, item: str, done: dict[str, Any] | None = None) -> None:
    """A run ends, and parks this item as one that the server may have with other content."""
    done = done or drain(app)
    assert (done["sent"], done["parked"]) == (0, 1)
    assert code_of(app, item) == "unknown_outcome"


def new_ids(count: int) -> list[str]:
    """Fresh ids in growing order."""
    stem = uuid.uuid4().hex[:8]
    return [f"{stem}-0000-7000-8000-{number:012x}" for number in range(count)]


def activity(item: str, **payload: Any) -> Any:  # noqa: ANN401
    """A request of queue_add."""
    return {"kind": "activity", "id": item, "payload": {"type": "visit", "minutes": 5, **payload}}
