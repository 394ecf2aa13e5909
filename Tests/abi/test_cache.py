"""What is kept of the server's data, and for how long."""

from __future__ import annotations

from pathlib import Path

import pytest
from holdfast import HoldfastError

from conftest import MakePhone, MakeUser, SignedIn
from support import thief
from support.town import Town


def rows(folder: Path) -> int:
    """How many contacts the cache file holds."""
    [(count,)] = thief.rows(folder / "cache.db", "SELECT count(*) FROM contact")
    return int(count)


def stored(town: Town, user: SignedIn) -> set[str]:
    """The ids that the server has."""
    return {str(row["id"]) for row in town.activities(user.person)}


def test_KEEP_4_the_cache_goes_with_the_logout(sign_in: MakeUser) -> None:
    user = sign_in(contacts=5)
    assert rows(user.phone.folder) == 5
    user.app.session_logout()
    assert rows(user.phone.folder) == 0


def test_CAC_5_the_cache_does_not_answer_while_locked(sign_in: MakeUser) -> None:
    user = sign_in(contacts=300)
    assert user.app.contact_search({"query": "", "limit": 200})["total"] == 300
    user.app.session_lock()
    with pytest.raises(HoldfastError) as caught:
        user.app.contact_search({"query": ""})
    assert caught.value.code == "session.locked"
    user.app.touch()
    reply = user.app.contact_search({"query": "", "limit": 200})
    assert (len(reply["contacts"]), reply["total"]) == (200, 300)


def test_CAC_2_withheld_columns_are_never_asked_for(sign_in: MakeUser) -> None:
    user = sign_in(contacts=5)
    user.app.sync_now()
    user.app.settle()
    pulls = [r["url"] for r in user.phone.network.sent if "/rest/v1/contacts" in r["url"]]
    assert pulls
    for url in pulls:
        assert "select=" in url
        assert "select=*" not in url
        for column in ("phone", "address", "national_id"):
            assert column not in url
    for contact in user.app.contact_search({"query": ""})["contacts"]:
        assert set(contact) & {"phone", "address", "national_id"} == set()


def test_CAC_1_late_changed_and_deleted_rows(sign_in: MakeUser, town: Town) -> None:
    # Given cached contacts
    user = sign_in()
    names = ["Kari Prøve", "Ola Prøve", "Per Prøve"]
    ids = [town.contact(user.org, name) for name in names]

    def shown() -> list[str]:
        user.phone.pass_time(60)
        user.app.sync_now()
        user.app.settle()
        return sorted(c["name"] for c in user.app.contact_search({"query": ""})["contacts"])

    assert shown() == names
    # When one is changed, one is marked as deleted, and one is new with an older time
    town.control.sql("update contacts set name = 'Kari Ny' where id = %s", ids[0])
    town.control.sql("update contacts set deleted_at = now() where id = %s", ids[1])
    assert shown() == ["Kari Ny", "Per Prøve"]
    town.control.sql("alter table contacts disable trigger touch")
    try:
        late = town.contact(user.org, "Sen Commit")
        town.control.sql(
            "update contacts set updated_at = now() - interval '5 seconds' where id = %s", late
        )
    finally:
        town.control.sql("alter table contacts enable trigger touch")
    # Then the next pull has it all
    assert shown() == ["Kari Ny", "Per Prøve", "Sen Commit"]
    # and what was deleted without a trace is gone after the reconcile
    town.control.sql("delete from contacts where id = %s", ids[2])
    user.phone.pass_time(2 * 86_400)
    user.restart()
    if user.app.screen["screen"] == "unlock":
        user.app.touch()
        user.app.settle()
    assert shown() == ["Kari Ny", "Sen Commit"]


def test_CAC_3_the_cache_of_an_ended_membership_is_erased(phones: MakePhone, town: Town) -> None:
    first, second = town.organisation(contacts=4), town.organisation(contacts=3)
    person = town.person(first, second)
    app = phones().start()
    app.sign_in(person, first)
    assert app.contact_search({"query": ""})["total"] == 4
    town.control.set_membership(person.id, first.id, status="ended")
    app.session_background()
    app.session_foreground()
    app.settle()
    assert app.screen["screen"] == "select_org"
    app.org_select({"org_id": second.id})
    app.settle()
    town.control.set_membership(person.id, first.id, status="active")
    app.session_background()
    app.session_foreground()
    app.settle()
    app.go_offline()
    app.org_select({"org_id": first.id})
    assert app.contact_search({"query": ""})["total"] == 0


@pytest.mark.parametrize("damage", ["deleted", "noise", "truncated", "empty"])
def test_CAC_4_a_damaged_cache_is_rebuilt_by_itself(
    sign_in: MakeUser, town: Town, damage: str
) -> None:
    user = sign_in(contacts=5)
    user.app.go_offline()
    item = user.app.register()
    user.phone.close()
    for path in user.phone.folder.glob("cache.db*"):
        if damage == "deleted":
            path.unlink()
        elif damage == "noise":
            path.write_bytes(bytes(range(256)) * 64)
        elif damage == "truncated":
            path.write_bytes(path.read_bytes()[:700])
        else:
            path.write_bytes(b"")
    app = user.restart(online=False)
    assert app.screen["screen"] == "home"
    assert app.contact_search({"query": ""})["total"] == 0
    assert app.queue_get({"id": item})["item"]["state"] == "pending"
    app.go_online()
    app.settle()
    assert app.contact_search({"query": ""})["total"] == 5
    assert stored(town, user) == {item}
