"""A contract of brokers in containers."""

from earshot.listeners.terms import Protocol, Scope
from earshot.validation.contract import (
    AdvertisedAddress,
    Contract,
    ContractBroker,
    ContractListener,
)

LISTENERS = {Scope.INTERNAL: "BOB", Scope.HOST: "FRED", Scope.EXTERNAL: "ALICE"}


def docker_contract(*scopes: Scope) -> Contract:
    """One broker with a listener for each of ``scopes``; by default for all three."""
    hosts = {scope: f"{scope}.example" for scope in scopes or LISTENERS}
    listeners = [
        ContractListener(
            name=LISTENERS[scope],
            protocol=Protocol.PLAINTEXT,
            scopes=(scope,),
            bootstrap=f"{host}:9092",
        )
        for scope, host in hosts.items()
    ]
    advertised = {
        LISTENERS[scope]: AdvertisedAddress(host=host, port=9092) for scope, host in hosts.items()
    }
    return Contract(
        cluster="dev",
        placement="docker",
        kafka_version="4.1.1",
        inter_broker="BOB",
        listeners=tuple(listeners),
        brokers=(ContractBroker(id=0, advertised=advertised),),
    )
