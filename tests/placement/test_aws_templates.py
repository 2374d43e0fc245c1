"""The templates of placement aws: complete but for what is marked, and what each of them makes."""

import json
import re
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from earshot.config.aws import AwsSpec
from earshot.listeners.problems import describe
from earshot.placement.aws import plan_aws
from earshot.rules.evaluate import RULES
from tests.config.aws_documents import BOTH
from tests.placement.cost_page import bill
from tests.raised import raised
from toolchain.paths import POLICIES, STACKS

NAMES = ("aws-dev", "aws-prod")
FILLED: dict[str, dict[str, Any]] = {
    "archive": {"sha512": "0" * 128},
    "clients": {"ranges": {"office": "203.0.113.0/24"}},
    "zone": {"name": "kafka.example.com", "public_zone_id": "Z0123456789ABC"},
}
MARKED = {"archive.sha512", "clients.ranges.office", "zone.name", "zone.public_zone_id"}


def template(name: str) -> dict[str, Any]:
    document = yaml.safe_load((STACKS / f"Pulumi.{name}.yaml").read_text())
    assert document["config"]["aws:region"] == document["config"]["earshot:cluster"]["region"]
    found: dict[str, Any] = document["config"]["earshot:cluster"]
    return found


def filled(name: str) -> AwsSpec:
    found = template(name)
    for key, values in FILLED.items():
        if key in found:
            found[key] |= values
    return AwsSpec.model_validate(found)


@pytest.mark.parametrize("name", NAMES)
def test_only_what_is_marked_is_missing(name: str) -> None:
    document = template(name)
    error = raised(ValidationError, AwsSpec.model_validate, document)
    keys = {line.partition(":")[0] for line in describe(error, AwsSpec, document)}
    assert keys == {key for key in MARKED if key.partition(".")[0] in document}
    text = (STACKS / f"Pulumi.{name}.yaml").read_text()
    for key in keys:
        assert re.search(rf'{key.rpartition(".")[2]}: "" # FILL IN', text)
    assert text.count("# FILL IN") == len(keys)


@pytest.mark.parametrize("name", NAMES)
def test_nearly_every_key_is_shown(name: str) -> None:
    text = (STACKS / f"Pulumi.{name}.yaml").read_text()
    hidden = {key for key in AwsSpec.model_fields if not re.search(rf"\b{key}\b", text)}
    general = {"inter_broker", "replication_factor", "min_insync_replicas", "client", "pinned"}
    other = {"clear_text", "secrets", "controller_instance", "controller_volume"}
    assert hidden <= general | other


def test_dev_is_one_broker_that_can_be_thrown_away() -> None:
    spec = filled("aws-dev")
    assert (spec.brokers, spec.naming, spec.data, spec.deletion_protection) == (
        1,
        "aws",
        "delete",
        False,
    )
    other = template("aws-dev") | {"listeners": [BOTH], "clear_text": {"PLAINTEXT": "a trial"}}
    for key in ("archive", "clients"):
        other[key] |= FILLED[key]
    assert AwsSpec.model_validate(other).external


def test_prod_is_spread_protected_and_has_a_quorum_of_its_own() -> None:
    spec = filled("aws-prod")
    assert sorted(spec.zone_of[id] for id in spec.ids) == sorted(spec.vpc.zones)
    assert (spec.naming, spec.controllers.mode, spec.voters) == ("zone", "separate", 3)
    assert (spec.data, spec.deletion_protection, spec.gate) == ("keep", True, "required")
    assert not spec.clear_text
    assert len(plan_aws(spec).plan.nodes) == 6


def test_what_the_templates_cost_is_counted() -> None:
    counted = {item.what: item.count for item in bill(filled("aws-prod"))}
    assert counted["NAT gateways"] == 3 and counted["public IPv4 addresses"] == 6


@pytest.mark.parametrize("name", NAMES)
def test_the_pack_accepts_nothing_that_the_rules_do_not(name: str) -> None:
    config = json.loads((POLICIES / "config" / f"{name}.json").read_text())
    levels = {key: level for key, level in config.items() if key != "names"}
    rules = {rule.id.lower() for rule in RULES}
    assert {key.removesuffix("-stack") for key in levels} <= {"as-approved", *rules}
    assert set(levels.values()) <= {"mandatory"}
    assert ("retry" in config["names"]) is (template(name)["naming"] == "zone")
