"""Which containers of one file are started in place of each other."""

import pytest

from earshot.sources.alternatives import with_alternatives
from earshot.topology.container import Container, PublishedPort

KAFKA = Container("kafka", published=(PublishedPort(9092, 9092),))


@pytest.mark.parametrize(
    ("first", "second", "groups", "are_alternatives"),
    [
        (KAFKA, Container("kafka"), "ab", True),
        (KAFKA, Container("other", published=(PublishedPort(9092, 9094),)), "ab", False),
        (KAFKA, Container("other", published=KAFKA.published), "ab", True),
        (KAFKA, Container("other", published=KAFKA.published), "aa", False),
        (KAFKA, KAFKA, ("a", ""), False),  # one is always started
        # names that are missing or unknown need not be equal
        (Container(""), Container(""), "ab", False),
        (Container("${computed}"), Container("${computed}"), "ab", False),
    ],
)
def test_containers_of_two_groups_that_exclude_each_other(
    first: Container, second: Container, groups: tuple[str, str], are_alternatives: bool
) -> None:
    profiles = [container.profiles for container in with_alternatives([first, second], groups)]
    assert profiles == ([("a",), ("b",)] if are_alternatives else [(), ()])
