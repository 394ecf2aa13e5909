"""The object that all parts of a running server share."""

from __future__ import annotations

import dataclasses

from .auth_mirror import MirroredAuth
from .config import Config
from .database import Database
from .faults import Faults
from .postgres import Postgres
from .request_log import RequestLog


@dataclasses.dataclass
class State:
    """State of the routes and the control endpoint."""

    config: Config
    postgres: Postgres
    database: Database
    people: MirroredAuth
    faults: Faults
    log: RequestLog
    has_auth: bool
