"""KL015: the clients of a file reach its brokers, and what those advertise works for them.

A client begins with one address; the broker answers with what it advertises on the listener that
the client came in on, and everything after that goes there.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence

from earshot.facts.cluster import ClusterFacts
from earshot.facts.deployment import Arrival, Bootstrap, Broker, Deployment, End, Way
from earshot.listeners.address import Address
from earshot.listeners.listed import shortened
from earshot.rules import kl015_protocols
from earshot.rules.registry import Finding, Rule, Severity

_REASONS = {
    End.SELF: "is its own container, where no broker listens",
    End.NOWHERE: "has a name that nothing on its networks has",
    End.REFUSED: "is where nobody listens",
}
"""Why an address is none that a client can begin with."""


def check(facts: ClusterFacts) -> Iterator[Finding]:
    """The first step of every client, then where it is sent; the same cause once."""
    deployment = facts.deployment
    if deployment is None:
        return
    sent: dict[tuple[str, str, str], list[str]] = {}
    answers: dict[Hashable, Sequence[tuple[Broker, str]]] = {}
    for item in deployment.bootstraps:
        ways = [(address, deployment.way(item.service, address)) for address in item.addresses]
        leads_nowhere = all(isinstance(way, End) and way in _REASONS for _, way in ways)
        if deployment.brokers and leads_nowhere:
            yield _no_way(deployment, item, ways)
        for _, way in ways:
            if isinstance(way, Arrival) and not way.endpoint.is_controller:
                key = _alike(deployment, item.service, way)
                if key not in answers:
                    answers[key] = tuple(_answers(deployment, item.service, way))
                for broker, problem in answers[key]:
                    place = (broker.service, way.endpoint.name, problem)
                    sent.setdefault(place, []).append(item.service)
    yield from kl015_protocols.check(deployment, RULE)
    for (service, listener, problem), clients in sent.items():
        endpoint = deployment.by_service[service].named(listener)
        advertised = (endpoint.advertised,) if endpoint and endpoint.advertised else ()
        named = list(dict.fromkeys(clients))
        verb = "bootstrap to {} and are" if len(named) > 1 else "bootstraps to {} and is"
        yield RULE.finding(
            f"{shortened(named)} {verb.format(listener)} sent on: {problem}",
            "an address that works where these clients are",
            listener=listener,
            container=service,
            severity=_severity(deployment, advertised),
            remedy=f"advertise {listener} under the name that these containers have for {service}, "
            "and give clients elsewhere a listener of their own"
            if endpoint
            else f"give {service} the listener {listener} as well",
            inputs=("advertised.listeners",),
        )


def _alike(deployment: Deployment, place: str, arrival: Arrival) -> Hashable:
    """The same for clients that get the same answers: of many, one has to be followed."""
    container = deployment.containers.get(place)
    names = container.names | {place.lower()} if container else {place}
    itself = bool(names & deployment.advertised_hosts) or place in deployment.by_service
    outlook = place if itself else deployment.outlook(place)
    broker = arrival.broker
    return (outlook, broker.cluster, broker.container.profiles, arrival.endpoint.name)


def failure(way: Way, address: Address, place: str, wanted: Broker) -> str:
    """Why a client at ``place`` that is sent to ``address`` does not get to ``wanted``, or ""."""
    if isinstance(way, Arrival):
        same = way.broker.service == wanted.service
        return "" if same else f"{address} is {way.broker.service} and not {wanted.service}"
    if way is End.SELF and place != wanted.service:
        return f"{address} is the client's own container, where no broker listens"
    if way is End.NOWHERE:
        return f"nothing is called {address.host} there"
    if way in (End.REFUSED, End.SELF):
        return f"nobody listens at {address}"
    return ""


def _severity(deployment: Deployment, addresses: Iterable[Address]) -> Severity | None:
    """A name that nobody in the file has may be the machine's: then it works there."""
    may_work = any(deployment.may_be_machine(address) for address in addresses)
    return Severity.WARNING if may_work else None


def _no_way(deployment: Deployment, item: Bootstrap, ways: list[tuple[Address, Way]]) -> Finding:
    reached = "; ".join(
        f"{address} {_REASONS[way]}" for address, way in ways if isinstance(way, End)
    )
    offers = [
        f"{broker.service}:{endpoint.bind.port}"
        for broker in deployment.brokers
        for endpoint in broker.for_clients
    ]
    expected = f"one of {', '.join(offers)}" if offers else "a listener of a broker"
    remedy = "bootstrap to a listener whose advertised address works in this container"
    if apart := _on_other_networks(deployment, item.service, ways):
        net = apart.container.networks[0].name
        expected = f"a network that {item.service} and {apart.service} have in common"
        remedy = f"put {item.service} on the network {net} as well, where {apart.service} is"
    return RULE.finding(
        f"{item.setting}: {reached}",
        expected,
        container=item.service,
        severity=_severity(deployment, item.addresses),
        remedy=remedy,
        inputs=(item.setting,),
    )


def _on_other_networks(
    deployment: Deployment, place: str, ways: list[tuple[Address, Way]]
) -> Broker | None:
    """A broker that has the name that a client asks for, on networks that the client is not on."""
    client = deployment.containers.get(place)
    hosts = [address.host for address, way in ways if way is End.NOWHERE]
    for broker in deployment.brokers if client is not None and client.networks else ():
        if broker.container.networks and any(map(broker.container.answers_to, hosts)):
            return broker
    return None


def _answers(deployment: Deployment, place: str, arrival: Arrival) -> Iterator[tuple[Broker, str]]:
    """Each broker whose advertised address does not work for the client, with the reason."""
    for broker in deployment.members(arrival.broker):
        endpoint = broker.named(arrival.endpoint.name)
        if endpoint is None and broker.endpoints:
            yield broker, f"{broker.service} has no listener of that name, and is never found"
        if endpoint is None or endpoint.advertised is None:
            continue
        way = deployment.way(place, endpoint.advertised)
        if isinstance(way, Arrival) and way.broker is not broker:
            continue  # KL016 says whose address it is
        if problem := failure(way, endpoint.advertised, place, broker):
            yield broker, problem


RULE = Rule(
    id="KL015",
    title="Clients in the same file reach the brokers, and are sent where they can connect",
    reason="A client that bootstraps well is then sent to the advertised address, and hangs there.",
    remedy="advertise an address that works for these clients",
    source="https://kafka.apache.org/documentation/#brokerconfigs_advertised.listeners",
    check=check,
    kafka=">=0.11",
    needs="deployment",
    in_files=True,
)
