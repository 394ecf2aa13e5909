"""The data service's copy of the catalog: tables, keys, functions and role settings.

It is read at start, on `NOTIFY pgrst` and on POST /_control/schema/reload. Between these it may be
stale, as in PostgREST.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import psycopg

SCHEMA = "public"


@dataclasses.dataclass(frozen=True)
class TableColumn:
    """Type as SQL text, and the default's expression if there is one."""

    name: str
    type: str
    default: str | None


@dataclasses.dataclass(frozen=True)
class Table:
    """A table or view of the exposed schema."""

    name: str
    columns: dict[str, TableColumn]
    primary_key: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class ForeignKey:
    """`table.columns` refer to `target.target_columns`."""

    name: str
    table: str
    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Relation:
    """How an embedded table joins its parent: pairs of (parent column, embedded column)."""

    target: str
    pairs: tuple[tuple[str, str], ...]
    to_one: bool


@dataclasses.dataclass(frozen=True)
class Argument:
    """A parameter of a function; `name` is empty for an unnamed one."""

    name: str
    type: str
    has_default: bool


@dataclasses.dataclass(frozen=True)
class Function:
    """A callable function. `shape` is `void`, `scalar` or `row`."""

    name: str
    arguments: tuple[Argument, ...]
    returns_set: bool
    shape: str
    volatile: bool

    @property
    def takes_body(self) -> bool:
        """Whether its only parameter is unnamed json, which receives the whole body."""
        args = self.arguments
        return len(args) == 1 and not args[0].name and args[0].type in {"json", "jsonb"}


@dataclasses.dataclass(frozen=True)
class SchemaCache:
    """A consistent snapshot of the catalog."""

    tables: dict[str, Table]
    foreign_keys: tuple[ForeignKey, ...]
    functions: dict[str, tuple[Function, ...]]
    role_settings: dict[str, dict[str, str]]
    timezones: frozenset[str]

    def relations(self, parent: str, target: str, hint: str | None) -> list[Relation]:
        """All relations from `parent` to `target`. Both names may also be of a key or a column."""
        found = []
        for key in self.foreign_keys:
            names = {key.name, *(key.columns if len(key.columns) == 1 else ())}
            if hint is not None and hint not in names and hint != key.target and hint != key.table:
                continue
            forward = tuple(zip(key.columns, key.target_columns, strict=True))
            if key.table == parent and (target == key.target or target in names):
                found.append(Relation(key.target, forward, to_one=True))
            elif key.target == parent and target == key.table:
                unique = set(self.tables[key.table].primary_key) == set(key.columns)
                found.append(Relation(key.table, tuple((b, a) for a, b in forward), to_one=unique))
        return found


_TABLES = """
select c.relname,
  json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
    'default', case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end)
    order by a.attnum),
  (select coalesce(array_agg(k.attname::text order by x.n), '{}')
   from pg_constraint p, unnest(p.conkey) with ordinality x(attnum, n)
   join pg_attribute k on k.attnum = x.attnum
   where p.conrelid = c.oid and p.contype = 'p' and k.attrelid = c.oid)
from pg_class c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
where c.relnamespace = %s::regnamespace and c.relkind in ('r', 'v', 'm', 'f', 'p')
group by c.oid, c.relname
"""

_FOREIGN_KEYS = """
select f.conname, c.relname, t.relname,
  (select array_agg(a.attname::text order by x.n) from unnest(f.conkey) with ordinality x(k, n)
   join pg_attribute a on a.attrelid = f.conrelid and a.attnum = x.k),
  (select array_agg(a.attname::text order by x.n) from unnest(f.confkey) with ordinality x(k, n)
   join pg_attribute a on a.attrelid = f.confrelid and a.attnum = x.k)
from pg_constraint f join pg_class c on c.oid = f.conrelid join pg_class t on t.oid = f.confrelid
where f.contype = 'f' and c.relnamespace = %s::regnamespace and t.relnamespace = c.relnamespace
order by f.conname
"""

_FUNCTIONS = """
select p.proname, p.proretset, p.provolatile = 'v',
  case when p.prorettype = 'void'::regtype then 'void'
       when t.typtype = 'c' or p.prorettype = 'record'::regtype then 'row' else 'scalar' end,
  coalesce((select json_agg(json_build_object('name', coalesce(p.proargnames[n], ''),
      'type', format_type(p.proargtypes[n - 1], null),
      'has_default', n > p.pronargs - p.pronargdefaults) order by n)
    from generate_series(1, p.pronargs) n), '[]')
from pg_proc p join pg_type t on t.oid = p.prorettype
where p.pronamespace = %s::regnamespace and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
"""

_ROLE_SETTINGS = """
select r.rolname, s.setconfig from pg_db_role_setting s join pg_roles r on r.oid = s.setrole
where s.setdatabase = 0
"""


async def load(connection: psycopg.AsyncConnection[Any]) -> SchemaCache:
    """Read the catalog."""

    async def rows(text: str) -> list[tuple[Any, ...]]:
        arguments = (SCHEMA,) if "%s" in text else None
        return await (await connection.execute(text, arguments)).fetchall()

    tables = {
        name: Table(name, {c["name"]: TableColumn(**c) for c in columns}, tuple(key))
        for name, columns, key in await rows(_TABLES)
    }
    keys = tuple(
        ForeignKey(name, table, tuple(columns), target, tuple(target_columns))
        for name, table, target, columns, target_columns in await rows(_FOREIGN_KEYS)
    )
    functions: dict[str, tuple[Function, ...]] = {}
    for name, returns_set, volatile, shape, arguments in await rows(_FUNCTIONS):
        made = Function(name, tuple(Argument(**a) for a in arguments), returns_set, shape, volatile)
        functions[name] = (*functions.get(name, ()), made)
    settings = {
        role: dict(item.split("=", 1) for item in config)
        for role, config in await rows(_ROLE_SETTINGS)
    }
    zones = frozenset(name for (name,) in await rows("select name from pg_timezone_names"))
    return SchemaCache(tables, keys, functions, settings, zones)
