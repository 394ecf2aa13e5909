"""`python -m local_supabase`: start the local backend and print one JSON line when it is ready."""

from __future__ import annotations

import argparse
import asyncio
import os
import pathlib
import sys

from .config import Config
from .postgres import PostgresFailed
from .server import SCHEMA, serve


def main() -> None:
    """Read the command line and serve."""
    defaults = Config()
    parser = argparse.ArgumentParser(prog="local_supabase", description=__doc__)
    add = parser.add_argument
    add("--port", type=int, default=0, help="loopback port; 0 picks a free one")
    add("--schema", type=pathlib.Path, default=SCHEMA, help="SQL file to load once")
    add("--data-dir", help="keep the database here; without it a temporary one is made and removed")
    add("--jwt-secret", default=os.environ.get("LOCAL_SUPABASE_JWT_SECRET", defaults.jwt_secret))
    add("--jwt-lifetime", type=int, default=defaults.jwt_lifetime, help="seconds")
    add("--reuse-interval", type=float, default=defaults.reuse_interval, help="seconds")
    add("--flow-state-lifetime", type=float, default=defaults.flow_state_lifetime, help="seconds")
    add("--max-rows", type=int, default=defaults.max_rows, help="0 means no limit")
    add("--demo", action="store_true", help="store the demo's organisations, users and contacts")
    add(
        "--no-auth", action="store_true", help="the schema file brings roles and schema auth itself"
    )
    add("--no-apikey", action="store_true", help="accept requests without an apikey header")
    add("--exports", action="store_true", help="print shell commands for a person, and no JSON")
    add("--end-with-stdin", action="store_true", help="stop when standard input ends")
    given = parser.parse_args()
    config = Config(
        jwt_secret=given.jwt_secret,
        jwt_lifetime=given.jwt_lifetime,
        reuse_interval=given.reuse_interval,
        flow_state_lifetime=given.flow_state_lifetime,
        max_rows=given.max_rows or None,
        require_apikey=not given.no_apikey,
    )
    try:
        asyncio.run(
            serve(
                port=given.port,
                schema=given.schema,
                data_dir=given.data_dir,
                config=config,
                with_auth=not given.no_auth,
                demo=given.demo,
                end_with_stdin=given.end_with_stdin,
                exports=given.exports,
            )
        )
    except (PostgresFailed, OSError) as error:
        sys.exit(f"local_supabase: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
