-- The tables, policies and functions that Holdfast's default mapping uses.
--
-- This file loads unchanged into a Supabase project (SQL editor or `supabase db push`). For a plain
-- PostgreSQL, Tests/server/local_auth.sql first creates what a Supabase project already has. All
-- policies follow one rule: a user needs an *active* membership of an *active* organisation.
--
-- It can be applied again, also to tables with rows: functions, triggers, policies and privileges become
-- those of this file, and tables and indexes that exist stay as they are, but for columns that are added. A
-- policy is replaced by removing it first: apply the file in one transaction, as both ways above do, or no
-- row is visible in between.

-- Tables ---------------------------------------------------------------------------------------

create table if not exists public.organizations (
  id uuid primary key default gen_random_uuid(),
  name text not null check (char_length(name) between 1 and 200),
  status text not null default 'active' check (status in ('active', 'disabled')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

create table if not exists public.profiles (
  id uuid primary key references auth.users on delete cascade,
  full_name text check (char_length(full_name) <= 200),
  updated_at timestamptz not null default now()
);

create table if not exists public.memberships (
  user_id uuid not null references auth.users on delete cascade,
  org_id uuid not null references public.organizations on delete cascade,
  role text not null check (role in ('peer_mentor', 'coordinator', 'org_admin')),
  status text not null default 'active' check (status in ('active', 'ended')),
  updated_at timestamptz not null default now(),
  primary key (user_id, org_id)
);

create table if not exists public.contacts (
  id uuid primary key default gen_random_uuid(),
  org_id uuid not null references public.organizations on delete cascade,
  name text not null check (char_length(name) between 1 and 200),
  municipality text,
  relation text,
  created_by uuid default auth.uid(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  -- In this order, a reconcile reads one organisation by id without a sort, and references fit too.
  unique (org_id, id)
);

-- The network-only columns: the library never caches them. They have a table of their own, because a
-- policy decides about rows and not about columns. They are written here, and read as computed fields
-- of contacts (see below).
create table if not exists public.contact_details (
  id uuid primary key default gen_random_uuid(),
  contact_id uuid not null,
  org_id uuid not null,
  phone text,
  address text,
  national_id text,
  created_by uuid default auth.uid(),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (contact_id, org_id),
  constraint contact_details_contact_id_fkey
    foreign key (contact_id, org_id) references public.contacts (id, org_id)
    on update cascade on delete cascade
);

-- The two foreign keys include org_id, so that they cannot cross organisations.
create table if not exists public.activities (
  id uuid primary key default gen_random_uuid(),
  org_id uuid not null references public.organizations on delete cascade,
  user_id uuid not null default auth.uid() references auth.users on delete cascade,
  type text not null check (char_length(type) between 1 and 80),
  occurred_at timestamptz not null,
  minutes int not null check (minutes between 1 and 1440),
  contact_id uuid,
  follows uuid, -- the earlier activity that this one follows up
  note text check (char_length(note) <= 4000),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,
  unique (id, org_id),
  constraint activities_contact_id_fkey
    foreign key (contact_id, org_id) references public.contacts (id, org_id),
  constraint activities_follows_fkey
    foreign key (follows, org_id) references public.activities (id, org_id)
);
-- The id of the row's last change, if its client sends one: a client whose answer was lost finds it here.
-- Columns of later versions of this file are added to a table that exists.
alter table public.activities add column if not exists change_id uuid;

-- A pull reads one organisation, ordered by (updated_at, id).
create index if not exists contacts_delta on public.contacts (org_id, updated_at, id);
create index if not exists activities_delta on public.activities (org_id, updated_at, id);
-- The latest activities of one organisation, as an administrator reads them.
create index if not exists activities_latest on public.activities (org_id, occurred_at desc, id);
create index if not exists activities_own on public.activities (user_id, org_id, occurred_at);
-- A member's own activities, as the library keeps them.
create index if not exists activities_own_delta on public.activities (user_id, org_id, updated_at, id);
create index if not exists activities_contact on public.activities (contact_id)
  where contact_id is not null;
create index if not exists activities_follows on public.activities (follows) where follows is not null;
create index if not exists memberships_org on public.memberships (org_id);

-- updated_at -----------------------------------------------------------------------------------

create schema if not exists private;

-- Sets updated_at and ignores the client's value. It uses clock_timestamp() because now() is the start
-- of the transaction: a client that reads by updated_at would miss rows of long transactions more
-- often.
create or replace function private.touch_updated_at() returns trigger
language plpgsql set search_path = '' as $$
begin
  new.updated_at := clock_timestamp();
  return new;
end $$;

create or replace trigger touch before insert or update on public.organizations
  for each row execute function private.touch_updated_at();
create or replace trigger touch before insert or update on public.profiles
  for each row execute function private.touch_updated_at();
create or replace trigger touch before insert or update on public.memberships
  for each row execute function private.touch_updated_at();
create or replace trigger touch before insert or update on public.contacts
  for each row execute function private.touch_updated_at();
create or replace trigger touch before insert or update on public.contact_details
  for each row execute function private.touch_updated_at();
create or replace trigger touch before insert or update on public.activities
  for each row execute function private.touch_updated_at();

-- Policies --------------------------------------------------------------------------------------

-- These functions are security definer, because a policy on memberships that reads memberships would
-- recurse (42P17). The API does not expose their schema, and the search path is empty.

create or replace function private.any_organizations() returns setof uuid
language sql stable security definer set search_path = '' as $$
  select m.org_id from public.memberships m where m.user_id = (select auth.uid())
$$;

create or replace function private.active_organizations() returns setof uuid
language sql stable security definer set search_path = '' as $$
  select m.org_id
  from public.memberships m join public.organizations o on o.id = m.org_id
  where m.user_id = (select auth.uid()) and m.status = 'active' and o.status = 'active'
$$;

create or replace function private.overseen_organizations() returns setof uuid
language sql stable security definer set search_path = '' as $$
  select m.org_id
  from public.memberships m join public.organizations o on o.id = m.org_id
  where m.user_id = (select auth.uid()) and m.status = 'active' and o.status = 'active'
    and m.role in ('coordinator', 'org_admin')
$$;

-- Nobody but its coordinators and administrators learns how many members an organisation has.
create or replace function private.overseen_members(org uuid) returns bigint
language sql stable security definer set search_path = '' as $$
  select count(*) from public.memberships m
  where m.org_id = overseen_members.org and m.status = 'active'
    and m.org_id = any (array(select private.overseen_organizations()))
$$;

alter table public.organizations enable row level security;
alter table public.profiles enable row level security;
alter table public.memberships enable row level security;
alter table public.contacts enable row level security;
alter table public.contact_details enable row level security;
alter table public.activities enable row level security;

-- Disabled organisations and ended memberships stay visible, so that the app can show which one ended.
drop policy if exists "own organisations" on public.organizations;
create policy "own organisations" on public.organizations for select to authenticated
  using (id = any (array(select private.any_organizations())));

drop policy if exists "own memberships" on public.memberships;
create policy "own memberships" on public.memberships for select to authenticated
  using (user_id = (select auth.uid()));

drop policy if exists "own profile" on public.profiles;
create policy "own profile" on public.profiles for select to authenticated
  using (id = (select auth.uid()));
drop policy if exists "create own profile" on public.profiles;
create policy "create own profile" on public.profiles for insert to authenticated
  with check (id = (select auth.uid()));
drop policy if exists "change own profile" on public.profiles;
create policy "change own profile" on public.profiles for update to authenticated
  using (id = (select auth.uid())) with check (id = (select auth.uid()));

drop policy if exists "read contacts" on public.contacts;
create policy "read contacts" on public.contacts for select to authenticated
  using (org_id = any (array(select private.active_organizations())));
drop policy if exists "add contacts" on public.contacts;
create policy "add contacts" on public.contacts for insert to authenticated
  with check (org_id = any (array(select private.active_organizations())));
drop policy if exists "change contacts" on public.contacts;
create policy "change contacts" on public.contacts for update to authenticated
  using (org_id = any (array(select private.active_organizations())))
  with check (org_id = any (array(select private.active_organizations())));

-- resolution=ignore-duplicates requires that the inserted row passes the SELECT policy, too. So who
-- creates a row of contact_details or activities also sees it.
drop policy if exists "oversee contact details" on public.contact_details;
create policy "oversee contact details" on public.contact_details for select to authenticated
  using (org_id = any (array(select private.overseen_organizations())));
drop policy if exists "read own contact details" on public.contact_details;
create policy "read own contact details" on public.contact_details for select to authenticated
  using (created_by = (select auth.uid())
    and org_id = any (array(select private.active_organizations())));
drop policy if exists "add contact details" on public.contact_details;
create policy "add contact details" on public.contact_details for insert to authenticated
  with check (org_id = any (array(select private.active_organizations())));
drop policy if exists "oversee changes of contact details" on public.contact_details;
create policy "oversee changes of contact details" on public.contact_details
  for update to authenticated
  using (org_id = any (array(select private.overseen_organizations())))
  with check (org_id = any (array(select private.overseen_organizations())));
drop policy if exists "change own contact details" on public.contact_details;
create policy "change own contact details" on public.contact_details for update to authenticated
  using (created_by = (select auth.uid())
    and org_id = any (array(select private.active_organizations())))
  with check (created_by = (select auth.uid())
    and org_id = any (array(select private.active_organizations())));

-- A member's own activities with deleted_at stay visible. A change may only make a row that its user still
-- sees, so a policy with "deleted_at is null" would refuse every deletion.
drop policy if exists "read own activities" on public.activities;
create policy "read own activities" on public.activities for select to authenticated
  using (user_id = (select auth.uid())
    and org_id = any (array(select private.active_organizations())));
-- `in` instead of `= any (array(…))`: PostgreSQL takes the latter for one row in a hundred, and then
-- reads and sorts all activities of the organisation for its latest fifty. With `in` a read needs a
-- filter by org_id, user_id or id, as the library's requests have, or it reads the whole table.
drop policy if exists "oversee activities" on public.activities;
create policy "oversee activities" on public.activities for select to authenticated
  using (org_id in (select private.overseen_organizations()));
drop policy if exists "register own activities" on public.activities;
create policy "register own activities" on public.activities for insert to authenticated
  with check (user_id = (select auth.uid())
    and org_id = any (array(select private.active_organizations())));
drop policy if exists "change own activities" on public.activities;
create policy "change own activities" on public.activities for update to authenticated
  using (user_id = (select auth.uid())
    and org_id = any (array(select private.active_organizations())))
  with check (user_id = (select auth.uid())
    and org_id = any (array(select private.active_organizations())));

-- Privileges ------------------------------------------------------------------------------------

-- Supabase grants new tables to anon and authenticated by default. These tables are not public. Writing
-- is granted by column. No user changes id, org_id or an owner: a member of two organisations could
-- otherwise move rows between them, which the policies allow. No user sets created_by, created_at or
-- updated_at. So an upsert with resolution=merge-duplicates, which sets every column, is refused.
revoke all on public.organizations, public.profiles, public.memberships, public.contacts,
  public.contact_details, public.activities from anon, authenticated;

grant select on public.organizations, public.memberships, public.profiles, public.contacts,
  public.activities to authenticated;
grant insert (id, full_name), update (full_name) on public.profiles to authenticated;
grant insert (id, org_id, name, municipality, relation),
  update (name, municipality, relation, deleted_at) on public.contacts to authenticated;
grant insert (id, org_id, user_id, type, occurred_at, minutes, contact_id, follows, note),
  update (type, occurred_at, minutes, contact_id, follows, note, deleted_at, change_id)
  on public.activities to authenticated;
-- national_id is not granted for reading, because whoever creates a row sees it, also after a
-- coordinator has changed it. The computed field shows it.
grant select (id, contact_id, org_id, phone, address, created_by, created_at, updated_at),
  insert (id, contact_id, org_id, phone, address, national_id),
  update (phone, address, national_id) on public.contact_details to authenticated;

grant all on public.organizations, public.profiles, public.memberships, public.contacts,
  public.contact_details, public.activities to service_role;

-- Computed fields -------------------------------------------------------------------------------

-- PostgREST shows a function of a table's row as a column: contacts?select=phone. The functions are
-- security definer, because a peer mentor may not read contact_details but has to reach the contact. A
-- caller may pass a row that does not exist, so they use only its id, and check the caller's
-- membership of the organisation of the stored details. Without a name for the parameter PostgREST
-- does not offer them under /rpc. The service_role, which is no member, reads contact_details.

create or replace function public.phone(public.contacts) returns text
language sql stable security definer set search_path = '' as $$
  select d.phone from public.contact_details d
  where d.contact_id = $1.id and d.org_id = any (array(select private.active_organizations()))
$$;

create or replace function public.address(public.contacts) returns text
language sql stable security definer set search_path = '' as $$
  select d.address from public.contact_details d
  where d.contact_id = $1.id and d.org_id = any (array(select private.active_organizations()))
$$;

-- Null for peer mentors.
create or replace function public.national_id(public.contacts) returns text
language sql stable security definer set search_path = '' as $$
  select d.national_id from public.contact_details d
  where d.contact_id = $1.id and d.org_id = any (array(select private.overseen_organizations()))
$$;

-- Functions ------------------------------------------------------------------------------------

-- Counts the caller's activities in one organisation since a time (default: the start of this calendar
-- year in Norway). The result contains that time, so that a client adds only unsent activities after it.
create or replace function public.activity_summary(org uuid, since timestamptz default null)
returns json
language sql stable security invoker set search_path = '' as $$
  with period as (
    select coalesce(activity_summary.since,
      date_trunc('year', now() at time zone 'Europe/Oslo') at time zone 'Europe/Oslo') as since
  ), own as (
    select a.type, a.minutes
    from public.activities a
    where a.org_id = activity_summary.org
      and a.user_id = (select auth.uid())
      and a.deleted_at is null
      and a.occurred_at >= (select period.since from period)
  ), by_type as (
    select own.type, count(*) as activities, sum(own.minutes) as minutes from own group by own.type
  )
  select json_build_object(
    'org_id', activity_summary.org,
    'since', (select period.since from period),
    'activities', (select count(*) from own),
    'minutes', (select coalesce(sum(own.minutes), 0) from own),
    'by_type', (select coalesce(json_agg(by_type order by by_type.type), '[]') from by_type),
    'as_of', now())
$$;

-- The caller's activity_summary and, for coordinators and administrators, the figures of the whole
-- organisation: activities and minutes of all members since the same time, active members, contacts.
-- "organization" is null for everybody else. The policies decide what is counted.
create or replace function public.activity_overview(org uuid, since timestamptz default null)
returns json
language sql stable security invoker set search_path = '' as $$
  with own as (
    select public.activity_summary(activity_overview.org, activity_overview.since)::jsonb as figures
  ), registered as (
    select count(*) as activities, coalesce(sum(a.minutes), 0) as minutes
    from public.activities a
    where a.org_id = activity_overview.org
      and a.deleted_at is null
      and a.occurred_at >= (select (own.figures ->> 'since')::timestamptz from own)
  )
  select (own.figures || jsonb_build_object('organization', case
    when activity_overview.org = any (array(select private.overseen_organizations()))
    then (
      select jsonb_build_object(
        'activities', registered.activities,
        'minutes', registered.minutes,
        'members', private.overseen_members(activity_overview.org),
        'contacts', (
          select count(*) from public.contacts c
          where c.org_id = activity_overview.org and c.deleted_at is null))
      from registered)
    end))::json
  from own
$$;

-- The two functions below run one statement for all of their items: the policies cost as much for a
-- statement with one row as for one with many. Only if it fails, it is undone and the call made again for parts of
-- 25 items, and for the single items of a part that fails, too. An item that cannot be stored is a
-- result, but a transient failure (class 40, 53, 55 or 57) fails the whole call; the caller repeats it.

-- The number of items: a call has at most as many as the library sends.
create or replace function private.number_of_items(items jsonb) returns int
language plpgsql immutable set search_path = '' as $$
begin
  if jsonb_typeof(items) = 'array' then
    if jsonb_array_length(items) <= 500 then
      return jsonb_array_length(items);
    end if;
  end if;
  raise exception 'items must be a JSON array of at most 500 items' using errcode = '22023';
end $$;

-- The column that a refusal of an activity is about: the one that it names, the first one of the violated
-- constraint, or else the given one whose value does not have the column's type.
create or replace function private.refused_column(named text, broken_rule text, given jsonb) returns text
language plpgsql stable security invoker set search_path = '' as $$
declare
  field text;
begin
  if named <> '' then
    return named;
  end if;
  select a.attname into field
  from pg_catalog.pg_constraint c
  join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
  where c.conrelid = 'public.activities'::regclass and c.conname = broken_rule;
  if found then
    return field;
  end if;
  for field in select jsonb_object_keys(given) loop
    perform jsonb_populate_record(null::public.activities, jsonb_build_object(field, given -> field));
  end loop;
  return null;
exception when data_exception then
  return field;
end $$;

-- Stores the items and returns one row per item, in the given order:
--   stored     the item was inserted; updated_at is the row's
--   duplicate  the row exists and belongs to the caller
--   conflict   the row exists but belongs to another user or is not visible to the caller
--   rejected   with SQLSTATE, message and, if known, column
-- An earlier one without updated_at is dropped first: a function that exists keeps the columns of its result.
do $$ begin
  if pg_get_function_result(to_regprocedure('public.submit_activities(jsonb)')) not like '%updated_at%' then
    drop function public.submit_activities(jsonb);
  end if;
end $$;
create or replace function public.submit_activities(items jsonb)
returns table (
  id uuid, status text, updated_at timestamptz, "sqlstate" text, message text, "column" text)
language plpgsql volatile security invoker set search_path = '' as $$
#variable_conflict use_column
declare
  known constant text[] := array['id', 'org_id', 'user_id', 'type', 'occurred_at', 'minutes',
    'contact_id', 'follows', 'note'];
  size constant int := private.number_of_items(items);
  part constant int := case when size > 25 then 25 else 1 end;
  stored_ids uuid[];
  stored_times timestamptz[];
  own_ids uuid[];      -- of the rows that existed
  broken_rule text;    -- the name of the violated constraint
begin
  if size = 0 then
    return;
  end if;
  begin
    submit_activities.id := case when size = 1 then (items -> 0 ->> 'id')::uuid end;
    if jsonb_path_exists(items, 'strict $[*] ? (@.type() != "object")') then
      raise exception 'item is not a JSON object' using errcode = '22023';
    end if;
    select k into submit_activities."column"
    from jsonb_array_elements(items) e, jsonb_object_keys(e.value - known) k order by k limit 1;
    if found then
      raise exception 'column "%" of relation "activities" does not exist', submit_activities."column"
        using errcode = '42703', column = submit_activities."column";
    end if;
    with stored as (
      insert into public.activities
        (id, org_id, user_id, type, occurred_at, minutes, contact_id, follows, note)
      select i.id, i.org_id, coalesce(i.user_id, auth.uid()), i.type, i.occurred_at, i.minutes,
        i.contact_id, i.follows, i.note
      from jsonb_populate_recordset(null::public.activities, items) with ordinality i
      -- Two calls with the same items wait for each other, and do not deadlock.
      order by i.id, i.ordinality
      -- No conflict target: two concurrent callers may collide on (id, org_id) instead of on id.
      on conflict do nothing
      returning id, updated_at
    )
    select array_agg(s.id), array_agg(s.updated_at) into stored_ids, stored_times from stored s;
  exception when others then
    get stacked diagnostics
      submit_activities."sqlstate" = returned_sqlstate,
      submit_activities.message = message_text,
      submit_activities."column" = column_name,
      broken_rule = constraint_name;
    if left(submit_activities."sqlstate", 2) in ('40', '53', '55', '57') then
      raise;
    end if;
    if size = 1 then
      submit_activities.status := 'rejected';
      submit_activities."column" :=
        private.refused_column(submit_activities."column", broken_rule, items -> 0);
      return next;
      return;
    end if;
    for place in 0..size - 1 by part loop
      return query select * from public.submit_activities(jsonb_path_query_array(
        items, '$[$first to $last]', jsonb_build_object('first', place, 'last', place + part - 1)));
    end loop;
    return;
  end;
  if coalesce(cardinality(stored_ids), 0) < size then
    select array_agg(a.id) into own_ids
    from public.activities a
    where a.id in (select (e.value ->> 'id')::uuid from jsonb_array_elements(items) e)
      and a.user_id = auth.uid();
  end if;
  return query
    with given as (
      select e.id, e.place, row_number() over (partition by e.id order by e.place) = 1 as is_first
      from rows from (jsonb_to_recordset(items) as (id uuid)) with ordinality e(id, place)
    )
    select g.id,
      case when s.id is not null and g.is_first then 'stored'
        when g.id = any (own_ids) then 'duplicate'
        else 'conflict' end,
      case when g.is_first then s.updated_at end,
      null::text, null::text, null::text
    from given g left join unnest(stored_ids, stored_times) s(id, updated_at) on s.id = g.id
    order by g.place;
end $$;

-- Changes or deletes rows, and returns one row per item, in the order of the ids. An item has "id", "updated_at"
-- as it was read, "operation" and "columns", the new values; it may have "org_id", and a "change_id" to be kept.
-- The operation "delete" sets deleted_at; "change" may set it to null again.
--   stored       changed; updated_at is the row's new time
--   changed      changed by somebody since it was read: "row" and updated_at are the present ones. A call that
--                is repeated after its answer was lost finds its own values there.
--   gone         there is no such row, or the caller does not see it
--   not_allowed  the caller sees the row, and may not change it
--   rejected     with SQLSTATE, message and, if known, column
create or replace function public.change_activities(items jsonb)
returns table (
  id uuid, status text, updated_at timestamptz, "row" jsonb, "sqlstate" text, message text,
  "column" text)
language plpgsql volatile security invoker set search_path = '' as $$
#variable_conflict use_column
declare
  known constant text[] := array['type', 'occurred_at', 'minutes', 'contact_id', 'follows', 'note',
    'deleted_at'];
  size constant int := private.number_of_items(items);
  part constant int := case when size > 25 then 25 else 1 end;
  ids uuid[];
  locked uuid[];       -- the rows that the caller may change
  visible uuid[];      -- others that the caller sees
  stored_ids uuid[];
  stored_times timestamptz[];
  broken_rule text;    -- the name of the violated constraint
begin
  if size = 0 then
    return;
  end if;
  items := (
    select jsonb_agg(e.value order by lower(e.value ->> 'id'), e.place)
    from jsonb_array_elements(items) with ordinality e(value, place));
  begin
    change_activities.id := case when size = 1 then (items -> 0 ->> 'id')::uuid end;
    select f.field into change_activities."column"
    from jsonb_array_elements(items) e, lateral (select case
      when e.value ->> 'id' is null then 'id'
      when e.value ->> 'updated_at' is null then 'updated_at'
      when (e.value ->> 'operation' in ('change', 'delete')) is not true then 'operation'
      when jsonb_typeof(e.value -> 'columns') is distinct from 'object'
        or (e.value -> 'columns' = '{}' and e.value ->> 'operation' = 'change') then 'columns'
      end) f(field)
    where f.field is not null limit 1;
    if found then
      raise exception '% is missing, or not one that is expected', change_activities."column"
        using errcode = '22023', column = change_activities."column";
    end if;
    select k into change_activities."column"
    from jsonb_array_elements(items) e, jsonb_object_keys((e.value -> 'columns') - known) k
    order by k limit 1;
    if found then
      raise exception 'column "%" cannot be changed', change_activities."column"
        using errcode = '42703', column = change_activities."column";
    end if;
    ids := array(select distinct (e.value ->> 'id')::uuid from jsonb_array_elements(items) e);
    if cardinality(ids) < size then
      -- Tried as single items, they follow each other.
      raise exception 'two items have the same id' using errcode = '22023';
    end if;
    -- A lock waits for a change that is under way, and applies the policies for UPDATE. Two calls that lock the
    -- same rows in opposite order would deadlock.
    locked := array(
      select a.id from public.activities a where a.id = any (ids) order by a.id for no key update);
    if cardinality(locked) < size then
      -- The second try is for rows that became visible since the first one.
      visible := array(
        select a.id from public.activities a where a.id = any (ids) and a.id <> all (locked));
      locked := locked || array(
        select a.id from public.activities a where a.id = any (visible) order by a.id for no key update);
    end if;
    with stored as (
      update public.activities a set
        type = case when i.columns ? 'type' then i.type else a.type end,
        occurred_at = case when i.columns ? 'occurred_at' then i.occurred_at else a.occurred_at end,
        minutes = case when i.columns ? 'minutes' then i.minutes else a.minutes end,
        contact_id = case when i.columns ? 'contact_id' then i.contact_id else a.contact_id end,
        follows = case when i.columns ? 'follows' then i.follows else a.follows end,
        note = case when i.columns ? 'note' then i.note else a.note end,
        deleted_at = case when i.columns ? 'deleted_at' then i.deleted_at
          when i.operation = 'delete' then clock_timestamp() else a.deleted_at end,
        change_id = coalesce(i.change_id, a.change_id)
      from rows from (
        jsonb_to_recordset(items) as (id uuid, org_id uuid, updated_at timestamptz, operation text,
          change_id uuid, columns jsonb),
        jsonb_to_recordset(jsonb_path_query_array(items, '$[*].columns')) as (type text,
          occurred_at timestamptz, minutes int, contact_id uuid, follows uuid, note text,
          deleted_at timestamptz)
      ) i
      where a.id = any (ids) and a.id = i.id and a.updated_at = i.updated_at
        and a.org_id = coalesce(i.org_id, a.org_id)
      returning a.id, a.updated_at
    )
    select array_agg(s.id), array_agg(s.updated_at) into stored_ids, stored_times from stored s;
  exception when others then
    get stacked diagnostics
      change_activities."sqlstate" = returned_sqlstate,
      change_activities.message = message_text,
      change_activities."column" = column_name,
      broken_rule = constraint_name;
    if left(change_activities."sqlstate", 2) in ('40', '53', '55', '57') then
      raise;
    end if;
    if size = 1 then
      change_activities.status :=
        case change_activities."sqlstate" when '42501' then 'not_allowed' else 'rejected' end;
      change_activities."column" := private.refused_column(
        change_activities."column", broken_rule, (items -> 0) || coalesce(items -> 0 -> 'columns', '{}'));
      return next;
      return;
    end if;
    for place in 0..size - 1 by part loop
      return query select * from public.change_activities(jsonb_path_query_array(
        items, '$[$first to $last]', jsonb_build_object('first', place, 'last', place + part - 1)));
    end loop;
    return;
  end;
  return query
    select i.id, r.status,
      case r.status when 'stored' then s.updated_at when 'changed' then a.updated_at end,
      case r.status when 'changed' then jsonb_build_object('type', a.type, 'occurred_at', a.occurred_at,
        'minutes', a.minutes, 'contact_id', a.contact_id, 'follows', a.follows, 'note', a.note,
        'deleted_at', a.deleted_at, 'change_id', a.change_id) end,
      null::text, null::text, null::text
    from jsonb_array_elements(items) with ordinality e(value, place)
    cross join lateral jsonb_to_record(e.value) i(id uuid, org_id uuid)
    left join unnest(stored_ids, stored_times) s(id, updated_at) on s.id = i.id
    -- Those that were not changed are read anew: one may be deleted since it was locked.
    left join (
      select * from public.activities b
      where b.id = any (array(select unnest(ids) except select unnest(stored_ids)))
    ) a on a.id = i.id and a.org_id = coalesce(i.org_id, a.org_id)
    cross join lateral (select case
      when s.id is not null then 'stored'
      when a.id is null then 'gone'
      when i.id = any (visible) and i.id <> all (locked) then 'not_allowed'
      else 'changed' end) r(status)
    order by e.place;
end $$;

revoke all on all functions in schema private from public;
grant usage on schema private to authenticated, service_role;
grant execute on all functions in schema private to authenticated, service_role;
revoke all on function public.activity_summary, public.activity_overview, public.submit_activities,
  public.change_activities,
  public.phone, public.address, public.national_id from public, anon;
grant execute on function public.activity_summary, public.activity_overview, public.submit_activities,
  public.change_activities,
  public.phone, public.address, public.national_id to authenticated, service_role;
