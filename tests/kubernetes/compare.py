"""Compares the model's prediction for a manifest with the observations of its pods, by hop.

Twice: with every replica as a place of its own, and with each workload's template as one place, for
which the model must be right about all of its replicas.
"""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from earshot.listeners.address import Address
from earshot.sources.kubernetes import Manifest, read_manifest
from earshot.topology.broker import ReachedListener
from earshot.topology.container import is_loopback
from earshot.topology.names import OUTSIDE, Unknown
from earshot.topology.pods import NODE, PodDeployment, other_pod
from earshot.topology.walk import walk, worst
from earshot.topology.ways import Answer, Stage, Trace
from earshot.yaml_document import read_yaml_documents
from tests.kubernetes.api import Object
from tests.kubernetes.generate import OTHER, Topology, replicas_of
from tests.kubernetes.judge import Running
from tests.kubernetes.kubelet import RunningPod
from tests.topologies.compare import Outcome, cause_of
from tests.topologies.engine import Tried

ROUNDS = 4
"""How often an address is tried: kube-proxy chooses one pod of a Service at random."""
Pair = tuple[str, int]


@dataclass(frozen=True)
class Spot:
    """One process: a container of a pod, or a machine outside (no pod)."""

    pod: RunningPod | None
    container: str


@dataclass(frozen=True)
class View:
    """One reading of the file: the processes at each of its places, and what each is called."""

    model: PodDeployment
    places: Mapping[str, list[Spot]]
    services: Mapping[str, str]
    """The model's name of a process by how it greets."""


def modelled(topology: Topology) -> Manifest:
    return read_manifest(read_yaml_documents(topology.text, "manifest.yaml", unique=False))


def compared(running: Running, nodes: tuple[str, ...]) -> Outcome:
    """Every address that is in the file, from every place; then every walk of a client."""
    outcome = Outcome()
    manifest = modelled(running.topology)
    views = [
        _view(running, manifest.by_replica().deployment(), by_replica=True),
        _view(running, manifest.deployment(), by_replica=False),
    ]
    addresses = sorted({it for view in views for it in addresses_in(view.model)})
    spots = [Spot(pod, it["name"]) for pod in running.pods.values() for it in _containers(pod)]
    spots.append(Spot(None, "HOST"))

    def asked(spot: Spot) -> dict[Pair, Tried]:
        return _ask(running, spot, addresses, nodes)

    with ThreadPoolExecutor(len(spots)) as pool:
        found = list(pool.map(asked, spots))
    seen = {_key(spot): answers for spot, answers in zip(spots, found, strict=True)}
    for view in views:
        for place, listed in view.places.items():
            for spot in listed:
                for address in addresses:
                    if address[0] == NODE and place != OUTSIDE:
                        continue
                    _compare(running, view, place, address, seen[_key(spot)][address], outcome)
        _compare_walks(view, seen, outcome)
    return outcome


def addresses_in(model: PodDeployment) -> Iterator[Pair]:
    """What clients begin with, what brokers advertise, and each Service at each of its ports."""
    for client in model.bootstraps:
        for it in client.addresses:
            yield it.host, it.port
    for broker in model.brokers:
        for endpoint in broker.endpoints or ():
            if endpoint.advertised is not None:
                yield endpoint.advertised.host, endpoint.advertised.port
            yield "localhost", endpoint.bind.port
    for service in model.services:
        for port in service.ports or ():
            yield f"{service.name}.{service.namespace}", port.port
            if isinstance(port.target, int):
                yield f"{service.name}.{service.namespace}.svc.cluster.local", port.target
            if port.node_port is not None:
                yield NODE, port.node_port


def _ask(
    running: Running, spot: Spot, addresses: list[Pair], nodes: tuple[str, ...]
) -> dict[Pair, Tried]:
    """What a process sees; of the placeholder for a node, what it sees of each node."""
    listed = [
        ((host, port), (it, port))
        for host, port in addresses
        for it in (nodes if host == NODE else (host,))
    ]
    place = running.outside if spot.pod is None else spot.pod.place
    real = [pair for _, pair in listed]
    errors: dict[Pair, str] = {}
    greetings: dict[Pair, dict[str, set[str]]] = {}
    for seen in (place.ask(spot.container, real) for _ in range(ROUNDS)):
        for (key, _), tried in zip(listed, seen, strict=True):
            # a name that has no address never has one; a resolver on a busy machine may be late
            errors[key] = errors.get(key, tried.error) and tried.error
            for address, greeting in tried.greetings.items():
                known = greetings.setdefault(key, {}).setdefault(address, set())
                known |= {greeting} if greeting else set()
    return {
        key: Tried(error, {it: "|".join(sorted(s)) for it, s in greetings.get(key, {}).items()})
        for key, error in errors.items()
    }


def _view(running: Running, model: PodDeployment, *, by_replica: bool) -> View:
    places: dict[str, list[Spot]] = {OUTSIDE: [Spot(None, "HOST")]}
    services: dict[str, str] = {}
    for resource in running.topology.workloads:
        for index, pod in enumerate(running.of_workload(resource)):
            called = _called(resource, index, pod) if by_replica else resource["metadata"]["name"]
            for container in _containers(pod):
                name = f"{called}/{container['name']}"
                places.setdefault(name, []).append(Spot(pod, container["name"]))
                services[f"{pod.label}/{container['name']}"] = name
    for namespace in running.topology.namespaces:
        if (name := other_pod(namespace)) in model.pods:
            places[name] = [Spot(running.pods[namespace, OTHER], "it")]
    return View(model, places, services)


def _called(resource: Object, index: int, pod: RunningPod) -> str:
    """What the model calls a replica."""
    if resource["kind"] in ("Pod", "DaemonSet") or replicas_of(resource) == 1:
        return str(resource["metadata"]["name"])
    if resource["kind"] == "StatefulSet":
        return pod.name
    return f"{resource['metadata']['name']}[{index}]"


def _containers(pod: RunningPod) -> list[Object]:
    found: list[Object] = pod.resource["spec"]["containers"]
    return found


def _key(spot: Spot) -> tuple[str, str]:
    return ("" if spot.pod is None else spot.pod.label, spot.container)


def _greeted(view: View, tried: Tried) -> set[str]:
    """Who greeted, as `SERVICE LISTENER` in the words of the model."""
    found = set()
    for text in filter(None, tried.greetings.values()):
        for one in text.split("|"):
            process, listener = one.split()
            found.add(f"{view.services.get(process, process)} {listener}")
    return found


def _compare(
    running: Running, view: View, place: str, address: Pair, tried: Tried, outcome: Outcome
) -> None:
    """Compare one trace: what the host means, and who answers."""
    trace = view.model.trace(place, Address(*address))
    said = f"model {[f'{it.stage} {it.answer}: {it.because}' for it in trace.hops]}"
    saw = f"saw {tried.error or dict(tried.greetings)}"
    if (wrong := _resolved(running, view, place, trace, tried)) is True:
        outcome.differences.append(f"resolve: {place} -> {trace.address}: {said}; {saw}")
    elif wrong is False:
        outcome.agreed[Stage.RESOLVE] += 1
    greeted = _greeted(view, tried)
    arrivals = {
        f"{it.broker.service} {it.endpoint.name}"
        for it in trace.ends
        if isinstance(it, ReachedListener)
    }
    answer = worst(trace.hops)
    if answer is Answer.UNKNOWN:
        outcome.unknown[_generic(cause_of(trace.hops))] += 1
    elif (answer is Answer.NO and greeted) or (
        answer is Answer.YES and not _fits(trace, arrivals, greeted, tried)
    ):
        outcome.differences.append(f"end: {place} -> {trace.address}: {said}; {saw}")
    else:
        outcome.agreed["end"] += 1


def _fits(trace: Trace, arrivals: set[str], greeted: set[str], tried: Tried) -> bool:
    """A broker greets, none that is not meant; one whose end is not known may be another."""
    is_open = any(isinstance(it, Unknown) for it in trace.ends)
    at_all = trace.address.host != NODE or all(tried.greetings.values())
    return bool(greeted) and at_all and (is_open or greeted <= arrivals)


def _resolved(running: Running, view: View, place: str, trace: Trace, tried: Tried) -> bool | None:
    """True if the name does not resolve as the model predicts; None if unknown."""
    first, host = worst(it for it in trace.hops if it.stage is Stage.RESOLVE), trace.address.host
    if first is Answer.UNKNOWN or host == NODE:
        return None
    if first is Answer.NO:
        return bool(not tried.error and not is_loopback(host))
    if tried.error:  # a headless Service without pods has no address
        return None if worst(trace.hops) is Answer.UNKNOWN else True
    if place == OUTSIDE:
        return None
    found = set(tried.greetings)
    if is_loopback(view.model.containers[place].extra_hosts.get(host, host)):
        return not all(it.startswith("127.") or it == "::1" for it in found)
    services = view.model.services_of(place, host)
    if any(it.is_external_name for it in services):
        return None
    expected: set[str] = set()
    if services and services == view.model.services_named(host, view.model.pods[place].namespace):
        specs = [running.services[it.namespace, it.name]["spec"] for it in services]
        expected = {it["clusterIP"] for it in specs} - {"None"}
    addresses = {it.address for it in running.pods.values()}
    return found != expected if expected else not found <= addresses


def _compare_walks(
    view: View, seen: Mapping[tuple[str, str], Mapping[Pair, Tried]], outcome: Outcome
) -> None:
    for client in view.model.bootstraps:
        for spot in view.places.get(client.service, ()):
            for item in walk(view.model, client).connections:
                for sent in item.sent:
                    if sent.trace is None:
                        continue
                    address = sent.trace.address
                    tried = seen[_key(spot)][address.host, address.port]
                    greeted = {it.split()[0] for it in _greeted(view, tried)}
                    arrives = greeted == {sent.broker.service}
                    # a place greets, and speaks no security protocol
                    expected = worst(it for it in sent.hops if it.stage is not Stage.PROTOCOL)
                    if expected is Answer.UNKNOWN:
                        outcome.unknown["walk: " + _generic(cause_of(sent.hops))] += 1
                    elif (expected is Answer.YES) != arrives:
                        outcome.differences.append(
                            f"walk of {client.service} by {item.trace.address} to "
                            f"{sent.broker.service}: model {expected}, "
                            f"{[str(it) for it in sent.hops]}; greeted {greeted}"
                        )
                    else:
                        outcome.agreed["walk"] += 1


def _generic(fact: str) -> str:
    """A fact without the names of this topology."""
    return re.sub(
        r"\b(?:kafka|queue|app|nothing)[\w.\[\]-]*", "NAME", re.sub(r"\S*\d\S*", "N", fact)
    )
