"""Places and variables in the containers of an ECS task."""

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


def test_a_variable_is_known_only_where_its_text_stands_there() -> None:
    (task,) = read_task(
        json.dumps(
            [
                {
                    "environment": [
                        {"name": "A", "value": "a"},
                        {"name": "B", "value": {"Ref": "P"}},
                        {"name": "C"},
                    ],
                    "secrets": [{"name": "D", "valueFrom": "arn:aws:ssm:d"}],
                }
            ]
        )
    )
    assert task.service.container.env == {"A": "a", "B": "${B}", "C": "${C}", "D": "${D}"}
    assert task.variables == {
        "A": "containerDefinitions[0].environment[0]",
        "B": "containerDefinitions[0].environment[1]",
        "C": "containerDefinitions[0].environment[2]",
        "D": "containerDefinitions[0].secrets[0]",
    }


@pytest.mark.parametrize("text", ["1", "null", "{}", '"k"', "[1, null, []]"])
def test_what_is_no_list_of_containers_has_none(text: str) -> None:
    assert read_task(text) == ()
