"""The Docker double's inputs, compared with the official package, and the engine's values."""

import importlib.metadata
import inspect
import json
import os
from pathlib import Path
from typing import Any

import pulumi_docker
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi._types import input_type_py_to_pulumi_names
from pulumi.runtime.rpc import UNKNOWN

from tests.doubles.docker.container_config import DETAILS, LISTS, nanoseconds
from tests.doubles.docker.defaults import BELOW, with_defaults
from tests.doubles.docker.install import VERSION, install_docker_plugin
from tests.doubles.docker.provider import KINDS, DockerDouble
from tests.doubles.plugin.kind import ProviderError, Shape, changed_inputs, not_implemented
from tests.doubles.plugin.values import plain, wrapped

# Which class of the package describes the parts of an input.
PARTS = {
    "Container": {"healthcheck": "ContainerHealthcheckArgs", "labels": "ContainerLabelArgs",
                  "networksAdvanced": "ContainerNetworksAdvancedArgs", "ports": "ContainerPortArgs",
                  "volumes": "ContainerVolumeArgs"},
    "Network": {"labels": "NetworkLabelArgs"},
    "Volume": {"labels": "VolumeLabelArgs"},
    "RemoteImage": {},
}  # fmt: skip
CONTAINER = KINDS["docker:index/container:Container"]


def official(name: str) -> set[str]:
    """The input names of an official arguments class, as they are on the wire."""
    return set(input_type_py_to_pulumi_names(getattr(pulumi_docker, name)).values())


def levels(shape: Shape, path: str = "") -> list[tuple[str, set[str]]]:
    """Every level of a shape: where it is, and the names on it."""
    named_levels = [(path, set(shape))]
    for name, parts in shape.items():
        if parts is not None:
            named_levels += levels(parts, f"{path}.{name}".lstrip("."))
    return named_levels


@pytest.mark.parametrize("token", KINDS)
def test_every_input_is_one_of_the_official_plugins(token: str) -> None:
    resource = token.rpartition(":")[2]
    for path, names in levels(KINDS[token].shape):
        resource_description = PARTS[resource][path] if path else f"{resource}Args"
        assert names <= official(resource_description), (
            f"{path}: {names - official(resource_description)}"
        )


def test_what_outputs_have_besides_is_the_official_plugins() -> None:
    assert official("ContainerArgs") >= set(LISTS)
    for name, details in DETAILS.items():
        assert details.keys() <= official(PARTS["Container"][name])
    for name, details in BELOW.items():
        assert details.keys() <= official(PARTS["Container"][name])


@pytest.mark.parametrize("token", KINDS)
def test_defaults_and_updates_are_of_known_inputs(token: str) -> None:
    kind = KINDS[token]
    assert kind.defaults.keys() <= kind.shape.keys()
    assert kind.in_place <= kind.shape.keys()


@pytest.mark.parametrize("token", KINDS)
def test_tokens_are_those_of_the_official_classes(token: str) -> None:
    resource = getattr(pulumi_docker, token.rpartition(":")[2])
    assert f"'{token}'" in inspect.getsource(resource).replace('"', "'")


def test_the_version_is_the_packages_own(tmp_path: Path) -> None:
    about = Path(pulumi_docker.__file__).parent / "pulumi-plugin.json"
    assert json.loads(about.read_text()) | {"version": VERSION} == json.loads(about.read_text())
    folder = install_docker_plugin(tmp_path)
    assert folder == tmp_path / "plugins" / f"resource-docker-v{VERSION}"
    (binary,) = folder.iterdir()
    assert binary.name == "pulumi-resource-docker" and os.access(binary, os.X_OK)


def test_another_version_of_the_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "6.0.0")
    with pytest.raises(AssertionError, match=r"6\.0\.0 is installed, the double is of 5\.1\.0"):
        install_docker_plugin(tmp_path)


def test_inputs_that_are_not_implemented_are_named_by_their_path() -> None:
    inputs = {
        "name": "c",
        "gpus": "all",
        "healthcheck": {"tests": ["CMD", "true"], "more": 1},
        "networksAdvanced": [{"name": "n"}, {"name": "m", "macAddress": "02::"}],
    }
    assert list(not_implemented(inputs, CONTAINER.shape)) == [
        "gpus",
        "healthcheck.more",
        "networksAdvanced.macAddress",
    ]


def test_what_a_preview_does_not_know_is_not_checked() -> None:
    inputs = {"name": UNKNOWN, "ports": UNKNOWN, "networksAdvanced": [UNKNOWN, {"name": UNKNOWN}]}
    assert list(not_implemented(inputs, CONTAINER.shape)) == []


@pytest.mark.parametrize(
    ("state", "inputs", "expected"),
    [
        ({"envs": ["A=1"]}, {"envs": ["A=1"]}, []),
        ({"envs": ["A=1"]}, {"envs": ["A=2"]}, ["envs"]),
        ({"envs": ["A=1"]}, {}, ["envs"]),
        ({}, {"envs": []}, []),
        ({"mustRun": False}, {}, ["mustRun"]),
        ({"mustRun": True}, {}, []),
        ({}, {"mustRun": False}, ["mustRun"]),
        ({"networkDatas": [{"networkName": "x"}], "exitCode": 1}, {}, []),
        ({"ports": [{"internal": 1, "external": 32768}]}, {"ports": [{"internal": 1}]}, []),
        ({"ports": [{"internal": 1, "external": 1}]}, {"ports": [{"internal": 2}]}, ["ports"]),
        ({"ports": [{"internal": 1}]}, {"ports": [{"internal": 1}, {"internal": 2}]}, ["ports"]),
        ({"ports": [{"internal": 1}]}, {"ports": [{"internal": 1, "ip": "::1"}]}, ["ports"]),
        ({"ports": []}, {"ports": [{"internal": 1}]}, ["ports"]),
        ({"dns": ["192.0.2.1", "192.0.2.2"]}, {"dns": ["192.0.2.2", "192.0.2.1"]}, []),
    ],
)
def test_what_counts_as_a_change(
    state: dict[str, Any], inputs: dict[str, Any], expected: list[str]
) -> None:
    assert changed_inputs(CONTAINER, state, inputs) == expected


def test_only_these_changes_spare_the_container() -> None:
    assert CONTAINER.in_place == {
        "restart", "mustRun", "start", "rm", "removeVolumes", "destroyGraceSeconds", "wait",
        "waitTimeout", "containerReadRefreshTimeoutMilliseconds",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("5s", 5_000_000_000),
        ("1m30s", 90_000_000_000),
        ("500ms", 500_000_000),
        ("1.5h", 5_400_000_000_000),
    ],
)
def test_durations_are_as_go_writes_them(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize("text", ["", "5", "s", "5 s", "1m30", "five seconds"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ProviderError, match="is not a duration"):
        nanoseconds(text)


def test_defaults_are_filled_in_and_named() -> None:
    inputs = {"restart": "always", "ports": [{"internal": 1, "ip": "::1"}, UNKNOWN], "labels": []}
    inputs_with_defaults = with_defaults(inputs, dict(CONTAINER.defaults), CONTAINER.shape)
    assert inputs_with_defaults["ports"] == [
        {"internal": 1, "ip": "::1", "protocol": "tcp", "__defaults": ["protocol"]},
        UNKNOWN,
    ]
    assert (inputs_with_defaults["restart"], inputs_with_defaults["mustRun"]) == ("always", True)
    assert (
        "mustRun" in inputs_with_defaults["__defaults"]
        and "restart" not in inputs_with_defaults["__defaults"]
    )
    values = DockerDouble().values(wrapped(inputs_with_defaults))
    assert values.keys() == inputs_with_defaults.keys() - {"__defaults"}
    assert values["ports"] == [{"internal": 1, "ip": "::1", "protocol": "tcp"}, UNKNOWN]


LEAVES = st.booleans() | st.text() | st.integers(-(2**31), 2**31) | st.just(0.5)
VALUES = st.recursive(
    LEAVES,
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@settings(max_examples=40)  # of up to twenty values each
@given(st.dictionaries(st.text(), VALUES))
def test_values_come_back_as_they_went(values: dict[str, Any]) -> None:
    assert plain(wrapped(values)) == values


def test_numbers_are_floats_on_the_way_and_absent_values_go() -> None:
    wire_values = wrapped({"port": 9092, "none": None})
    assert wire_values.keys() == {"port"}
    assert isinstance(wire_values["port"].value, float)
    assert type(plain(wire_values)["port"]) is int
