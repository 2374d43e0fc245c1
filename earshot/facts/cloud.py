"""What surrounds a cluster's instances on AWS, in a form that can be sent to another process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from earshot.facts.ingress_inputs import read_ingress, write_ingress
from earshot.facts.security_groups import Clients, Ingress, Members, read_range
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.evidence import Declaration, EvidenceKey


@dataclass(frozen=True)
class Instance:
    """One instance's inputs; None stands for what nobody has said."""

    ingress: tuple[Ingress, ...] | None = None
    """What all of its security groups together let in; a rule of all protocols opens every port,
    and a rule of another protocol than TCP is left out."""
    elastic: tuple[str | UnknownHost, ...] | None = None
    """Its Elastic IPs."""


@dataclass(frozen=True)
class Cloud:
    """Instances by node id, who may come in on them, and what the stack declares of names."""

    instances: Mapping[int, Instance]
    clients: Clients
    declared: Mapping[EvidenceKey, Declaration]

    def document(self) -> dict[str, Any]:
        """The same as plain data; `read` takes it back."""
        return {
            "instances": {
                str(id): {
                    "ingress": [write_ingress(rule) for rule in item.ingress or ()],
                    "elastic": [
                        address if isinstance(address, str) else address.written
                        for address in item.elastic or ()
                    ],
                }
                for id, item in self.instances.items()
            },
            "clients": {
                "internal": [str(item) for item in self.clients.internal],
                "external": [str(item) for item in self.clients.external],
            },
            "declared": [
                {
                    "listener": listener,
                    "scope": str(scope),
                    "host": host,
                    "why": item.why,
                    "addresses": list(item.addresses),
                }
                for (listener, scope, host), item in self.declared.items()
            ],
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Cloud:
        clients = document["clients"]
        return cls(
            instances={int(id): _instance(item) for id, item in document["instances"].items()},
            clients=Clients(
                internal=tuple(map(_client, clients["internal"])),
                external=tuple(map(read_range, clients["external"])),
            ),
            declared={
                (item["listener"], Scope(item["scope"]), item["host"]): Declaration(
                    item["why"], tuple(item["addresses"])
                )
                for item in document["declared"]
            },
        )


_GROUP = str(Members(""))


def _client(text: str) -> Any:
    # a group may be known by a name, which could be read as nothing else
    return Members(text.removeprefix(_GROUP)) if text.startswith(_GROUP) else read_range(text)


def _instance(document: Mapping[str, Any]) -> Instance:
    return Instance(
        ingress=tuple(rule for inputs in document["ingress"] for rule in read_ingress(inputs)),
        elastic=tuple(
            item if isinstance(item, str) else UnknownHost.read(item)
            for item in document["elastic"]
        ),
    )
