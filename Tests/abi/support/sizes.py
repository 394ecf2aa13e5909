"""How many cases a test takes. HOLDFAST_SIZE=full (make test-all) takes all of them."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

Size = TypeVar("Size")

FULL = os.environ.get("HOLDFAST_SIZE") == "full"


def sized(reduced: Size, full: Size) -> Size:
    """`full` with HOLDFAST_SIZE=full, else `reduced`: a number, or a list of cases."""
    return full if FULL else reduced


def sampled(cases: Iterable[Any], every: int) -> list[Any]:
    """The cases, for `parametrize`; all but one in `every` are slow."""
    return [
        pytest.param(each, marks=pytest.mark.slow if number % every else ())
        for number, each in enumerate(cases)
    ]


def crossed(*cases: Iterable[Any], fast: Callable[..., bool]) -> list[Any]:
    """Every combination of these cases, for `parametrize`; all but the `fast` ones are slow.

    A fast one represents its promise in `make test`: choose them so that each case is in one.
    """
    return [
        pytest.param(*each, marks=() if fast(*each) else pytest.mark.slow)
        for each in itertools.product(*cases)
    ]
