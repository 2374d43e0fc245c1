"""Why some changes are refused, in words that fix it."""

import pytest
from earshot_pulumi.refusals import goes_back, holds_replicas, other_voters, release


def test_other_voters_are_told_with_what_keeps_the_old_ones() -> None:
    assert other_voters([3, 1, 2], [1]) == (
        "the quorum has the voters 1, 2, 3 and would get 1: voters are written into every node's "
        "data when it is formatted, and a static quorum cannot change them. Set "
        "`controllers.count: 3` to keep them, or remove the data with "
        "`data: delete` and `pulumi destroy`"
    )
    for held, wanted, mode in (([1], [10_001], "combined"), ([10_001], [10_000], "separate")):
        assert (
            f"Set `controllers.mode: {mode}` and `controllers.count: 1` to keep them"
        ) in other_voters(held, wanted)


@pytest.mark.parametrize(
    ("count", "named"), [(1, "t-0"), (5, "t-0, t-1, t-2, t-3, t-4"), (7, None)]
)
def test_so_many_replicas_are_named(count: int, named: str | None) -> None:
    assert holds_replicas(7, [f"t-{n}" for n in range(count)]) == (
        f"broker 7 would be removed and still holds {count} replica(s): "
        f"{named or 't-0, t-1, t-2, t-3, t-4 and 2 more'}. Move them to the brokers that stay "
        "(kafka-reassign-partitions), or keep the broker"
    )


@pytest.mark.parametrize(
    ("wanted", "written", "back"),
    [
        ("4.0.2", "4.1.0", True),
        ("4.1.0", "4.1.1", False),
        ("4.10.0", "4.9.0", False),
        ("3.9.2", "4.0.0", True),
        ("4.1.1", "4.1.1", False),
    ],
)
def test_only_an_older_release_goes_back(wanted: str, written: str, back: bool) -> None:
    assert goes_back(wanted, written) is back
    assert release("4.10.1-rc2") == (4, 10, 1)
