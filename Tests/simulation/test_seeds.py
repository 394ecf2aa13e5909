"""Worlds of new and of old seeds: no item is lost, stored twice, sent for another, or stuck."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from conftest import Simulate, lines

#: How many new seeds run: 0 and those that follow.
SEEDS = int(os.environ.get("HOLDFAST_SEEDS", "50"))
#: Seeds per process: many, because its start takes as long as three of them; and two processes at
#: least, one for each core.
PART = max(1, min(50, -(-SEEDS // 2)))
#: Seeds that failed once, by the version of the world, with the fault that each found. Two are
#: enough for a fault of the library, and one for a fault of the world: those that run fastest.
FOUND = {
    (1, 12141): "a capped read-back made stored items conflicts",
    (1, 16274): "a capped read-back made stored items conflicts",
    (1, 5841): "a late global logout ended the same user's newer session",
    (1, 6976): "the check of the user before kept a wait open",
    (1, 16203): "the check of the user before kept a wait open",
    (1, 11509): "the world took a true missing_parent for a false one",
    (1, 6183): "items put off under a wrong clock waited for as long as it was wrong",
    (1, 10300): "items put off under a wrong clock waited for as long as it was wrong",
    (2, 467): "the world delivered a killed process's logout after the next sign-in",
    (3, 282): "the world took a contact that was renamed at the server for the item's own",
    (3, 316): "the world took an acknowledgement for one of another user's events",
    (3, 1158): "a stored item was a conflict because its membership ended before the question",
    (3, 1727): "memberships listed under a clock that was behind grew old by its correction",
    (3, 5338): "a session handed over under a clock that was moved back ended by its correction",
    (3, 6137): "a session handed over under a clock that was moved back ended by its correction",
    (3, 5367): "the world took an item whose fate the memberships decide for one held up by a read",
    (3, 5185): "the world took a true conflict with an older copy of the item for a false one",
    (3, 5331): "the world gave an item the id of another one of the same user",
    (3, 1060): "the world expected a run to end that had stored nothing",
    (3, 1610): "the world took an item that depends on a refused one for stuck",
    (2, 909): "the answer for the session before kept a wait open",
    (4, 50366): "the world did not know that items come back with the device key",
    (4, 302155): "the world forgot an edit that came back from the other device",
    (4, 60024): "the world did not know that events of the file wait for the device key",
    (4, 303286): "a portal's JSON was shown as the user's figures",
    (4, 303612): "a portal's JSON was shown as the user's figures",
    (4, 310938): "a date in Retry-After was read by a clock that was behind",
    (4, 309391): "the world expected a key of a file that was set aside at the first start",
    (4, 311188): "a date in Retry-After was read by a clock that was behind",
    (4, 313461): "the world did not wait for the memberships while a back-off lasted",
    (7, 581): "an item that was cancelled in flight was believed gone at the first look",
    (7, 7_006_293): "a pause under a clock that was ahead lasted for as long as it was wrong",
    (7, 7_008_138): "an item that failed on the way was blamed for an outage of the schema",
    (7, 7_006_509): "a second move to the background began the time away anew",
    (7, 8_019_867): "an edit was lost: a copy was sent by another device, and an answer was lost",
    (7, 8_020_402): "a deletion was blamed for an outage of the schema",
    (7, 8_006_977): "an edit of a deletion left the change that an earlier request had made",
    (7, 8_001_825): "an edited item was lost: a deleted row had its id, and an answer was lost",
    (7, 8_010_157): "the world took an app for away that another process had on the screen",
    (7, 8_015_105): "the world did not count what the service failed for of an item alone",
    (7, 8_306_432): "an edit to null of a column that no list showed was lost",
    (7, 8_300_267): "the world did not know that an item which is parked is no longer cancelled",
    (7, 8_308_587): "the world forgot that the parent of a refused item had been cancelled",
    (7, 8_104_616): "a pause that an item set for itself under a wrong clock lasted for hours",
    (7, 8_104_112): "failures of the service were counted as refusals on the way",
    (7, 8_113_488): "a whole number beyond 64 bits was taken for another one than it is as a real",
    (7, 8_112_616): "the world did not know that two outages of the schema look like a rule",
    (7, 8_003_687): "the world took the wait after a return for time in the background",
    (7, 8_000_309): "the world took a correction that a policy refused for one without a reason",
    (5, 170): "a second file that was set aside hid the first one",
    (5, 196): "a second file that was set aside hid the first one",
    (4, 300873): "of several sign-ins that had run out a poll ended only one",
    (4, 302454): "of several sign-ins that had run out a poll ended only one",
    (5, 1_005_815): "the world did not know that a retry of an item takes its cancel back",
    (5, 1_015_597): "the world looked for a cancelled item in a file that was set aside",
    (5, 1_002_729): "the repair of a log took a frame for one of another page",
    (5, 1_014_244): "the repair of a log took a frame for one of another page",
    (5, 1_014_019): "an edit under another configuration forgot the item's parent",
    (5, 1_005_135): "the numbers of events began anew in a file that replaced another one",
    (5, 1_010_954): "the numbers of events began anew in a file that replaced another one",
    (5, 1_006_416): "an item that was parked and edited was counted in the figures and as queued",
    (5, 1_015_496): "an item that the server did not say it has was counted twice",
    (5, 3_004_434): "a return to the app began a wait anew whose deadline it had just told",
    (5, 3_010_383): "a return to the app began a wait anew whose deadline it had just told",
    (5, 3_004_201): "the world took a contact's row for that of a visit with the same id",
    (5, 3_004_691): "an index made anew dropped the entry of an item whose page was lost",
    (5, 3_008_821): "an index made anew dropped the entry of an item whose page was lost",
    (5, 5_002_820): "the world did not count a portal's page among the refusals of an item",
    (5, 5_023_600): "the world took an item that was just being tried for one no longer refused",
    (5, 5_005_626): "the first outage after refusals of an item was counted as one more",
    (5, 6_006_499): "a check that began anew with a new session had a deadline nobody was told",
    (5, 6_023_502): "a key store that refused prolonged a wait, and the host was not told",
    (5, 6_060_957): "a salvage by another version of the app took an item's parent away",
    (5, 6_056_020): "the world expected the leases of a file that was set aside",
    (5, 6_038_845): "a batch split after a lie was counted as never sent, then as a conflict",
    (5, 6_248_009): "a sign-in from the lock failed, and no decision followed its wait",
    (6, 631): "the world did not know that events of the file wait for a key that counts as lost",
    (6, 933): "the world did not know that events of the file wait for a key that counts as lost",
    (5, 6_437_243): "the world could not read a body whose type a flipped bit had changed",
    (7, 500_242): "a pull of the user before was gone on with under another user's token",
    (7, 2_200_023): "a wait that route_check had told did not end",
    (7, 2_300_097): "a screen that was decided from a file which was replaced was given",
    (7, 2_100_537): "an edit by a version that lists fewer columns dropped the others",
    (7, 550_178): "the world did not know that a deletion drops the changes before it",
    (7, 631): "the world wanted a correction that was given up at logout",
    (7, 2200357): "a conflict named a column that the app had not kept before",
    (7, 2420022): "a wait that a call had told before anybody came never ended",
    (7, 3000022): "an edit of an item that was parked as a conflict was taken for stored",
    (7, 5_200_154): "a key that came back in the background let somebody in who had left",
    (7, 5_200_255): "the world did not know that who comes back in time is no longer away",
    (7, 5_400_653): "the world wanted a correction that is in a file that was set aside",
    (7, 8_402_947): "a sign-in that failed in the background ended the time there",
    (7, 8_409_267): "an edit of a parked deletion undid a change that its user saw",
    (7, 8_507_441): "an edit of a parked deletion kept a value that its user had not seen",
    (7, 8_409_326): "the edit of a copy was lost when another one followed",
    (7, 8_903_023): "what others had set counted as seen by who edited a parked deletion",
    (7, 8_905_725): "the world did not count an answer of 413 to one item as a refusal on the way",
    (7, 9_011_599): "the world did not know that who waits on the screen is back",
    (
        7,
        8_900_401,
    ): "a sign-in replaced a key before it found that the key store had lost another one",
}
#: Old seeds per process.
OLD_PART = 15
#: The result of a seed before which the process ended.
NOT_RUN = "the process"


def parts() -> list[tuple[str, int, int]]:
    """The new seeds as (flavour, first, count).

    The second flavour takes the same decisions (test_replay.py). So it runs three seeds of twenty,
    and only where every test runs in both.
    """
    shared = SEEDS * 3 // 20 if os.environ.get("HOLDFAST_FLAVOURS") == "all" else 0
    spans = {"embedded": (0, SEEDS - shared), "runtime": (SEEDS - shared, SEEDS)}
    return [
        (flavour, first, min(PART, end - first))
        for flavour, (start, end) in spans.items()
        for first in range(start, end, PART)
    ]


def old_parts() -> list[tuple[int, list[int]]]:
    """The old seeds as (version of the world, seeds); a process has one version."""
    of_version: dict[int, list[int]] = {}
    for version, seed in FOUND:
        of_version.setdefault(version, []).append(seed)
    return [
        (version, seeds[start : start + OLD_PART])
        for version, seeds in sorted(of_version.items())
        for start in range(0, len(seeds), OLD_PART)
    ]


@pytest.mark.parametrize(("flavour", "first", "count"), parts())
def test_QUE_1_SES_1_nothing_is_lost_and_nobody_is_signed_out(
    simulate: Simulate,
    record_property: Callable[[str, object], None],
    flavour: str,
    first: int,
    count: int,
) -> None:
    # Given a world of two devices, three people and an unreliable network, for each seed
    record_property("seeds", count)
    # When the actions of the seed happen, and the world is healed at the end
    done = simulate.seeds("--first", str(first), "--seeds", str(count), "--flavour", flavour)
    # Then no invariant was broken, every queue is drained, and every handle is freed
    assert [one["seed"] for one in done] == list(range(first, first + count))
    assert all(one["rule"] is None for one in done)
    # and the worlds were busy
    assert sum(int(str(one["calls"])) for one in done) > 100 * count


@pytest.mark.parametrize(("version", "seeds"), old_parts())
def test_the_seeds_that_failed_once_pass(
    simulate: Simulate, version: int, seeds: list[int]
) -> None:
    # When the actions of each seed happen, and the world is healed at the end
    numbers = ",".join(map(str, seeds))
    done = simulate("--only", numbers, "--world", str(version), "--go-on", "--json")
    # Then no invariant is broken any more
    results = {int(str(one["seed"])): one["rule"] for one in lines(done)}
    again = [
        f"seed {seed} of world {version} breaks {results.get(seed, NOT_RUN)!r} again; it found: "
        + FOUND[version, seed]
        for seed in seeds
        if results.get(seed, NOT_RUN) is not None
    ]
    assert again == [], "\n".join([*again, done.stderr[-20_000:]])
    assert done.returncode == 0, done.stderr[-20_000:]
