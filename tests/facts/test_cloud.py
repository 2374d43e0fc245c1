"""What surrounds instances survives the way through the engine."""

import json

from earshot.facts.cloud import Cloud, Instance
from earshot.facts.security_groups import Clients, Ingress, Members, read_range
from earshot.listeners.terms import Scope, UnknownHost
from earshot.names.evidence import Declaration

VPC = read_range("10.0.0.0/16")
CLOUD = Cloud(
    instances={1: Instance(ingress=(Ingress(9092, 9092, Members("brokers"), "between brokers"),
                                    Ingress(19092, 19092, VPC, "inside"),
                                    Ingress(9092, 9092, read_range("2001:db8::/32"), "beyond")),
                           elastic=("198.51.100.1", UnknownHost(what="another Elastic IP"))),
               10_001: Instance(ingress=(), elastic=())},
    clients=Clients((VPC, Members("sg-0123abcd"), Members("app")), (read_range("0.0.0.0/0"),)),
    declared={("INTERNAL", Scope.INTERNAL, "a.example"): Declaration("a record", ("10.0.0.4",)),
              ("INTERNAL", Scope.CONTROLLER, "a.example"): Declaration("another")},
)  # fmt: skip


def through_the_engine(value: object) -> object:
    """As JSON, and with every number as a float."""
    return json.loads(json.dumps(value), parse_int=float)


def test_it_reads_back_alike() -> None:
    document = through_the_engine(CLOUD.document())
    assert isinstance(document, dict)
    assert Cloud.read(document) == CLOUD


def test_missing_values_travel_as_nothing() -> None:
    cloud = Cloud({1: Instance()}, Clients((), ()), {})
    assert cloud.document() == {
        "instances": {"1": {"ingress": [], "elastic": []}},
        "clients": {"internal": [], "external": []},
        "declared": [],
    }
    assert Cloud.read(cloud.document()).instances == {1: Instance(ingress=(), elastic=())}
