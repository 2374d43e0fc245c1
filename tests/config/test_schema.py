"""The JSON Schema of a stack file: every key described, every template valid, errors found."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator

from earshot.cli import run
from earshot.config.schema import descriptions, parts, stack_file_schema
from earshot.placement_registry import PLACEMENTS
from toolchain.paths import ROOT

SCHEMA = stack_file_schema()
FILE = ROOT / "stacks" / "earshot.schema.json"
TEMPLATES = sorted((ROOT / "template" / "stacks").glob("Pulumi.*.yaml"))
"""Links to those in stacks/, where a developer has others, too."""
AWS = {
    "placement": "aws",
    "region": "eu-central-1",
    "vpc": {"zones": ["eu-central-1a", "eu-central-1b"]},
    "archive": {"url": "https://example.com/kafka.tgz", "sha512": "0" * 128},
}


def problems(cluster: dict[str, Any]) -> list[str]:
    """The schema's errors for a file with ``cluster``."""
    document = {"config": {"earshot:cluster": cluster}}
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(document)]


def test_it_is_a_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_key_has_a_description(name: str) -> None:
    for model in parts(PLACEMENTS[name].module("earshot.config").MODEL):
        described = descriptions(model)
        for field in model.model_fields:
            text = described.get(field, "")
            assert text.endswith("."), f"{model.__name__}.{field}: {text or 'no description'}"
        properties = SCHEMA["$defs"][model.__name__]["properties"]
        assert all(schema.get("description") for schema in properties.values())


def test_the_file_beside_the_templates_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["schema"]) == 0
    printed = capsys.readouterr().out
    assert (ROOT / "template" / "stacks" / FILE.name).samefile(FILE), "a copy would grow old"
    assert FILE.read_text() == printed, "run: .venv/bin/earshot schema > stacks/earshot.schema.json"


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_every_template_names_the_schema_and_is_valid(template: Path) -> None:
    assert template.samefile(ROOT / "stacks" / template.name)
    text = template.read_text()
    assert text.startswith("# yaml-language-server: $schema=earshot.schema.json\n")
    document = json.loads(json.dumps(yaml.safe_load(text)))  # numbers as keys become text
    assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(document)] == []


@pytest.mark.parametrize(
    "cluster",
    [
        {"placement": "local"},
        {"placement": "local", "gate": False},  # YAML 1.1 reads a bare `off` so
        {"placement": "local", "extra": {"num.network.threads": 4, "a": "b"}},
        {"placement": "local", "security": {"users": [{"name": "app"}]}, "remove": "2030-12-31"},
        {"placement": "docker", "hosts": [{}], "dns": ["192.0.2.53"]},
        {"placement": "docker", "listeners": [{"name": "A", "port": 1, "scopes": "internal"}]},
        AWS,
        AWS | {"validator": True},
        AWS | {"validator": {"every": 5}},
        {"extends": "base"},
        {"extends": "base", "vpc": {"cidr": "10.1.0.0/16"}},
        {"extends": "base", "placement": "aws"},
    ],
)
def test_a_cluster_that_earshot_accepts_is_valid(cluster: dict[str, Any]) -> None:
    assert problems(cluster) == []


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({}, "is not valid under any"),
        ({"placement": "moon"}, "'moon' is not one of"),
        ({"placement": "local", "brokrs": 3}, "'brokrs' was unexpected"),
        ({"placement": "local", "hosts": []}, "'hosts' was unexpected"),
        ({"placement": "local", "brokers": "3"}, "'3' is not of type 'integer'"),
        ({"placement": "local", "kafka_version": "3.8.0"}, "does not match"),
        ({"placement": "local", "listeners": [{"name": "A", "port": 0}]}, "'scopes' is a required"),
        ({"placement": "aws"}, "'archive' is a required"),
        (AWS | {"vpc": {}}, "'zones' is a required"),
        ({"extends": "base", "brokrs": 3}, "is not valid under any"),
        ({"extends": 3, "placement": "local"}, "3 is not of type 'string'"),
    ],
)
def test_a_cluster_that_earshot_refuses_is_invalid(cluster: dict[str, Any], message: str) -> None:
    assert any(message in problem for problem in problems(cluster)), problems(cluster)
