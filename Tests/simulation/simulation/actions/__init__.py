"""Actions: everything that a user, a host, a device and the world can do.

An action is a name and a number. Every choice that it makes follows from the number and from the
state of the world, so a list of actions can still be performed after some were removed.
Importing a module registers its actions; the order of the imports is part of what a seed means.
"""

from . import user, world_events  # isort: skip
from . import behaviours  # isort: skip
from . import more_behaviours  # isort: skip
from . import damage  # isort: skip
from . import lists  # isort: skip
from . import refusals  # isort: skip
from . import corrections  # isort: skip
from . import correcting  # isort: skip
from .registry import DAY, HOUR, MINUTE, SECOND, Action, draw, perform
from .steps import BAD_MINUTES

__all__ = [
    "BAD_MINUTES",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "Action",
    "behaviours",
    "correcting",
    "corrections",
    "damage",
    "draw",
    "lists",
    "more_behaviours",
    "perform",
    "refusals",
    "user",
    "world_events",
]
