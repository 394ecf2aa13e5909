"""The object that all parts of a running server share."""

from __future__ import annotations

import dataclasses

from .auth import Auth
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
    auth: Auth
    faults: Faults
    log: RequestLog
    has_auth: bool
