from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.facts.security_groups import SourceSet, read_range


@pytest.mark.parametrize(
    ("text", "range"),
    [
        ("203.0.113.0/24", "203.0.113.0/24"),
        ("203.0.113.7", "203.0.113.7/32"),
        ("203.0.113.7/32", "203.0.113.7/32"),
        ("12.0.0.0/8", "12.0.0.0/8"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("2001:db8::1", "2001:db8::1/128"),
        ("0.0.0.0/0", "0.0.0.0/0"),  # in so many words
        ("::/0", "::/0"),
    ],
)
def test_ranges_of_clients(text: str, range: str) -> None:
    assert str(read_range(text)) == range


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0.0.0.0/1", "names no single client: no network is larger than a /8"),
        ("128.0.0.0/1", "the world must be asked for in so many words"),
        ("8.0.0.0/7", "names no single client"),
        ("2000::/3", "the world must be asked for in so many words"),
        ("203.0.113.7/24", "write 203.0.113.0/24, or 203.0.113.7 for the one address"),
        ("2001:db8::1/32", "write 2001:db8::/32, or 2001:db8::1 for the one address"),
        ("1.2.3.4/0", "write 0.0.0.0/0, or 1.2.3.4 for the one address"),
        ("0/0", "is no range"),
        ("office", "is no range"),
        ("", "is no range"),
    ],
)
def test_invalid_ranges_of_clients(text: str, says: str) -> None:
    with pytest.raises(EarshotError) as caught:
        read_range(text)
    assert says in str(caught.value) and f"client range {text!r}" in str(caught.value)


@given(st.integers(0, 2**32 - 1), st.integers(0, 32))
def test_no_piece_of_the_world_is_taken_for_a_clients_range(number: int, prefix: int) -> None:
    text = str(ip_network((number, prefix), strict=False))
    if text == "0.0.0.0/0":
        return
    try:
        assert read_range(text).prefixlen >= 8
    except EarshotError:
        assert prefix < 8


def test_a_group_is_no_range() -> None:
    with pytest.raises(EarshotError, match="client range 'sg-0a1b2c3d': is no range"):
        read_range("sg-0a1b2c3d")


ranges = st.builds(
    lambda number, prefix: ip_network((number << 4 | 10 << 24, prefix), strict=False),
    st.integers(0, 255),
    st.integers(25, 32),
)


@given(st.lists(ranges, max_size=6), ranges)
def test_several_ranges_cover_what_their_addresses_cover(parts: list[Any], wanted: Any) -> None:
    together = {address for part in parts for address in part}
    assert SourceSet(parts).has(wanted) == (set(wanted) <= together)


def test_families_do_not_cover_each_other() -> None:
    assert not SourceSet([ip_network("::/0")]).has(ip_network("10.0.0.0/8"))
    assert SourceSet([ip_network("::/0"), ip_network("10.0.0.0/8")]).has(
        ip_network("2001:db8::/32")
    )
