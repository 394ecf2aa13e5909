"""Pulls of several pages, and requests that a test holds back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from holdfast.types import HttpRequest

from . import contact_data
from .directory_fixtures import DirectoryFixtures, Organisation
from .phone import App
from .users import SignedIn

COUNT = 1_200


def fill(directory: DirectoryFixtures, org: Organisation) -> None:
    """Add contacts with times far apart, so that the overlap repeats no page."""
    with directory.times_as_given():
        contact_data.fill(directory.control, org.id, COUNT)
        directory.control.sql(
            "with numbered as (select id, row_number() over () as n from contacts "
            "where org_id = %s) update contacts set updated_at = now() - interval '2 days' "
            "+ numbered.n * interval '1 minute' from numbered where numbered.id = contacts.id",
            org.id,
        )


def total(app: App) -> int:
    """The number of contacts that the app shows."""
    return int(app.contact_search({"query": ""})["total"])


def hold(app: App, wanted: Callable[[str], bool]) -> HttpRequest:
    """Poll and answer until a pull with a matching URL; returns it unanswered."""
    for _ in range(40):
        for request in app.poll()["requests"]:
            if request["purpose"] == "pull" and wanted(request["url"]):
                return request
            answer(app, request)
    raise AssertionError("no pull has a matching URL")


def answer(app: App, request: HttpRequest) -> None:
    """Complete a request with the server's answer."""
    app.complete({"id": request["id"], **app.phone.network(request)})  # type: ignore[typeddict-item]


def page(number: int, of: Organisation | None = None) -> Callable[[str], bool]:
    """Matches the n-th page of the changes."""
    seen = 0

    def wanted(url: str) -> bool:
        nonlocal seen
        seen += of is None or of.id in url
        return seen == number

    return wanted


def unlock(user: SignedIn) -> None:
    """Answer the prompt, if a restart shows it."""
    if user.app.screen["screen"] == "unlock":
        user.app.touch()


def taken(user: SignedIn, purpose: str) -> Any:  # noqa: ANN401
    """The request of this purpose, unanswered; all others are answered until nothing is left."""
    found = None
    for _ in range(10):
        for request in user.app.poll()["requests"]:
            if request["purpose"] == purpose and found is None:
                found = request
            else:
                answer: Any = {"id": request["id"], **user.phone.network(request)}
                user.app.complete(answer)
    assert found is not None, f"no {purpose}"
    return found


def return_to_foreground(user: SignedIn) -> None:
    """The app asks for the memberships again."""
    user.app.session_background()
    user.app.session_foreground()
    user.app.settle()
