"""Doubles of clusters and of their answers, written as texts."""

from earshot.listeners.address import Address
from earshot.listeners.terms import Protocol, Scope
from earshot.validation.contract import (
    AdvertisedAddress,
    Contract,
    ContractBroker,
    ContractListener,
)
from earshot.validation.metadata import MetadataAnswer


def address(text: str) -> Address:
    """`host:port`, unchecked, because Kafka advertises addresses that earshot would refuse."""
    host, _, port = text.rpartition(":")
    return Address(host, int(port))


def contract(**listeners: list[str]) -> Contract:
    """A contract from `NAME=[advertised of broker 1, of broker 2, …]`; an empty text is none."""
    count = max(map(len, listeners.values()))

    def advertised(index: int) -> dict[str, AdvertisedAddress]:
        present_items = {name: items[index] for name, items in listeners.items() if items[index]}
        split = {name: text.rpartition(":") for name, text in present_items.items()}
        return {
            name: AdvertisedAddress(host=host, port=int(port))
            for name, (host, _, port) in split.items()
        }

    return Contract(
        cluster="dev",
        placement="local",
        kafka_version="4.1.1",
        inter_broker=next(iter(listeners)),
        listeners=tuple(
            ContractListener(
                name=name,
                protocol=Protocol.PLAINTEXT,
                scopes=(Scope.HOST,),
                bootstrap=",".join(filter(None, items)),
            )
            for name, items in listeners.items()
        ),
        brokers=tuple(ContractBroker(id=i + 1, advertised=advertised(i)) for i in range(count)),
    )


def answer(endpoint: str, *brokers: str, cluster: str = "C") -> MetadataAnswer:
    """``endpoint``'s answer: the address of broker 1, of broker 2, …; an empty text is none."""
    addresses = {id: address(text) for id, text in enumerate(brokers, 1) if text}
    return MetadataAnswer(address(endpoint), cluster, addresses, 0.01)
