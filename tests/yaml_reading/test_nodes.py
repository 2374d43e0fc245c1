"""Nodes at paths of YAML documents."""

import pytest

from earshot.yaml_reading.document import yaml_nodes_of_documents
from earshot.yaml_reading.nodes import entry_at

TEXT = """\
base: &base {image: a, env: {A: 1}}
jobs:
  1: {<<: *base, image: b}
  list: [x, {y: z}]
"""


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((0, "jobs", "1", "image"), "image", "b"),
        ((0, "jobs", "1", "env", "A"), "A", "1"),  # of the merged map
        ((0, "jobs", "list", 0), "x", "x"),
        ((0, "jobs", "list", 1, "y"), "y", "z"),
    ],
)
def test_an_entry_has_its_key_and_value(path: tuple[str | int, ...], key: str, value: str) -> None:
    entry = entry_at(yaml_nodes_of_documents(TEXT, "text"), path)
    assert entry is not None and (entry[0].value, entry[1].value) == (key, value)


@pytest.mark.parametrize(
    "path",
    [
        (0, "jobs", "2"),
        (0, "jobs", "list", 2),
        (0, "jobs", "list", "y"),
        (0, "jobs", 0),
        (0, "jobs", "1", "image", "x"),
        ("jobs",),
    ],
)
def test_a_path_that_leads_nowhere_has_no_entry(path: tuple[str | int, ...]) -> None:
    assert entry_at(yaml_nodes_of_documents(TEXT, "text"), path) is None
