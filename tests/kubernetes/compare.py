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
from earshot.topology.ways import Answer, HopKind, Trace
from earshot.yaml_reading.document import read_yaml_documents
from tests.kubernetes.api import Object
from tests.kubernetes.generate import OTHER, Topology, replicas_of
from tests.kubernetes.judge import Running
from tests.kubernetes.kubelet import RunningPod
from tests.topologies.compare import Outcome, cause_of
from tests.topologies.engine import ProbeResult

ROUNDS = 4
"""The number of attempts per address: kube-proxy chooses one pod of a Service at random."""
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


def model_of(topology: Topology) -> Manifest:
    return read_manifest(read_yaml_documents(topology.text, "manifest.yaml", unique=False))


def compare_with_model(running: Running, nodes: tuple[str, ...]) -> Outcome:
    """Every address that is in the file, from every place; then every walk of a client."""
    outcome = Outcome()
    manifest = model_of(running.topology)
    views = [
        _view(running, manifest.by_replica().deployment(), by_replica=True),
        _view(running, manifest.deployment(), by_replica=False),
    ]
    addresses = sorted({address for view in views for address in addresses_in(view.model)})
    spots = [
        Spot(pod, container["name"])
        for pod in running.pods.values()
        for container in _containers(pod)
    ]
    spots.append(Spot(None, "HOST"))

    def asked(spot: Spot) -> dict[Pair, ProbeResult]:
        return _ask(running, spot, addresses, nodes)

    with ThreadPoolExecutor(len(spots)) as pool:
        all_answers = list(pool.map(asked, spots))
    answers_by_spot = {
        _key(spot): answers for spot, answers in zip(spots, all_answers, strict=True)
    }
    for view in views:
        for place, spots_of_place in view.places.items():
            for spot in spots_of_place:
                for address in addresses:
                    if address[0] == NODE and place != OUTSIDE:
                        continue
                    _compare(
                        running, view, place, address, answers_by_spot[_key(spot)][address], outcome
                    )
        _compare_walks(view, answers_by_spot, outcome)
    return outcome


def addresses_in(model: PodDeployment) -> Iterator[Pair]:
    """Bootstrap addresses, advertised addresses, and each Service at each of its ports."""
    for client in model.bootstraps:
        for address in client.addresses:
            yield address.host, address.port
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
) -> dict[Pair, ProbeResult]:
    """The probe results of a process. For the placeholder of a node they are those of each node."""
    keyed_pairs = [
        ((host, port), (node_address, port))
        for host, port in addresses
        for node_address in (nodes if host == NODE else (host,))
    ]
    place = running.outside if spot.pod is None else spot.pod.place
    real_pairs = [pair for _, pair in keyed_pairs]
    errors: dict[Pair, str] = {}
    greetings: dict[Pair, dict[str, set[str]]] = {}
    for probes in (place.ask(spot.container, real_pairs) for _ in range(ROUNDS)):
        for (key, _), probe in zip(keyed_pairs, probes, strict=True):
            # a name that has no address never has one; a resolver on a busy machine may be late
            errors[key] = errors.get(key, probe.error) and probe.error
            for address, greeting in probe.greetings.items():
                known_greetings = greetings.setdefault(key, {}).setdefault(address, set())
                known_greetings |= {greeting} if greeting else set()
    return {
        key: ProbeResult(
            error,
            {
                node_address: "|".join(sorted(names))
                for node_address, names in greetings.get(key, {}).items()
            },
        )
        for key, error in errors.items()
    }


def _view(running: Running, model: PodDeployment, *, by_replica: bool) -> View:
    places: dict[str, list[Spot]] = {OUTSIDE: [Spot(None, "HOST")]}
    services: dict[str, str] = {}
    for resource in running.topology.workloads:
        for index, pod in enumerate(running.of_workload(resource)):
            called = (
                _replica_name(resource, index, pod) if by_replica else resource["metadata"]["name"]
            )
            for container in _containers(pod):
                name = f"{called}/{container['name']}"
                places.setdefault(name, []).append(Spot(pod, container["name"]))
                services[f"{pod.label}/{container['name']}"] = name
    for namespace in running.topology.namespaces:
        if (name := other_pod(namespace)) in model.pods:
            places[name] = [Spot(running.pods[namespace, OTHER], "it")]
    return View(model, places, services)


def _replica_name(resource: Object, index: int, pod: RunningPod) -> str:
    """The model's name of a replica."""
    if resource["kind"] in ("Pod", "DaemonSet") or replicas_of(resource) == 1:
        return str(resource["metadata"]["name"])
    if resource["kind"] == "StatefulSet":
        return pod.name
    return f"{resource['metadata']['name']}[{index}]"


def _containers(pod: RunningPod) -> list[Object]:
    containers: list[Object] = pod.resource["spec"]["containers"]
    return containers


def _key(spot: Spot) -> tuple[str, str]:
    return ("" if spot.pod is None else spot.pod.label, spot.container)


def _greeted_listeners(view: View, probe: ProbeResult) -> set[str]:
    """The listeners that greeted, as `SERVICE LISTENER` with the names of the model."""
    greeted_names = set()
    for text in filter(None, probe.greetings.values()):
        for greeting in text.split("|"):
            process, listener = greeting.split()
            greeted_names.add(f"{view.services.get(process, process)} {listener}")
    return greeted_names


def _compare(
    running: Running, view: View, place: str, address: Pair, probe: ProbeResult, outcome: Outcome
) -> None:
    """Compares one trace: the resolved addresses, and the listeners that answer."""
    trace = view.model.trace(place, Address(*address))
    model_text = f"model {[f'{hop.kind} {hop.answer}: {hop.because}' for hop in trace.hops]}"
    observed_text = f"saw {probe.error or dict(probe.greetings)}"
    if (wrong := _resolved(running, view, place, trace, probe)) is True:
        outcome.differences.append(
            f"resolve: {place} -> {trace.address}: {model_text}; {observed_text}"
        )
    elif wrong is False:
        outcome.agreed[HopKind.RESOLVE] += 1
    greeted = _greeted_listeners(view, probe)
    arrivals = {
        f"{end.broker.service} {end.endpoint.name}"
        for end in trace.ends
        if isinstance(end, ReachedListener)
    }
    answer = worst(trace.hops)
    if answer is Answer.UNKNOWN:
        outcome.unknown[_generic(cause_of(trace.hops))] += 1
    elif (answer is Answer.NO and greeted) or (
        answer is Answer.YES and not _fits(trace, arrivals, greeted, probe)
    ):
        outcome.differences.append(
            f"end: {place} -> {trace.address}: {model_text}; {observed_text}"
        )
    else:
        outcome.agreed["end"] += 1


def _fits(trace: Trace, arrivals: set[str], greeted: set[str], probe: ProbeResult) -> bool:
    """A broker greets, none that is not meant; one whose end is not known may be another."""
    is_open = any(isinstance(end, Unknown) for end in trace.ends)
    greeted_everywhere = trace.address.host != NODE or all(probe.greetings.values())
    return bool(greeted) and greeted_everywhere and (is_open or greeted <= arrivals)


def _resolved(
    running: Running, view: View, place: str, trace: Trace, probe: ProbeResult
) -> bool | None:
    """True if the name does not resolve as the model predicts; None if unknown."""
    resolution, host = (
        worst(hop for hop in trace.hops if hop.kind is HopKind.RESOLVE),
        trace.address.host,
    )
    if resolution is Answer.UNKNOWN or host == NODE:
        return None
    if resolution is Answer.NO:
        return bool(not probe.error and not is_loopback(host))
    if probe.error:  # a headless Service without pods has no address
        return None if worst(trace.hops) is Answer.UNKNOWN else True
    if place == OUTSIDE:
        return None
    resolved_addresses = set(probe.greetings)
    if is_loopback(view.model.containers[place].extra_hosts.get(host, host)):
        return not all(
            address.startswith("127.") or address == "::1" for address in resolved_addresses
        )
    services = view.model.services_of(place, host)
    if any(service.external_name for service in services):
        return None
    expected: set[str] = set()
    if services and services == view.model.services_named(host, view.model.pods[place].namespace):
        specs = [running.services[service.namespace, service.name]["spec"] for service in services]
        expected = {spec["clusterIP"] for spec in specs} - {"None"}
    addresses = {pod.address for pod in running.pods.values()}
    return resolved_addresses != expected if expected else not resolved_addresses <= addresses


def _compare_walks(
    view: View,
    answers_by_spot: Mapping[tuple[str, str], Mapping[Pair, ProbeResult]],
    outcome: Outcome,
) -> None:
    for client in view.model.bootstraps:
        for spot in view.places.get(client.service, ()):
            for connection in walk(view.model, client).connections:
                for second_connection in connection.sent:
                    if second_connection.trace is None:
                        continue
                    address = second_connection.trace.address
                    probe = answers_by_spot[_key(spot)][address.host, address.port]
                    greeted = {greeting.split()[0] for greeting in _greeted_listeners(view, probe)}
                    arrives = greeted == {second_connection.broker.service}
                    # a place greets, and speaks no security protocol
                    expected = worst(
                        hop for hop in second_connection.hops if hop.kind is not HopKind.PROTOCOL
                    )
                    if expected is Answer.UNKNOWN:
                        outcome.unknown["walk: " + _generic(cause_of(second_connection.hops))] += 1
                    elif (expected is Answer.YES) != arrives:
                        outcome.differences.append(
                            f"walk of {client.service} by {connection.trace.address} to "
                            f"{second_connection.broker.service}: model {expected}, "
                            f"{[str(hop) for hop in second_connection.hops]}; greeted {greeted}"
                        )
                    else:
                        outcome.agreed["walk"] += 1


def _generic(fact: str) -> str:
    """A fact without the names of this topology."""
    return re.sub(
        r"\b(?:kafka|queue|app|nothing)[\w.\[\]-]*", "NAME", re.sub(r"\S*\d\S*", "N", fact)
    )
