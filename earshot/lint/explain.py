"""Prints the walk of a client in a Compose file or Kubernetes manifest, hop by hop."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from earshot.errors import EarshotError
from earshot.lint.compose_files import services_in
from earshot.lint.files import overlays_of
from earshot.lint.model import FileOptions
from earshot.sources.deployment import deployment
from earshot.sources.files import text_of
from earshot.sources.kubernetes import read_manifest, resources_beside
from earshot.sources.workloads import resources
from earshot.topology.broker import Bootstrap
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, OUTSIDE
from earshot.topology.pods import PodDeployment
from earshot.topology.walk import Walk, clients_by_published_ports, walk
from earshot.topology.ways import Answer, Hop
from earshot.yaml_reading.document import read_yaml_documents

MACHINE = "host"
"""The name of the machine as a client, which connects to published ports."""
_CODES = {Answer.YES: 0, Answer.NO: 1, Answer.UNKNOWN: 3}


def explain_client(
    files: Sequence[Path],
    client: str,
    options: FileOptions,
    variables: Mapping[str, str] = os.environ,
) -> tuple[str, int]:
    """The walks of ``client`` as text, and the exit code (0 yes, 1 no, 3 unknown).

    ``files`` are a manifest, or Compose files of which each is merged into those before it. Raises
    EarshotError if a file cannot be read, or has no such client.
    """
    model = _in_manifest(files, options) or _in_compose(files, options, variables)
    walks = [walk(model, bootstrap) for bootstrap in _clients(model, client)]
    if not walks:
        raise _no_walk(model, client)
    code = max(
        (_CODES[client_walk.answer] for client_walk in walks), key=lambda code: (code == 1, code)
    )
    return "\n\n".join("\n".join(_lines(client_walk)) for client_walk in walks) + "\n", code


def _in_manifest(files: Sequence[Path], options: FileOptions) -> Deployment | None:
    text = text_of(files[0])
    if len(files) > 1 or "apiVersion" not in text:
        return None
    documents = read_yaml_documents(text, str(files[0]), unique=False)
    if not any(resources(documents)):
        return None
    manifest = read_manifest(documents, resources_beside(files[0]))
    return manifest.with_release(options.release).deployment()


def _in_compose(
    files: Sequence[Path], options: FileOptions, variables: Mapping[str, str]
) -> Deployment:
    base, *given_overlays = files
    overlays = given_overlays or list(overlays_of(base))
    texts = [(text_of(file), str(file)) for file in overlays]
    return deployment(services_in(text_of(base), base, variables, options, texts))


def _clients(model: Deployment, client: str) -> list[Bootstrap]:
    named_clients = [bootstrap for bootstrap in model.bootstraps if bootstrap.service == client]
    if named_clients or client != MACHINE or client in model.containers:
        return named_clients
    if isinstance(model, PodDeployment):
        return list(model.node_port_clients())
    return list(clients_by_published_ports(model))


def _no_walk(model: Deployment, client: str) -> EarshotError:
    """The error for ``client`` without a walk, with the clients that have one."""
    services = (bootstrap.service for bootstrap in model.bootstraps if bootstrap.service != OUTSIDE)
    names = [*dict.fromkeys(services), *([MACHINE] if _clients(model, MACHINE) else [])]
    observed = "no client in the file has this name, or its addresses are unknown"
    if client == MACHINE and client not in model.containers:
        unread_brokers = [broker.service for broker in model.brokers if broker.endpoints is None]
        observed = "no known port of the machine leads to a listener"
        if unread_brokers:
            observed += f"; the listeners of {', '.join(unread_brokers)} are unknown"
    allowed = ", ".join(names) or "a file with clients, or with a published port of a broker"
    return EarshotError(f"--explain {client}", observed=observed, allowed=allowed)


def _lines(client_walk: Walk) -> Iterator[str]:
    client = client_walk.client
    place = "the machine" if client.service == HOST else client.service
    yield f"{place}, {client.setting}: {client_walk.answer}"
    for connection in client_walk.connections:
        yield f"  {connection.trace.address}: {connection.answer}"
        yield from _hops(connection.hops, "    ")
        for advertised in connection.sent:
            address = "not known" if advertised.trace is None else str(advertised.trace.address)
            if advertised.trace is not None and advertised.broker.container.advertises_address:
                address = f"its container's address, port {advertised.trace.address.port}"
            broker = f"{advertised.broker.service} at {address}"
            yield f"    {advertised.listener} advertises {broker}: {advertised.answer}"
            yield from _hops(advertised.hops, "      ")


def _hops(hops: Sequence[Hop], indent: str) -> Iterator[str]:
    for hop in hops:
        yield f"{indent}{hop.kind:<9}{hop.answer:<8}{hop.because}"
