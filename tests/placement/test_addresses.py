"""What brokers advertise with each address strategy."""

from pathlib import Path
from typing import Any

from earshot.checks.plan import check_planned
from earshot.config.docker import DockerSpec
from earshot.config.local import LocalSpec
from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.render import settings
from earshot.names.policy import ResolverPolicy
from earshot.placement.docker import plan_docker
from earshot.placement.given import plan_given, read_given
from earshot.placement.local import plan_local
from earshot.transition.steps import transition
from earshot.validation.contract import Contract
from tests.config.test_addresses import PORT, SNI, spec
from tests.raised import raised


def planned(found: LocalSpec, folder: Path) -> ClusterPlan:
    return plan_local(found, folder).plan


def external(plan: ClusterPlan) -> list[str]:
    return [str(item) for node in plan.brokers if (item := node.listener("EXTERNAL"))]


def test_a_port_per_broker(tmp_path: Path) -> None:
    plan = planned(spec(**{**PORT, "bootstrap_port": 9100}), tmp_path)
    assert external(plan) == [f"EXTERNAL://kafka.example.com:910{id}" for id in (1, 2, 3)]
    rendered = settings(plan, plan.brokers[1])
    assert "EXTERNAL://0.0.0.0:9093" in rendered["listeners"]
    assert "EXTERNAL://kafka.example.com:9102" in rendered["advertised.listeners"]
    contract = Contract.of(plan, "stack", "local")
    assert contract.listener("EXTERNAL").bootstrap == "kafka.example.com:9100"


def test_a_name_per_broker(tmp_path: Path) -> None:
    address = {**SNI, "port": 443, "bootstrap_host": "bootstrap.example.com"}
    plan = planned(spec(protocol="SSL", **address), tmp_path)
    assert external(plan) == [f"EXTERNAL://broker-{id}.example.com:443" for id in (1, 2, 3)]
    contract = Contract.of(plan, "stack", "local")
    assert contract.listener("EXTERNAL").bootstrap == "bootstrap.example.com:443"
    without = planned(spec(protocol="SSL", **SNI), tmp_path)
    bootstrap = Contract.of(without, "stack", "local").listener("EXTERNAL").bootstrap
    assert bootstrap.split(",") == [f"broker-{id}.example.com:9092" for id in (1, 2, 3)]


def test_the_forwarder_on_the_brokers_machine_takes_no_port_of_a_listener(tmp_path: Path) -> None:
    address = {**PORT, "host": "localhost", "base_port": 19092}
    error = raised(EarshotError, planned, spec(**address), tmp_path)
    assert "port 19093 of this machine" in str(error)
    assert "is claimed by what forwards to EXTERNAL of node 1 and by" in str(error)


def test_a_plan_is_written_and_read_with_its_forwarder(tmp_path: Path) -> None:
    plan = planned(spec(**{**PORT, "path": {"idle_seconds": 350}}), tmp_path)
    assert ClusterPlan.model_validate(plan.model_dump(mode="json")) == plan
    own = plan.brokers[0].listeners[0].model_dump(mode="json")
    assert "front" not in own  # states of clusters without a forwarder stay as they are


def given(**address: Any) -> ClusterPlan:
    document = {
        "nodes": {"101": {"internal": "10.0.0.1"}, "102": {"internal": "10.0.0.2"}},
        "listeners": [
            {"name": "INTERNAL", "port": 9092, "scopes": ["internal"]},
            {"name": "EXTERNAL", "port": 9094, "scopes": ["external"], "address": address},
        ],
    }
    return plan_given(read_given(document, "kafka"))


def test_brokers_of_others_need_no_external_host_behind_a_forwarder() -> None:
    assert external(given(**PORT)) == [f"EXTERNAL://kafka.example.com:9{n}" for n in (201, 202)]


def test_a_port_per_container_leads_to_its_published_port() -> None:
    address = {**PORT, "base_port": 39091}
    spec = DockerSpec.model_validate(
        {
            "placement": "docker",
            "listeners": [
                {"name": "INTERNAL", "port": 19092, "scopes": "internal"},
                {"name": "EXTERNAL", "port": 39092, "scopes": "external", "address": address},
            ],
        }
    )
    made = plan_docker(spec, "stack")
    assert external(made.plan) == [f"EXTERNAL://kafka.example.com:3909{n}" for n in (2, 3, 4)]
    published = [item.ports[0].host_port for item in made.containers.values()]
    assert published == [39092, 39093, 39094]
    found = check_planned(spec, made, ResolverPolicy(timeout=1)).findings
    certain = {finding.rule for finding in found if finding.is_certain_error}
    assert certain <= {"KL011"}  # no name of example.com resolves here


def test_another_path_restarts_no_broker_and_another_port_all(tmp_path: Path) -> None:
    before = planned(spec(**PORT), tmp_path)
    slower = planned(spec(**PORT, path={"idle_seconds": 700}), tmp_path)
    moved = planned(spec(**{**PORT, "base_port": 9200}), tmp_path)
    (step,) = transition(before, slower)
    assert (step.text, step.restarts) == ("EXTERNAL behind another forwarder", ())
    (step,) = transition(before, moved)
    assert (step.text, step.restarts) == ("EXTERNAL at other addresses", (1, 2, 3))
