"""Plain data and the engine's messages."""

from typing import Any

from earshot_pulumi.provider.kind import UNKNOWN
from earshot_pulumi.provider.values import message, plain_properties
from hypothesis import given
from hypothesis import strategies as st
from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.runtime import rpc

from tests.secret_properties import secrets_in

values = st.recursive(
    st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
names = st.text(min_size=1, max_size=6).filter(lambda text: not text.startswith("__"))


@given(st.dictionaries(names, values, max_size=4))
def test_properties_come_back_as_they_were_sent(properties: dict[str, Any]) -> None:
    assert plain_properties(message(properties)) == properties


def test_unknown_values_and_secrets_survive() -> None:
    sent = message({"a": UNKNOWN, "b": {"c": [UNKNOWN, 1.5]}, "d": "text"}, secrets={"d"})
    assert sent["a"] == rpc.UNKNOWN
    received = plain_properties(sent)
    assert received["a"] is UNKNOWN and received["b"]["c"] == [UNKNOWN, 1.5]
    assert secrets_in(sent) == {"d"}


def test_a_map_keeps_its_secret_parts_and_a_changed_one_is_secret_as_a_whole() -> None:
    inner = PropertyValue(
        {
            "user": PropertyValue("u"),
            "none": PropertyValue(None),
            "listed": PropertyValue([PropertyValue("l"), PropertyValue("p", is_secret=True)]),
        }
    )
    arrived = PropertyValue.marshal_map({"client": inner})
    plain = {"client": {"user": "u", "listed": ["l", "p"]}}
    sent = message(plain, arrived)
    client = PropertyValue.unmarshal_map(sent)["client"]
    assert client.contains_secret() and not client.is_secret
    assert plain_properties(sent) == plain, "without the null"
    parts_of_client: Any = client.value
    assert [part.is_secret for part in parts_of_client["listed"].value] == [False, True]
    assert secrets_in(message({"client": {"user": "u"}}, arrived)) == {"client"}
