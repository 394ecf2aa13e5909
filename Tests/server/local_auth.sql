-- The parts of a Supabase project that schema.sql and the test server's auth service need.
-- For the test server only: never load this into a Supabase project.

create role anon nologin;
create role authenticated nologin;
create role service_role nologin bypassrls;
create role authenticator noinherit login;
grant anon, authenticated, service_role to authenticator;

-- Supabase's defaults: https://supabase.com/docs/guides/database/postgres/timeouts
alter role anon set statement_timeout = '3s';
alter role authenticated set statement_timeout = '8s';

create schema auth;
grant usage on schema auth, public to anon, authenticated, service_role;

-- The role that loads the schema. In a Supabase project it is `postgres`, not a superuser there.
create role project_owner nologin;
grant create on database postgres to project_owner;
grant all on schema public to project_owner with grant option;
grant usage on schema auth to project_owner;
alter default privileges for role project_owner, postgres in schema public
  grant all on tables to anon, authenticated, service_role;
alter default privileges for role project_owner, postgres in schema public
  grant all on functions to anon, authenticated, service_role;
alter default privileges for role project_owner, postgres in schema public
  grant all on sequences to anon, authenticated, service_role;

create function auth.jwt() returns jsonb language sql stable as $$
  select nullif(current_setting('request.jwt.claims', true), '')::jsonb
$$;
create function auth.uid() returns uuid language sql stable as $$
  select nullif(nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub', '')::uuid
$$;
create function auth.role() returns text language sql stable as $$
  select nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'role'
$$;

-- The test server's auth service keeps everything else about users, and their sessions, in memory.
create table auth.users (
  id uuid primary key default gen_random_uuid(),
  email text unique
);

grant references on auth.users to project_owner;
