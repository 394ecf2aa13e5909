"""Delta debugging: the result still fails, and every item in it is needed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulation.shrink import shrink


@pytest.mark.slow
@given(st.lists(st.integers(0, 30), max_size=60), st.sets(st.integers(0, 30), max_size=4))
def test_every_item_of_the_result_is_needed(items: list[int], needed: set[int]) -> None:
    def fails(some: list[int]) -> bool:
        return needed <= set(some)

    if not fails(items):
        return
    few = shrink(items, fails, max_tries=10_000)
    assert fails(few)
    assert len(few) == len(needed)


def test_order_is_kept() -> None:
    def fails(some: list[int]) -> bool:
        return 7 in some and 3 in some

    assert shrink([1, 7, 2, 3, 4], fails) == [7, 3]


def test_tries_are_bounded() -> None:
    tries: list[int] = []

    def fails(some: list[int]) -> bool:
        tries.append(len(some))
        return False

    shrink(list(range(1000)), fails, max_tries=10)
    assert len(tries) == 10
