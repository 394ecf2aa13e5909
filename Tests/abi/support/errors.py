"""Calls that must fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from holdfast import HoldfastError


def error_of(call: Callable[..., object], *arguments: Any) -> HoldfastError:  # noqa: ANN401
    """The error of a call that must fail."""
    with pytest.raises(HoldfastError) as caught:
        call(*arguments)
    return caught.value
