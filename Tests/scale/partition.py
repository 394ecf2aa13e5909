"""The schema with `activities` partitioned by organisation, as a change of schema.sql.

Every unique key of a partitioned table contains the partition key. So the primary key is
(id, org_id), and `on conflict (id)`, which the library's insert into the table uses, has no index:
uploads need the function. An id is then unique within an organisation only.
"""

from __future__ import annotations

PARTITIONS = 64

_CHANGES = (
    (
        "public.activities (\n  id uuid primary key default gen_random_uuid(),",
        "public.activities (\n  id uuid not null default gen_random_uuid(),",
    ),
    (
        "  unique (id, org_id),\n  constraint activities_contact_id_fkey",
        "  primary key (id, org_id),\n  constraint activities_contact_id_fkey",
    ),
    (
        "    foreign key (follows, org_id) references public.activities (id, org_id)\n);",
        "    foreign key (follows, org_id) references public.activities (id, org_id)\n"
        ") partition by hash (org_id);\n"
        "do $$ begin\n"
        "  for n in 0..{last} loop\n"
        "    execute format('create table public.activities_%s partition of public.activities '\n"
        "      'for values with (modulus {count}, remainder %s)', n, n);\n"
        "    -- Only through the table, where the policies are.\n"
        "    execute format('revoke all on public.activities_%s from anon, authenticated', n);\n"
        "  end loop;\n"
        "end $$;",
    ),
)


def partitioned(schema: str, partitions: int = PARTITIONS) -> str:
    """schema.sql with the table of activities in partitions."""
    for before, after in _CHANGES:
        if schema.count(before) != 1:
            raise ValueError(f"schema.sql has changed: {before!r}")
        schema = schema.replace(
            before, after.replace("{last}", str(partitions - 1)).replace("{count}", str(partitions))
        )
    return schema
