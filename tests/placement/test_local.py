"""Where the data of local brokers may lie."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from earshot.checks.plan import check_planned
from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.render import server_properties
from earshot.listeners.security import trusted_by
from earshot.names.policy import ResolverPolicy
from earshot.placement import local as module
from earshot.placement.local import plan_local
from earshot.placement.secured import unit_of
from earshot.rules.rule import Severity
from earshot.sockets import OutgoingPorts
from tests.certificates.made import made
from tests.config.read import read_local
from tests.config.test_security import PRIVATE_CA, secured


@pytest.mark.parametrize(
    ("root", "shown", "why"),
    [
        ("/a,b/kafka", "/a,b/kafka", "a comma in its path, at which Kafka would split `log.dirs`"),
        ("/a\udcfcb", "/a\\udcfcb", "a path that is not UTF-8, which Java cannot open"),
    ],
)
def test_a_path_that_kafka_cannot_take_is_refused(root: str, shown: str, why: str) -> None:
    with pytest.raises(EarshotError) as caught:
        plan_local(read_local({"placement": "local"}, "test"), Path(root))
    message = str(caught.value)
    assert message.startswith(f"data folder {shown}: has {why}")
    assert message.endswith("fix: move the project to another path")


@pytest.mark.parametrize("root", ["/home/jürgen", "/a b/#c=d:e", "/back\\slash", "/👂/100%"])
def test_any_other_path_reaches_kafka_as_it_is(root: str) -> None:
    local = plan_local(read_local({"placement": "local"}, "test"), Path(root))
    text = server_properties(local.plan, local.plan.nodes[0])
    assert read_properties(text).values["log.dirs"] == f"{root}/node-1/log"


def test_certificates_of_others_are_read_beside_the_project(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    root = made("CN=Root", now, authority=True, number=1)
    plain = plan_local(read_local(secured()), tmp_path)
    assert plain.certificates == {}
    hosts = sorted({str(listener.host) for node in plain.plan.nodes for listener in node.listeners})
    node = made("CN=b1", now, root, hosts=hosts, number=2)
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "ca.pem").write_text(root.pem)
    (tmp_path / "certs" / "node.pem").write_text(node.key_pem() + node.pem)
    files = {"certificate": "certs/node.pem", "authority": "certs/ca.pem"}
    spec = read_local(secured(security={"tls": {"from": files}}))
    local = plan_local(spec, tmp_path / ".earshot" / "stacks" / "s" / "kafka")
    assert local.plan.security is not None
    assert local.plan.security.principals == ("CN=b1",)
    assert {id: str(item.names) for id, item in local.certificates.items()} == dict.fromkeys(
        (1, 2, 3), ", ".join(hosts)
    )
    ends = (now + timedelta(days=90)).date()
    assert local.notes[-1] == f"certificates of others: that of node 1 expires first, on {ends}"
    found = check_planned(spec, local, ResolverPolicy()).findings
    assert {(finding.rule, finding.severity) for finding in found} == {
        ("KL010", Severity.WARNING)
    }  # one key


def test_nodes_with_certificates_of_a_private_ca_are_known_by_stack_and_ca(tmp_path: Path) -> None:
    spec = read_local(secured(security={"tls": {"from": {"private_ca": PRIVATE_CA}}}))
    local = plan_local(spec, tmp_path / ".earshot" / "stacks" / "orders" / "kafka")
    assert local.plan.security is not None
    principal = "CN=node,OU=nodes by 12345678 of orders"
    assert local.plan.security.principals == (principal,)
    settings = server_properties(local.plan, local.plan.nodes[0])
    assert read_properties(settings).values["super.users"] == f"User:{principal}"
    assert trusted_by(local.plan.security) == "trusted.pem"
    assert len(unit_of(PRIVATE_CA, Path("x" * 100) / "kafka")) == 64


def test_ports_of_the_machine_s_own_connections_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"listeners": [{"name": "INTERNAL", "port": 32766, "scopes": ["internal", "host"]}]}
    for known, noted in ((OutgoingPorts(32768, 60999), 1), (None, 0), (OutgoingPorts(1, 9), 0)):
        monkeypatch.setattr(module, "outgoing_ports", lambda known=known: known)
        made = plan_local(read_local({"placement": "local", **spec}), Path("/x"))
        notes = [note for note in made.notes if "outgoing connections" in note]
        assert len(notes) == noted
    monkeypatch.setattr(module, "outgoing_ports", lambda: OutgoingPorts(32768, 60999))
    made = plan_local(read_local({"placement": "local", **spec}), Path("/x"))
    assert made.notes[-1] == (
        "INTERNAL: outgoing connections of this machine use ports 32768-60999, so one of them "
        "may occupy 32768 when a node starts; choose ports outside that range, or reserve these "
        "(sysctl net.ipv4.ip_local_reserved_ports)"
    )
