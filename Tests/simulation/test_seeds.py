"""1,000 worlds: no item is lost, stored twice, sent for another user, or stuck."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conftest import Simulate

#: Seeds per process.
PART = 50
#: The second build takes the same decisions (test_replay.py), so it runs a share only.
PARTS = [("embedded", part) for part in range(17)] + [("runtime", part) for part in range(17, 20)]


@pytest.mark.parametrize(("flavour", "part"), PARTS)
def test_QUE_1_SES_1_nothing_is_lost_and_nobody_is_signed_out(
    simulate: Simulate, record_property: Callable[[str, object], None], flavour: str, part: int
) -> None:
    # Given a world of two devices, three people and an unreliable network, for each seed
    first, seeds = str(part * PART), str(PART)
    record_property("seeds", PART)
    # When the actions of the seed happen, and the world is healed at the end
    done = simulate.seeds("--first", first, "--seeds", seeds, "--flavour", flavour)
    # Then no invariant was broken, every queue is drained, and every handle is freed
    assert [one["seed"] for one in done] == list(range(part * PART, (part + 1) * PART))
    assert all(one["rule"] is None for one in done)
    # and the worlds were busy
    assert sum(int(str(one["calls"])) for one in done) > 100 * PART
