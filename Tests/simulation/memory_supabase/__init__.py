"""The example backend once more, in memory and with the clock in the caller's hand.

`MemoryServer` is a function from requests to replies, for the simulation; `MemorySupabase` puts it
behind HTTP, so that the tests of the local backend hold it to the same behaviour (Tests/backend).
"""

from .front import MemorySupabase
from .server import MemoryServer

__all__ = ["MemoryServer", "MemorySupabase"]
