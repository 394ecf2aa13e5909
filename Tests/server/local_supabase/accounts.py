"""The users of the auth service, its clock, and its source of ids and tokens."""

from __future__ import annotations

import datetime
import random
import uuid
from collections.abc import Callable
from typing import Any

User = dict[str, Any]


def utc_now() -> datetime.datetime:
    """The machine's time."""
    return datetime.datetime.now(datetime.UTC)


class Accounts:
    """All users, by id. The simulation brings a clock and a chance of its own."""

    def __init__(
        self,
        now: Callable[[], datetime.datetime] = utc_now,
        chance: random.Random | None = None,
    ) -> None:
        self.now = now
        self.chance = chance or random.SystemRandom()
        self.users: dict[str, User] = {}

    def new_id(self) -> str:
        """Make a random id, as gen_random_uuid() does."""
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
