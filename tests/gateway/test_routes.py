"""Which address of a contract leads to which port of which broker."""

import json
import subprocess
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.gateway.render import Software, render
from earshot.gateway.routes import BoundListener, Route, routes
from earshot.listeners.terms import Protocol, Scope
from earshot.validation.contract import (
    AdvertisedAddress,
    Contract,
    ContractBroker,
    ContractListener,
)

IDS = (1, 2)
STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"


def contract(
    protocol: Protocol = Protocol.SSL,
    host: str = "broker-{id}.example.com",
    ports: tuple[int, int] = (443, 443),
    bootstrap: str = "Bootstrap.example.com:443",
) -> Contract:
    """Two brokers with INTERNAL, and OUT for clients of a gateway."""
    return Contract(
        cluster="prod",
        placement="aws",
        kafka_version="4.1.1",
        inter_broker="INTERNAL",
        listeners=(
            ContractListener(
                name="INTERNAL", protocol=Protocol.PLAINTEXT, scopes=(Scope.INTERNAL,),
                bootstrap="ip-10-0-0-1:19092,ip-10-0-0-2:19092",
            ),
            ContractListener(
                name="OUT", protocol=protocol, scopes=(Scope.EXTERNAL,), bootstrap=bootstrap
            ),
        ),
        brokers=tuple(
            ContractBroker(
                id=id,
                advertised={
                    "INTERNAL": AdvertisedAddress(host=f"ip-10-0-0-{id}", port=19092),
                    "OUT": AdvertisedAddress(host=host.format(id=id), port=port),
                },
            )
            for id, port in zip(IDS, ports, strict=True)
        ),
    )  # fmt: skip


OUT = {"OUT": BoundListener(dict.fromkeys(IDS, 9095))}
BY_PORT = contract(Protocol.PLAINTEXT, "kafka.example.com", (9101, 9102), "kafka.example.com:9100")


def shown(found: tuple[Route, ...]) -> dict[tuple[str, int], list[str]]:
    return {(it.name, it.port): [str(back.address) for back in it.backends] for it in found}


def test_names_lead_to_the_ports_that_brokers_bind() -> None:
    one, two = "ip-10-0-0-1:9095", "ip-10-0-0-2:9095"
    gateway_routes = routes(contract(), OUT)
    assert shown(gateway_routes) == {
        ("bootstrap.example.com", 443): [one, two],
        ("broker-1.example.com", 443): [one],
        ("broker-2.example.com", 443): [two],
    }
    assert [it.label for it in gateway_routes] == ["OUT-bootstrap", "OUT-1", "OUT-2"]


def test_ports_lead_to_brokers_without_names() -> None:
    one, two = "ip-10-0-0-1:9095", "ip-10-0-0-2:9096"
    gateway_routes = routes(BY_PORT, {"OUT": BoundListener({1: 9095, 2: 9096}, 350)})
    assert shown(gateway_routes) == {("", 9100): [one, two], ("", 9101): [one], ("", 9102): [two]}
    assert {it.idle_seconds for it in gateway_routes} == {350}


def test_brokers_at_one_port_need_tls() -> None:
    with pytest.raises(EarshotError, match="port 443, and PLAINTEXT shows no name"):
        routes(contract(Protocol.PLAINTEXT), OUT)


def test_a_listener_that_the_contract_lacks_is_refused() -> None:
    with pytest.raises(EarshotError, match="listener NEW: is not in the contract of prod"):
        routes(contract(), {"NEW": BoundListener({1: 9095})})


def test_a_contract_of_a_cluster_itself_does_not_say_where_brokers_are() -> None:
    asked = contract().model_copy(update={"inter_broker": None})
    with pytest.raises(EarshotError, match="has no address at which other brokers reach it"):
        routes(asked, OUT)


def test_brokers_at_one_address_are_refused() -> None:
    alike = BY_PORT.model_dump(mode="json")
    for broker in alike["brokers"]:
        broker["advertised"]["INTERNAL"] = {"host": "localhost", "port": 19092 + broker["id"]}
    with pytest.raises(EarshotError, match="brokers 1 and 2 at the same address localhost:9095"):
        routes(Contract.model_validate(alike), OUT)
    own_ports = {"OUT": BoundListener({1: 9095, 2: 9096})}
    assert shown(routes(Contract.model_validate(alike), own_ports))["", 9102] == ["localhost:9096"]


@pytest.mark.parametrize("in_order", [("OUT", "INTERNAL"), ("INTERNAL", "OUT")])
def test_a_port_with_and_without_names_is_refused(in_order: tuple[str, str]) -> None:
    mixed = contract().model_dump(mode="json")
    bootstraps = []
    for id, broker in zip((1, 2), mixed["brokers"], strict=True):
        broker["advertised"]["INTERNAL"]["port"] = 442 + id
        bootstraps.append(f"{broker['advertised']['INTERNAL']['host']}:{442 + id}")
    mixed["listeners"][0]["bootstrap"] = ",".join(bootstraps)
    bound = BoundListener({1: 9095, 2: 9095})
    with pytest.raises(EarshotError, match=r"port 443: is that of .* without different names"):
        routes(Contract.model_validate(mixed), dict.fromkeys(in_order, bound))


def test_json_has_what_any_gateway_needs() -> None:
    first, *_ = json.loads(render(routes(contract(), OUT), Software.JSON, "t"))
    assert first == {
        "listener": "OUT",
        "port": 443,
        "server_name": "bootstrap.example.com",
        "bootstrap": True,
        "brokers": [{"id": id, "host": f"ip-10-0-0-{id}", "port": 9095} for id in IDS],
        "idle_seconds": 660,
    }


@pytest.mark.parametrize("found", [contract(), BY_PORT], ids=["names", "ports"])
@pytest.mark.parametrize(
    "software", [pytest.param(it, marks=pytest.mark.requires(it)) for it in ("haproxy", "nginx")]
)
def test_the_software_accepts_its_file(software: str, found: Contract, tmp_path: Path) -> None:
    # names that resolve here, as both look names up when they read it
    text = render(routes(found, OUT), Software(software), "t").replace("ip-10-0-0-", "127.0.0.")
    file = tmp_path / "gateway"
    words = ["-c", "-f", str(file)]
    if software == Software.NGINX:
        text = f"load_module {STREAM};\npid {tmp_path}/pid;\nevents {{}}\n{text}"
        words = ["-t", "-e", "stderr", "-c", str(file)]
    file.write_text(text)
    done = subprocess.run([software, *words], capture_output=True, text=True)
    assert done.returncode == 0 and "warn" not in done.stderr.lower(), done.stderr
