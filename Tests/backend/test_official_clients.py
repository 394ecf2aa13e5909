"""The official Python client of the data service, unmodified, against this server."""

from __future__ import annotations

from typing import Any

import pytest
from local_supabase import LocalSupabase
from postgrest import SyncPostgrestClient
from postgrest.exceptions import APIError

from people import Person, activity, member

pytestmark = pytest.mark.both_servers


def rest_client(backend: LocalSupabase, token: str | None) -> SyncPostgrestClient:
    headers = {"apikey": backend.anon_key}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    return SyncPostgrestClient(backend.rest_url, headers=headers)


@pytest.fixture
def table(backend: LocalSupabase, mentor: Person) -> SyncPostgrestClient:
    return rest_client(backend, mentor.token)


def ids(rows: Any) -> set[str]:
    return {row["id"] for row in rows}


def test_bulk_upsert_lists_only_new_rows(table: SyncPostgrestClient, org: str) -> None:
    rows = [activity(org) for _ in range(10)]
    first = table.from_("activities").upsert(rows, ignore_duplicates=True).execute()
    assert ids(first.data) == ids(rows)
    more = [*rows, activity(org)]
    second = table.from_("activities").upsert(more, ignore_duplicates=True).execute()
    assert ids(second.data) == {more[-1]["id"]}
    third = table.from_("activities").upsert(more, ignore_duplicates=True).execute()
    assert third.data == []


def test_bulk_upsert_merges(
    backend: LocalSupabase, table: SyncPostgrestClient, mentor: Person, org: str
) -> None:
    rows = [activity(org, note="før", user_id=mentor.id) for _ in range(3)]
    table.from_("activities").insert(rows).execute()
    changed = [{**row, "note": "etter"} for row in rows]
    # It sets every column of the row, also org_id, and these are not granted to a user.
    with pytest.raises(APIError) as caught:
        table.from_("activities").upsert(changed).execute()
    assert caught.value.code == "42501"
    service = rest_client(backend, backend.service_key)
    service.from_("activities").upsert(changed).execute()
    found = table.from_("activities").select("note").execute()
    assert [row["note"] for row in found.data] == ["etter"] * 3


def test_missing_columns_get_their_defaults(table: SyncPostgrestClient, org: str) -> None:
    rows = [activity(org), activity(org, note="ja")]
    done = table.from_("activities").insert(rows, default_to_null=False).execute()
    assert [row["note"] for row in done.data] == [None, "ja"]
    assert all(row["created_at"] is not None for row in done.data)


def test_denials_by_row_level_security(
    backend: LocalSupabase, table: SyncPostgrestClient, org: str
) -> None:
    other = backend.control.add_org("Et annet lag")
    with pytest.raises(APIError) as caught:
        table.from_("activities").insert(activity(other)).execute()
    assert caught.value.code == "42501"
    with pytest.raises(APIError) as caught:
        rest_client(backend, None).from_("activities").select("*").execute()
    assert caught.value.code == "42501"
    assert table.from_("contacts").select("id").eq("org_id", other).execute().data == []


def test_filters(backend: LocalSupabase, table: SyncPostgrestClient, org: str) -> None:
    backend.control.seed_contacts(org, 40)
    contacts = table.from_("contacts")
    everyone = contacts.select("*,phone").order("id").execute().data
    assert len(everyone) == 40

    def found(query: Any) -> list[str]:
        return sorted(row["name"] for row in query.execute().data)

    def expected(keep: Any) -> list[str]:
        return sorted(row["name"] for row in everyone if keep(row))

    assert found(contacts.select("name").eq("municipality", "Tromsø")) == expected(
        lambda r: r["municipality"] == "Tromsø"
    )
    assert found(contacts.select("name").neq("municipality", "Tromsø")) == expected(
        lambda r: r["municipality"] != "Tromsø"
    )
    assert found(contacts.select("name").ilike("name", "ås%")) == expected(
        lambda r: r["name"].lower().startswith("ås")
    )
    assert found(contacts.select("name").like("name", "%é")) == expected(
        lambda r: r["name"].endswith("é")
    )
    assert found(contacts.select("name").in_("municipality", ["Ås", "Oslo"])) == expected(
        lambda r: r["municipality"] in {"Ås", "Oslo"}
    )
    assert found(contacts.select("name").is_("deleted_at", "null")) == expected(lambda r: True)
    assert found(contacts.select("name").not_.is_("deleted_at", "null")) == []
    either = 'municipality.eq.Ås,and(municipality.eq.Oslo,name.like."*sen")'
    assert found(contacts.select("name").or_(either)) == expected(
        lambda r: (
            r["municipality"] == "Ås" or (r["municipality"] == "Oslo" and r["name"].endswith("sen"))
        )
    )
    middle = everyone[20]["phone"]
    assert found(contacts.select("name").gt("phone", middle)) == expected(
        lambda r: r["phone"] > middle
    )
    assert found(contacts.select("name").lte("phone", middle)) == expected(
        lambda r: r["phone"] <= middle
    )


def test_paging_and_counts(backend: LocalSupabase, table: SyncPostgrestClient, org: str) -> None:
    backend.control.seed_contacts(org, 25)
    seen: list[str] = []
    for start in range(0, 40, 10):
        page = table.from_("contacts").select("id").order("id").range(start, start + 9).execute()
        seen += [row["id"] for row in page.data]
    assert len(seen) == 25
    assert seen == sorted(set(seen))
    counted = table.from_("contacts").select("id", count="exact").limit(3).execute()
    assert (len(counted.data), counted.count) == (3, 25)


def test_max_rows_truncates_reads_but_not_inserts(
    backend: LocalSupabase, table: SyncPostgrestClient, org: str
) -> None:
    backend.control.set(max_rows=5)
    done = table.from_("activities").insert([activity(org) for _ in range(8)]).execute()
    assert len(done.data) == 8
    assert len(table.from_("activities").select("id").execute().data) == 5


def test_keyset_pages_see_every_row_once(
    backend: LocalSupabase, table: SyncPostgrestClient, org: str
) -> None:
    backend.control.seed_contacts(org, 23)
    seen: list[str] = []
    query = table.from_("contacts").select("id,updated_at").order("updated_at").order("id").limit(5)
    rows = query.execute().data
    while rows:
        seen += [row["id"] for row in rows]
        at, last = rows[-1]["updated_at"], rows[-1]["id"]
        after = f'updated_at.gt."{at}",and(updated_at.eq."{at}",id.gt.{last})'
        query = table.from_("contacts").select("id,updated_at").or_(after)
        rows = query.order("updated_at").order("id").limit(5).execute().data
    assert len(seen) == len(set(seen)) == 23


def test_embedding(backend: LocalSupabase, table: SyncPostgrestClient, org: str) -> None:
    backend.control.seed_contacts(org, 2)
    contact = table.from_("contacts").select("id,name").order("id").limit(1).execute().data[0]
    done = activity(org, contact_id=contact["id"])
    table.from_("activities").insert(done).execute()
    found = (
        table.from_("activities").select("id,who:contacts(name),organizations(name)").execute().data
    )
    assert found == [
        {
            "id": done["id"],
            "who": {"name": contact["name"]},
            "organizations": {"name": "Testlag Ås"},
        }
    ]
    many = table.from_("contacts").select("id,activities(id)").order("id").execute().data
    assert [row["activities"] for row in many] == [[{"id": done["id"]}], []]
    inner = table.from_("contacts").select("id,activities!inner(id)").execute().data
    assert [row["id"] for row in inner] == [contact["id"]]


@pytest.mark.postgres_only(reason="queries over a function's rows")
def test_rpc(table: SyncPostgrestClient, org: str) -> None:
    good, bad = activity(org), activity(org, minutes=0)
    answer = table.rpc("submit_activities", {"items": [good, bad]}).execute()
    assert [row["status"] for row in answer.data] == ["stored", "rejected"]
    summary = table.rpc("activity_summary", {"org": org}, get=True).execute().data
    assert (summary["activities"], summary["minutes"]) == (1, 30)
    counted = table.rpc("submit_activities", {"items": [good, bad]}, count="exact")
    refused = counted.select("id,sqlstate").eq("status", "rejected").limit(1).execute()
    assert (refused.data, refused.count) == ([{"id": bad["id"], "sqlstate": "23514"}], 1)
    with pytest.raises(APIError) as caught:
        table.rpc("nope", {}).execute()
    assert caught.value.code == "PGRST202"


def test_update_and_delete_denied_silently(
    backend: LocalSupabase, table: SyncPostgrestClient, org: str
) -> None:
    colleague = member(backend, org, "peer_mentor")
    theirs = activity(org)
    assert colleague.insert(theirs).status_code == 201
    changed = table.from_("activities").update({"note": "x"}).eq("id", theirs["id"]).execute()
    assert changed.data == []
    with pytest.raises(APIError) as caught:
        table.from_("activities").delete().eq("id", theirs["id"]).execute()
    assert caught.value.code == "42501", "no role has the privilege to delete"
