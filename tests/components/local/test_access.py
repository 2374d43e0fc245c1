"""The listeners that local brokers are queried through, and the updates that need an answer."""

from pathlib import Path

import pytest
from earshot_pulumi.local.access import access, problems

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, SecurityPlan
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from earshot.listeners.terms import Mechanism
from tests.components.local.test_cluster_memory import PORTS, planned

CHECK = {"sasl.mechanism": "PLAIN", "sasl.username": "check", "sasl.password": "x"}
FILE = "sasl.mechanism=PLAIN\nsasl.username=check\nsasl.password=x\n"


def with_protocol(protocol: str) -> ClusterPlan:
    listeners = [
        {"name": name, "port": PORTS[name], "scopes": scope, "protocol": protocol}
        for name, scope in (("INTERNAL", "internal"), ("EXTERNAL", "host"))
    ]
    return planned(listeners=listeners)


def settings(plan: ClusterPlan) -> dict[str, str]:
    return dict(read_properties(server_properties(plan, plan.nodes[0])).values)


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        ("PLAINTEXT", {}),
        ("SSL", {**CHECK, "security.protocol": "SSL"}),
        ("SASL_PLAINTEXT", {**CHECK, "security.protocol": "SASL_PLAINTEXT"}),
    ],
)
def test_one_comes_in_by_the_protocol_that_brokers_use_among_themselves(
    protocol: str, expected: dict[str, str]
) -> None:
    assert access(settings(with_protocol(protocol)), CHECK) == expected


def test_a_controller_alone_needs_no_credentials() -> None:
    plan = planned(controllers={"mode": "separate"})
    values = read_properties(server_properties(plan, plan.controllers[0])).values
    assert access(values, CHECK) == {}


def test_a_secured_cluster_is_asked_with_what_it_has_made() -> None:
    security = SecurityPlan(folder="/f", mechanism=Mechanism.SCRAM_SHA_512)
    plan = with_protocol("SSL").model_copy(update={"security": security})
    assert access(settings(plan), CHECK)["ssl.key.location"] == "/f/node-1.pem"
    assert list(problems(plan, {})) == []


def test_listeners_that_ask_for_credentials_need_some(tmp_path: Path) -> None:
    plan, file = with_protocol("SASL_PLAINTEXT"), tmp_path / "c.properties"
    assert list(problems(plan, {})) == [
        (
            "client_config: is missing, and INTERNAL (SASL_PLAINTEXT), EXTERNAL (SASL_PLAINTEXT) "
            "ask for credentials: without a client, neither a broker's start nor these listeners "
            "can be proved. Set the key to the path of a file with Kafka's client properties, and "
            "keep it as long as there are such listeners"
        )
    ]
    given = {"client_config": str(file)}
    file.write_text("sasl.username=check\n")
    assert list(problems(plan, given)) == [
        (
            f"client_config: {file} has no sasl.mechanism, and INTERNAL (SASL_PLAINTEXT), EXTERNAL "
            "(SASL_PLAINTEXT) ask for one"
        )
    ]
    file.write_text("sasl.mechanism=FOO\n")
    first, second = problems(plan, given)
    assert first.startswith(f"client_config: {file} cannot be used for INTERNAL (SASL_PLAINTEXT): ")
    assert "FOO" in first and "EXTERNAL" in second
    file.write_text(FILE)
    assert list(problems(plan, given)) == []
    assert list(problems(with_protocol("PLAINTEXT"), {})) == []
    file.unlink()
    with pytest.raises(EarshotError, match=r"client_config: .*: cannot be read \(No such file"):
        list(problems(plan, given))
