"""A kind whose stored rows are corrected: configuration, rows, edits, and lost answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .held import taken
from .own_rows import COLUMNS

if TYPE_CHECKING:
    from .directory_fixtures import DirectoryFixtures
    from .phone import App
    from .users import MakeUser, SignedIn

#: A kind whose stored rows are kept, changed and taken back.
KIND = {"table": "activities", "columns": [*COLUMNS, "user_id"]}
OWN: dict[str, Any] = {**KIND, "own": {}, "change": {}, "delete": "deleted_at"}


def tables(**kind: Any) -> dict[str, Any]:  # noqa: ANN401
    """The mapping with this kind of activities."""
    return {"queue": {"activity": {**OWN, **kind}}}


def user_with_change_ids(sign_in: MakeUser, directory: DirectoryFixtures) -> SignedIn:
    """A user whose changes and deletions are named in a column of the row."""
    directory.control.sql("alter table activities add column if not exists change_id uuid")
    directory.control.sql("grant update (change_id) on activities to authenticated")
    directory.control.reload_schema()
    return sign_in(tables=tables(change={"id": "change_id"}))


def row(directory: DirectoryFixtures, item: str) -> dict[str, Any]:
    """The item's row on the server."""
    [found] = directory.control.sql("select * from activities where id = %s", item)
    return found


def edit(app: App, item: str, **payload: Any) -> Any:  # noqa: ANN401
    """Change columns of an item."""
    return app.queue_edit({"id": item, "payload": payload})


def shown(app: App, item: str) -> dict[str, Any]:
    """The item as `item_list` shows it."""
    return dict(
        next(one for one in app.item_list({"kind": "activity"})["items"] if one["id"] == item)
    )


def set_elsewhere(directory: DirectoryFixtures, item: str, **values: Any) -> None:  # noqa: ANN401
    """Another device changes the row."""
    names = ", ".join(f"{name} = %s" for name in values)
    directory.control.sql(f"update activities set {names} where id = %s", *values.values(), item)


def lose_change(user: SignedIn) -> None:
    """The server makes the next change, and its answer is lost."""
    request = taken(user, "upload")
    assert user.phone.network(request)["status"] == 200
    user.app.complete({"id": request["id"], "error": "timeout"})
