"""`python -m holdfast doctor CONFIG.json`: checks a configuration against its Supabase project."""

from __future__ import annotations

import argparse
import dataclasses
import getpass
import json
import os
import sys
from pathlib import Path

from .checkup import doctor


def main(arguments: list[str] | None = None) -> int:
    """Print the steps; 1 if one fails, 2 if the file, or a password, cannot be read."""
    parser = argparse.ArgumentParser(prog="holdfast", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("doctor", help="check a configuration against its project")
    command.add_argument("config", type=Path, help="a file with the configuration of holdfast_open")
    command.add_argument(
        "--email",
        help="check what this user may do, too; the password comes from HOLDFAST_PASSWORD, or is"
        " asked for. HOLDFAST_ACCESS_TOKEN is used instead, if it is set",
    )
    command.add_argument("--timeout", type=float, default=10.0, help="seconds for each request")
    command.add_argument("--json", action="store_true", help="print the steps as JSON")
    chosen = parser.parse_args(arguments)
    try:
        configuration = json.loads(chosen.config.read_text("utf-8"))
        if not isinstance(configuration, dict):
            raise ValueError("an object is expected")
    except (OSError, ValueError) as error:
        print(f"{chosen.config}: {error}", file=sys.stderr)
        return 2
    token = os.environ.get("HOLDFAST_ACCESS_TOKEN")
    password = None
    if chosen.email and not token:
        password = os.environ.get("HOLDFAST_PASSWORD")
        if not password and not sys.stdin.isatty():
            print("no terminal can ask for a password: set HOLDFAST_PASSWORD", file=sys.stderr)
            return 2
        password = password or getpass.getpass("Password: ")
    user = {"email": chosen.email, "password": password, "access_token": token}
    steps = doctor(configuration, **user, timeout_s=chosen.timeout)
    if chosen.json:
        print(json.dumps([dataclasses.asdict(step) for step in steps], indent=1))
    else:
        for step in steps:
            print(step)
    return int(any(step.outcome == "fail" for step in steps))


if __name__ == "__main__":
    sys.exit(main())
