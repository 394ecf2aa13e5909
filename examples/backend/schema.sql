-- The tables, policies and functions that Holdfast's default mapping uses.
--
-- This file loads unchanged into a Supabase project (SQL editor or `supabase db push`). For a plain
-- PostgreSQL, Tests/server/local_auth.sql first creates what a Supabase project already has. All
-- policies follow one rule: a user needs an *active* membership of an *active* organisation.
--
-- It can be applied again, also to tables with rows: functions, triggers, policies and privileges become
-- those of this file, and tables and indexes that exist stay as they are. A policy is replaced by removing
-- it first: apply the file in one transaction, as both ways above do, or no row is visible in between.

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

-- The withheld columns: the library never caches them. They have a table of their own, because a
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

-- A pull reads one organisation, ordered by (updated_at, id).
create index if not exists contacts_delta on public.contacts (org_id, updated_at, id);
create index if not exists activities_delta on public.activities (org_id, updated_at, id);
-- The latest activities of one organisation, as an administrator reads them.
create index if not exists activities_latest on public.activities (org_id, occurred_at desc, id);
create index if not exists activities_own on public.activities (user_id, org_id, occurred_at);
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

revoke all on all functions in schema private from public;
grant usage on schema private to authenticated, service_role;
grant execute on all functions in schema private to authenticated, service_role;

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
  update (type, occurred_at, minutes, contact_id, follows, note, deleted_at)
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

-- Stores each item in its own sub-transaction and returns one row per item, in the given order:
--   stored     the item was inserted
--   duplicate  the row exists and belongs to the caller
--   conflict   the row exists but belongs to another user or is not visible to the caller
--   rejected   with SQLSTATE, message and, if known, column
-- A transient failure (class 40, 53, 55 or 57) fails the whole call; the caller repeats it. A call has
-- at most 500 items, as many as the library sends: each holds a sub-transaction and its locks.
create or replace function public.submit_activities(items jsonb)
returns table (id uuid, status text, "sqlstate" text, message text, "column" text)
language plpgsql volatile security invoker set search_path = '' as $$
#variable_conflict use_column
declare
  known constant text[] := array['id', 'org_id', 'user_id', 'type', 'occurred_at', 'minutes',
    'contact_id', 'follows', 'note'];
  item jsonb;
  stranger text;
  field text;          -- the column being converted, for the result
  broken_rule text;    -- the name of the violated constraint
  row_in public.activities;
  stored_count int;
  owner uuid;
begin
  if items is null or jsonb_typeof(items) <> 'array' then
    raise exception 'items must be a JSON array' using errcode = '22023';
  end if;
  if jsonb_array_length(items) > 500 then
    raise exception 'items has more than 500 items' using errcode = '22023';
  end if;
  for item in select e.value from jsonb_array_elements(items) with ordinality as e(value, place)
    order by e.place
  loop
    submit_activities.id := null;
    submit_activities.status := 'rejected';
    submit_activities."sqlstate" := null;
    submit_activities.message := null;
    submit_activities."column" := null;
    field := null;
    begin
      if jsonb_typeof(item) <> 'object' then
        raise exception 'item is not a JSON object' using errcode = '22023';
      end if;
      field := 'id';
      submit_activities.id := (item ->> 'id')::uuid;
      if submit_activities.id is null then
        raise exception 'id is missing' using errcode = '23502';
      end if;
      select k into stranger from jsonb_object_keys(item) k where k <> all (known) order by k limit 1;
      if found then
        field := stranger;
        raise exception 'column "%" of relation "activities" does not exist', stranger
          using errcode = '42703';
      end if;
      row_in := null;
      field := 'org_id';      row_in.org_id := (item ->> 'org_id')::uuid;
      field := 'user_id';     row_in.user_id := coalesce((item ->> 'user_id')::uuid, auth.uid());
      field := 'type';        row_in.type := item ->> 'type';
      field := 'occurred_at'; row_in.occurred_at := (item ->> 'occurred_at')::timestamptz;
      field := 'minutes';     row_in.minutes := (item ->> 'minutes')::int;
      field := 'contact_id';  row_in.contact_id := (item ->> 'contact_id')::uuid;
      field := 'follows';     row_in.follows := (item ->> 'follows')::uuid;
      field := 'note';        row_in.note := item ->> 'note';
      field := null;
      insert into public.activities
        (id, org_id, user_id, type, occurred_at, minutes, contact_id, follows, note)
      values (submit_activities.id, row_in.org_id, row_in.user_id, row_in.type, row_in.occurred_at,
        row_in.minutes, row_in.contact_id, row_in.follows, row_in.note)
      -- No conflict target: two concurrent callers may collide on (id, org_id) instead of on id.
      on conflict do nothing;
      get diagnostics stored_count = row_count;
      if stored_count = 1 then
        submit_activities.status := 'stored';
      else
        select a.user_id into owner from public.activities a where a.id = submit_activities.id;
        submit_activities.status := case when owner = auth.uid() then 'duplicate' else 'conflict' end;
      end if;
    exception when others then
      get stacked diagnostics
        submit_activities."sqlstate" = returned_sqlstate,
        submit_activities.message = message_text,
        submit_activities."column" = column_name,
        broken_rule = constraint_name;
      if left(submit_activities."sqlstate", 2) in ('40', '53', '55', '57') then
        raise;
      end if;
      submit_activities.status := 'rejected';
      submit_activities."column" := coalesce(field, nullif(submit_activities."column", ''), (
        select a.attname::text
        from pg_catalog.pg_constraint c
        join pg_catalog.pg_attribute a on a.attrelid = c.conrelid and a.attnum = c.conkey[1]
        where c.conrelid = 'public.activities'::regclass and c.conname = broken_rule));
    end;
    return next;
  end loop;
end $$;

revoke all on function public.activity_summary, public.activity_overview, public.submit_activities,
  public.phone, public.address, public.national_id from public, anon;
grant execute on function public.activity_summary, public.activity_overview,
  public.submit_activities,
  public.phone, public.address, public.national_id to authenticated, service_role;
