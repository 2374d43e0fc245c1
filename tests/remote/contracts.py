"""A contract of brokers in containers."""

from earshot.listeners.terms import Protocol, Scope
from earshot.validation.contract import Advertised, Contract, ContractBroker, ContractListener

LISTENERS = {Scope.INTERNAL: "BOB", Scope.HOST: "FRED", Scope.EXTERNAL: "ALICE"}


def docker_contract(*scopes: Scope) -> Contract:
    """One broker with a listener for each of ``scopes``; by default for all three."""
    wanted = scopes or tuple(LISTENERS)
    return Contract(
        cluster="dev",
        placement="docker",
        kafka_version="4.1.1",
        inter_broker="BOB",
        listeners=tuple(
            ContractListener(
                name=LISTENERS[scope],
                protocol=Protocol.PLAINTEXT,
                scopes=(scope,),
                bootstrap=f"{scope}.example:9092",
            )
            for scope in wanted
        ),
        brokers=(
            ContractBroker(
                id=0,
                advertised={
                    LISTENERS[scope]: Advertised(host=f"{scope}.example", port=9092)
                    for scope in wanted
                },
            ),
        ),
    )
