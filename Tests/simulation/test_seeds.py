"""1,000 worlds: whatever happens, nothing is lost, twice, in the wrong hands, or stuck."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conftest import Simulate

#: Seeds that one process runs.
PART = 50
#: Of both builds; they hold the same decisions, so a share does for the second.
PARTS = [("embedded", part) for part in range(17)] + [("runtime", part) for part in range(17, 20)]


@pytest.mark.parametrize(("flavour", "part"), PARTS)
def test_QUE_1_SES_1_nothing_is_lost_and_nobody_is_signed_out(
    simulate: Simulate, record_property: Callable[[str, object], None], flavour: str, part: int
) -> None:
    # Given a world of two devices, three people and an unreliable network, for each seed
    first, seeds = str(part * PART), str(PART)
    record_property("seeds", PART)
    # When everything happens that a seed says, and the world is healthy again at the end
    done = simulate.seeds("--first", first, "--seeds", seeds, "--flavour", flavour)
    # Then no invariant was broken on the way, everything is drained, and no handle is left
    assert [one["seed"] for one in done] == list(range(part * PART, (part + 1) * PART))
    assert all(one["rule"] is None for one in done)
    # and the worlds were worlds in which something happens
    assert sum(int(str(one["calls"])) for one in done) > 100 * PART
