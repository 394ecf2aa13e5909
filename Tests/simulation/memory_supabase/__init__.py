"""The example backend in memory, with a clock that the caller sets.

`MemoryServer` is a function from requests to replies, for the simulation. `MemorySupabase` serves
it over HTTP, so that the tests of the local backend check that both behave alike (Tests/backend).
"""

from .front import MemorySupabase
from .server import MemoryServer

__all__ = ["MemoryServer", "MemorySupabase"]
