"""Where something stands in the containers of an ECS task."""

from __future__ import annotations

import json

import pytest

from earshot.sources.task_definition import read_task


def test_a_place_is_a_variable_or_the_image_or_the_container() -> None:
    environment = [{"name": "KAFKA_LISTENERS", "value": "A://:1"}]
    (task,) = read_task(
        json.dumps([{"name": "k", "image": "apache/kafka:4.1.1", "environment": environment}])
    )
    assert task.place(("gone", "listeners", "image")) == task.variables["KAFKA_LISTENERS"]
    assert task.place(("gone", "image")) == f"{task.path}.image"
    assert task.place(("gone",)) == task.path


@pytest.mark.parametrize("text", ["1", "null", "{}", '"k"', "[1, null, []]"])
def test_what_is_no_list_of_containers_has_none(text: str) -> None:
    assert read_task(text) == ()
