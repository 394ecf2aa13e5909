"""The user's own rows: a kind that keeps them, rows on the server, and what the app lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .phone import App

if TYPE_CHECKING:
    from .directory_fixtures import DirectoryFixtures, Organisation, Person
    from .users import SignedIn

COLUMNS = ["type", "minutes", "occurred_at", "contact_id", "follows", "note"]


def tables(days: int = 400, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """The mapping with a kind of activities of which the user's stored ones are kept."""
    own = {"days": days, **more.pop("own", {})}
    kind = {"table": "activities", "columns": [*COLUMNS, "user_id"], "own": own, **more}
    return {"queue": {"activity": {"delete": "deleted_at", **kind}}}


def insert(
    directory: DirectoryFixtures,
    person: Person,
    org: Organisation,
    count: int = 1,
    days_ago: float = 1,
    note: str = "Tur",
) -> list[str]:
    """Insert activities of another device, a second apart; returns their ids, newest first."""
    rows = directory.control.sql(
        "insert into activities (org_id, user_id, type, occurred_at, minutes, note) "
        "select %s, %s, 'visit', now() - %s * interval '1 day' - number * interval '1 second', 30, "
        "%s || ' ' || number from generate_series(0, %s) as number returning id, occurred_at",
        org.id, person.id, days_ago, note, count - 1,
    )  # fmt: skip
    rows.sort(key=lambda row: row["occurred_at"], reverse=True)
    return [str(row["id"]) for row in rows]


def page(app: App, **request: Any) -> dict[str, Any]:  # noqa: ANN401
    """One page of the list of activities."""
    return dict(app.item_list({"kind": "activity", **request}))


def listed(app: App, limit: int = 200, **request: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """All pages of the list."""
    items: list[dict[str, Any]] = []
    after: dict[str, Any] = {}
    while True:
        reply = page(app, limit=limit, **request, **after)
        items += reply["items"]
        if reply["next"] is None:
            return items
        assert len(reply["items"]) == limit
        after = {"after": reply["next"]}


def ids(app: App, **request: Any) -> list[str]:  # noqa: ANN401
    """The ids of the list, newest first."""
    return [str(item["id"]) for item in listed(app, **request)]


def banners(app: App) -> list[str]:
    """The codes of the list's banners."""
    return [banner["code"] for banner in page(app)["banners"]]


def pull(user: SignedIn, after_s: float = 0) -> None:
    """Advance the time and pull."""
    user.phone.pass_time(after_s)
    user.app.sync()
