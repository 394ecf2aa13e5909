"""A PostgreSQL with the schema of the examples, filled with made-up rows by set-based SQL.

Each size is a database of its own in one server. Organisations have different sizes: the largest of
1,000 has about 3 % of the users, contacts and activities. The rows are inserted without triggers
and indexes, and the indexes are made afterwards, so ten million rows take minutes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from local_supabase import postgres
from psycopg import sql

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = ROOT / "examples" / "backend" / "schema.sql"
AUTH = ROOT / "Tests" / "server" / "local_auth.sql"
Connection = psycopg.Connection[Any]

#: A server of 2 cores and 8 GB, as Supabase's Large has. fsync stays on, as in production.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "max_connections": "160",
    "shared_buffers": "2GB",
    "effective_cache_size": "6GB",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "8GB",
    "random_page_cost": "1.1",
    "autovacuum": "off",
}


@dataclasses.dataclass(frozen=True)
class Size:
    """The number of rows."""

    organisations: int
    users: int
    contacts: int
    activities: int


#: Names that any row's number determines, so that the rows need no joins. Users and contacts with
#: low numbers belong to large organisations.
_HELPERS = """
create schema scale;
create function scale.user_id(n bigint) returns uuid language sql immutable parallel safe
  return md5('user ' || n)::uuid;
create function scale.org_id(n bigint) returns uuid language sql immutable parallel safe
  return md5('organisation ' || n)::uuid;
create function scale.org_of(place double precision, organisations bigint) returns bigint
  language sql immutable parallel safe
  return least(organisations, 1 + floor(organisations * place * place))::bigint;
create function scale.contact_id(org bigint, n bigint) returns uuid
  language sql immutable parallel safe return md5('contact ' || org || ' ' || n)::uuid;
"""

_PARENTS = """
insert into auth.users (id, email)
  select scale.user_id(n), 'user' || n || '@example.org' from generate_series(1, {users}) n;
insert into public.organizations (id, name)
  select scale.org_id(n), 'Lag ' || n from generate_series(1, {organisations}) n;
insert into public.memberships (user_id, org_id, role)
  select scale.user_id(n), scale.org_id(org),
    case when place = 1 then 'org_admin' when place <= 3 then 'coordinator' else 'peer_mentor' end
  from (select n, org, row_number() over (partition by org order by n) as place
    from (select n, scale.org_of((n - 0.5) / {users}, {organisations}) as org
      from generate_series(1, {users}) n) a) b;
insert into public.contacts (id, org_id, name, municipality, relation, created_by, updated_at)
  select scale.contact_id(org, place), scale.org_id(org),
    'Kontakt ' || md5('name ' || n), 'Oslo', 'nabo', null,
    now() - random() * interval '730 days'
  from (select n, org, row_number() over (partition by org order by n) as place
    from (select n, scale.org_of((n - 0.5) / {contacts}, {organisations}) as org
      from generate_series(1, {contacts}) n) a) b;
"""

# In the order of time, as rows arrive, with UUIDv7. One note in a hundred has the word "kveld".
_ACTIVITIES = """
create temporary table belongs as
  select n, scale.user_id(n) as user_id, org, scale.org_id(org) as org_id
  from (select n, scale.org_of((n - 0.5) / {users}, {organisations}) as org
    from generate_series(1, {users}) n) a;
create temporary table knows as
  select org, array(select scale.contact_id(org, k) from generate_series(1, 50) k) as contacts
  from generate_series(1, {organisations}) org;
analyze belongs, knows;
insert into public.activities (id, org_id, user_id, type, occurred_at, minutes, contact_id, note,
    created_at, updated_at)
  select
    (lpad(to_hex(ms), 12, '0') || '70008' || lpad(to_hex((salt * 1e15)::bigint), 15, '0'))::uuid,
    b.org_id, b.user_id, (array['visit', 'call', 'trip', 'meeting'])[1 + (salt * 3.99)::int % 4],
    at, 15 + (salt * 120)::int,
    case when salt < 0.5 then k.contacts[1 + (salt * 100)::int % 50] end,
    'Samtale og tur' || case when salt > 0.99 then ' en kveld' else ' i nabolaget' end,
    at, at + interval '3 seconds'
  from (select 1 + floor(random() * {users})::int as u, random() as salt, ms,
      to_timestamp(ms / 1000.0) as at
    from (select 1782777600000 - (63072000000 * (1 - n::float8 / {activities}))::bigint as ms
      from generate_series(1, {activities}) n) times offset 0) rows
  join belongs b on b.n = rows.u join knows k on k.org = b.org;
drop table belongs, knows;
"""

# The callers that the scripts pick at random; the administrators come first.
_PEOPLE = """
create table scale.people as
  select row_number() over (order by m.role <> 'org_admin', m.user_id)::int as n,
    m.user_id, m.org_id, m.role,
    json_build_object('sub', m.user_id, 'role', 'authenticated', 'aud', 'authenticated')::text
      as claims
  from public.memberships m;
alter table scale.people add primary key (n);
create table scale.organisations as
  select o.id as org_id, c.updated_at as contact_at, c.id as contact_id, middle.id as middle_id,
    (select m.user_id from public.memberships m
      where m.org_id = o.id and m.role = 'peer_mentor' order by m.user_id limit 1) as mentor,
    (select array_agg(k.id) from (select id from public.contacts where org_id = o.id
      order by updated_at limit 20) k) as contacts
  from public.organizations o
  cross join lateral (select c.updated_at, c.id from public.contacts c where c.org_id = o.id
    order by c.updated_at desc, c.id desc offset 50 limit 1) c
  cross join lateral (select c.id from public.contacts c where c.org_id = o.id
    order by c.id offset 50 limit 1) middle;
alter table scale.organisations add primary key (org_id);
-- A place before the last changes of every organisation's activities.
alter table scale.organisations add activity_at timestamptz, add activity_id uuid;
update scale.organisations o set (activity_at, activity_id) = (
  select a.updated_at, a.id from public.activities a where a.org_id = o.org_id
  order by a.updated_at desc, a.id desc offset 50 limit 1);
-- A small organisation is read from its start.
update scale.organisations set activity_at = '2000-01-01',
  activity_id = '00000000-0000-0000-0000-000000000000' where activity_at is null;
create function scale.own_ids(owner uuid, org uuid) returns uuid[]
language sql stable security definer as $$
  select array_agg(id) from (select a.id from public.activities a
    where a.user_id = owner and a.org_id = org order by a.occurred_at limit 5) a $$;
-- 500 new items of one user, as the library sends them: sorted by id, the same columns in all.
create function scale.body(owner uuid, org uuid, contacts uuid[], items int) returns text
language sql volatile as $$
  select '[' || string_agg('{"id":"' || prefix || lpad(to_hex(i), 11, '0') || '","org_id":"' || org
    || '","user_id":"' || owner || '","type":"visit","occurred_at":"2026-06-30T12:00:00Z"'
    || ',"minutes":30,"contact_id":"' || contacts[1 + i % 20] || '","note":"Samtale og tur"}',
    ',' order by i) || ']'
  from (select lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
      || '70008' || lpad(to_hex((random() * 65535)::int), 4, '0') as prefix offset 0) p,
    generate_series(1, items) i $$;
-- Changes of rows of one user.
create function scale.changes(owner uuid, org uuid, items int) returns text
language sql volatile security definer as $$
  select coalesce(json_agg(json_build_object('id', a.id, 'org_id', a.org_id,
    'updated_at', a.updated_at,
    'operation', 'change', 'columns', json_build_object('minutes', 45))), '[]')::text
  from (select * from public.activities a where a.user_id = owner and a.org_id = org
    order by a.id limit items) a $$;
grant usage on schema scale to public;
grant select on all tables in schema scale to public;
"""

#: The role to compare with: the same privileges, without policies.
_UNPOLICED = """
do $$ begin
  create role unpoliced nologin bypassrls;
  grant authenticated to unpoliced;
  grant unpoliced to authenticator;
exception when duplicate_object then null; end $$
"""

_INDEXES = """
select format('drop index public.%I', c.relname),
  replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ')
from pg_index i join pg_class c on c.oid = i.indexrelid
where i.indrelid = 'public.activities'::regclass
  and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
"""

# Foreign keys first when they are dropped, and last when they are made again.
_CONSTRAINTS = """
select format('alter table public.activities drop constraint %I', conname),
  format('alter table public.activities add constraint %I %s', conname, pg_get_constraintdef(oid))
from pg_constraint
where conrelid = 'public.activities'::regclass and contype in ('p', 'u', 'f') and conparentid = 0
order by contype = 'f' desc, contype = 'p'
"""


class Server:
    """One running PostgreSQL with a database for each size."""

    def __init__(self, running: postgres.Postgres) -> None:
        self.running = running
        self.port = running.port

    def dsn(self, database: str, user: str = postgres.SUPERUSER) -> str:
        """The connection string of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> Connection:
        """A connection of the superuser, without a transaction."""
        return psycopg.connect(self.dsn(database), autocommit=True)

    def has(self, database: str) -> bool:
        """Whether a database is complete."""
        with self.connect() as connection:
            found = connection.execute(
                "select from pg_database where datname = %s and datistemplate", (database,)
            ).fetchone()
        return found is not None

    def copy(self, database: str, name: str) -> None:
        """Make a copy of a database."""
        new, old = sql.Identifier(name), sql.Identifier(database)
        with self.connect() as connection:
            connection.execute(sql.SQL("drop database if exists {}").format(new))
            connection.execute(sql.SQL("create database {} template {}").format(new, old))

    def make(self, database: str, size: Size, schema: str | None = None) -> None:
        """Create a database and fill it."""
        name = sql.Identifier(database)
        with self.connect() as connection:
            connection.execute(sql.SQL("drop database if exists {}").format(name))
            connection.execute(sql.SQL("create database {}").format(name))
        with self.connect(database) as connection:
            connection.execute("grant all on schema public to project_owner with grant option")
            connection.execute(sql.SQL("grant create on database {} to project_owner").format(name))
            # The roles are the server's; everything else belongs to the database.
            connection.execute(_without_roles(AUTH.read_text("utf-8")).encode())
            connection.execute("set role project_owner")
            connection.execute((schema or SCHEMA.read_text("utf-8")).encode())
            connection.execute("reset role")
            fill(connection, size)
        with self.connect() as connection:
            # The mark of a complete database.
            connection.execute(sql.SQL("alter database {} is_template true").format(name))


def _without_roles(text: str) -> str:
    """The parts of local_auth.sql that every database needs of its own."""
    lines = text.splitlines()
    once = ("create role", "alter role", "grant anon,", "grant create on database")
    return "\n".join(line for line in lines if not line.startswith(once))


def _execute(connection: Connection, text: str) -> None:
    connection.execute(text.encode())


def fill(connection: Connection, size: Size) -> None:
    """Insert all rows, then make the indexes and statistics."""
    numbers = dataclasses.asdict(size)
    _execute(connection, _UNPOLICED)
    _execute(connection, _HELPERS)
    connection.execute("select setseed(0.5)")
    connection.execute("set session_replication_role = replica")
    _execute(connection, _PARENTS.format(**numbers))
    indexes = connection.execute(_INDEXES).fetchall()
    constraints = connection.execute(_CONSTRAINTS).fetchall()
    for drop, _ in [*constraints, *indexes]:
        _execute(connection, drop)
    _execute(connection, _ACTIVITIES.format(**numbers))
    for _, make in [*reversed(constraints), *indexes]:
        _execute(connection, make)
    connection.execute("set session_replication_role = origin")
    connection.execute("analyze")
    _execute(connection, _PEOPLE)
    connection.execute("vacuum analyze")


@contextmanager
def serve(folder: Path | None = None, durable: bool = True) -> Iterator[Server]:
    """Start PostgreSQL. With a folder the data stay there, and a later start finds them."""
    settings = SETTINGS if durable else {"random_page_cost": "1.1", "autovacuum": "off"}
    with postgres.Postgres(str(folder) if folder else None, settings) as running:
        if running.fresh:
            with psycopg.connect(running.dsn, autocommit=True) as connection:
                connection.execute(AUTH.read_bytes())
            running.mark_loaded()
        yield Server(running)
