"""What version 6 of the world adds: lists that are cut, and rows that nobody can use."""

from __future__ import annotations

import random

from .. import network
from ..process import Process
from ..world import World
from .registry import action


@action(4, since=6)
def cut_lists(world: World, process: Process, chance: random.Random) -> None:
    """The server, or something before it, changes every list of memberships and contacts."""
    world.lists = chance.choice((None, *network.LISTS))
    world.server.control.set(max_rows=chance.choice((1000, 1, 2)))
