"""httpx's functions, which wait longer than its five seconds."""

from __future__ import annotations

from functools import partial

import httpx
from patience import patience

get = partial(httpx.get, timeout=patience(120))
post = partial(httpx.post, timeout=patience(120))
