"""The template with Docker hosts that the stack makes, and what stack files may say of them."""

import copy
from typing import Any

import pytest
import yaml

from earshot.aws.ecr import EXAMPLE
from earshot.config.aws_docker_hosts import DockerHostsSpec
from earshot.config.docker import DockerSpec
from earshot.config.docker_host import NOT_KNOWN_YET
from earshot.config.document import read_spec
from earshot.errors import SpecError
from earshot.placement.docker import plan_docker
from tests.raised import raised
from toolchain.paths import STACKS

NAME = "aws-docker"
TEXT = (STACKS / f"Pulumi.{NAME}.yaml").read_text()
RANGE = "10.200.0.0/24"


def template() -> dict[str, Any]:
    document = yaml.safe_load(TEXT)["config"]
    found: dict[str, Any] = document["earshot:cluster"]
    zones = found["hosts"]["aws"]["host_zones"].values()
    assert {zone[:-1] for zone in zones} == {document["aws:region"]}
    return found


def filled(**changes: Any) -> DockerSpec:
    found = copy.deepcopy(template())
    found["hosts"]["aws"] |= {"deployers": {"here": RANGE}, **changes}
    spec = read_spec(found, NAME)
    assert isinstance(spec, DockerSpec)
    return spec


def hosts_of_template() -> DockerHostsSpec:
    """What the template makes, once it is filled in."""
    found = filled().provisioned
    assert found is not None
    return found


def test_only_what_is_marked_is_missing() -> None:
    error = raised(SpecError, read_spec, template(), NAME)
    assert str(error).count("hosts:") == 1
    assert "hosts: aws.deployers.here: client range ''" in str(error)
    assert TEXT.count("# FILL IN") == 1


def test_hosts_pull_images_of_the_stack_file_that_are_in_ecr() -> None:
    base = EXAMPLE.replace("apache/kafka:4.1.1", "debian:bookworm-slim")
    own = filled(images=[EXAMPLE]).provisioned
    assert own is not None
    assert own.images_with(EXAMPLE, base) == (EXAMPLE, base)
    assert hosts_of_template().images_with("apache/kafka:4.1.1", "debian:bookworm-slim") == ()


def test_brokers_are_planned_on_hosts_whose_names_only_the_update_knows() -> None:
    spec = filled()
    assert [host.name for host in spec.hosts] == ["a", "b"]
    plan = plan_docker(spec, NAME).plan
    assert [node.rack for node in plan.nodes] == ["a", "b"]
    advertised = {item.advertised.host for node in plan.nodes for item in node.listeners}
    assert advertised == {f"a.{NOT_KNOWN_YET}", f"b.{NOT_KNOWN_YET}"}


def test_hosts_that_exist_are_not_provisioned() -> None:
    spec = read_spec({"placement": "docker"}, NAME)
    assert isinstance(spec, DockerSpec) and spec.provisioned is None


@pytest.mark.parametrize(("hosts", "told"), [
    ({"aws": {}}, "hosts: aws.host_zones: is missing"),
    ({"aws": None}, "hosts: aws: found nothing"),
    ({"gcp": {}}, "hosts: gcp: is no key that earshot knows; allowed: aws"),
    ({"aws": {"host_zones": {"a": "us-east-1a"}, "deployers": {"all": "0.0.0.0/0"}}},
     "hosts: aws.deployers.all: found 0.0.0.0/0, which is every address"),
    ({"aws": {"host_zones": {"a": "us-east-1a"}, "deployers": {"o": RANGE}}}, "hosts: aws: zones"),
])  # fmt: skip
def test_what_cannot_be_made_is_refused_with_its_key(hosts: Any, told: str) -> None:
    assert told in str(raised(SpecError, read_spec, {"placement": "docker", "hosts": hosts}, NAME))


def test_no_secured_cluster_on_several_hosts() -> None:
    found = template() | {"security": {"users": []}}
    found["hosts"]["aws"]["deployers"] = {"here": RANGE}
    with pytest.raises(SpecError, match="security: found with 2 Docker hosts"):
        read_spec(found, NAME)
