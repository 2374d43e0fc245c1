"""Ids of clusters: what one looks like, and those that earlier releases gave."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.cluster_id import check_cluster_id, new_cluster_id, of_stack_name

NAMES = st.text("abcdefghijklmnopqrstuvwxyzABCXYZ0123456789-_.", min_size=1, max_size=100)


def test_each_new_id_is_another_uuid() -> None:
    ids = {check_cluster_id(new_cluster_id()) for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(base64.urlsafe_b64decode(f"{id}==")) == 16 for id in ids)


@given(NAMES)
def test_a_stacks_name_led_to_one_id_for_good(stack: str) -> None:
    assert check_cluster_id(of_stack_name(stack)) == of_stack_name(stack)


def test_data_of_earlier_releases_holds_it() -> None:
    assert of_stack_name("a") != of_stack_name("b")
    assert of_stack_name("docker") == "V_C-wajdU0OneYyf1gG1FQ"


@pytest.mark.parametrize(
    "text",
    ["", "short", "-L6g3nShT-eMCtK-X86swQ", "5L6g3nShT-eMCtK-X86swQ=", "5L6g3nShT+eMCtK-X86swQ"],
)
def test_any_other_text_is_not_an_id(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: a UUID as 22 characters of URL-safe base64"):
        check_cluster_id(text)
