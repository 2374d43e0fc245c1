"""The walk of one client of a Compose file or a Kubernetes manifest, hop by hop."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from earshot.errors import EarshotError
from earshot.lint.check import services_in
from earshot.lint.files import laid_over
from earshot.lint.model import FileOptions
from earshot.sources.deployment import deployment
from earshot.sources.files import text_of
from earshot.sources.kubernetes import read_manifest, resources
from earshot.topology.broker import Bootstrap
from earshot.topology.model import Deployment
from earshot.topology.names import HOST, OUTSIDE
from earshot.topology.pods import PodDeployment
from earshot.topology.walk import Walk, clients_by_published_ports, walk
from earshot.topology.ways import Answer, Hop
from earshot.yaml_document import read_yaml_documents

MACHINE = "host"
"""What the user calls the machine, whose clients come in by published ports."""
_CODES = {Answer.YES: 0, Answer.NO: 1, Answer.UNKNOWN: 3}


def explained(
    files: Sequence[Path],
    client: str,
    options: FileOptions,
    variables: Mapping[str, str] = os.environ,
) -> tuple[str, int]:
    """The walks of ``client`` in a manifest or Compose ``files`` laid over each other, and the
    exit code.

    Raises EarshotError where a file cannot be read, or has no such client.
    """
    whole = _in_manifest(files, options) or _in_compose(files, options, variables)
    walks = [walk(whole, item) for item in _clients(whole, client)]
    if not walks:
        raise _no_walk(whole, client)
    code = max((_CODES[client_walk.answer] for client_walk in walks), key=lambda it: (it == 1, it))
    return "\n\n".join("\n".join(_lines(client_walk)) for client_walk in walks) + "\n", code


def _in_manifest(files: Sequence[Path], options: FileOptions) -> Deployment | None:
    text = text_of(files[0])
    if len(files) > 1 or "apiVersion" not in text:
        return None
    documents = read_yaml_documents(text, str(files[0]), unique=False)
    if not any(resources(documents)):
        return None
    return read_manifest(documents).with_release(options.release).deployment()


def _in_compose(
    files: Sequence[Path], options: FileOptions, variables: Mapping[str, str]
) -> Deployment:
    first, *others = files
    over = others or list(laid_over(first))
    texts = [(text_of(file), str(file)) for file in over]
    return deployment(services_in(text_of(first), first, variables, options, texts))


def _clients(whole: Deployment, client: str) -> list[Bootstrap]:
    named = [bootstrap for bootstrap in whole.bootstraps if bootstrap.service == client]
    if named or client != MACHINE or client in whole.containers:
        return named
    if isinstance(whole, PodDeployment):
        return list(whole.node_port_clients())
    return list(clients_by_published_ports(whole))


def _no_walk(whole: Deployment, client: str) -> EarshotError:
    """Why no walk of ``client`` can be shown, and the clients with walks."""
    named = (item.service for item in whole.bootstraps if item.service != OUTSIDE)
    names = [*dict.fromkeys(named), *([MACHINE] if _clients(whole, MACHINE) else [])]
    observed = "no client in the file has this name, or its addresses are not known"
    if client == MACHINE and client not in whole.containers:
        unread = [broker.service for broker in whole.brokers if broker.endpoints is None]
        observed = "no known port of the machine leads to a listener"
        observed += f"; the listeners of {', '.join(unread)} are not known" if unread else ""
    allowed = ", ".join(names) or "a file with clients, or with a published port of a broker"
    return EarshotError(f"--explain {client}", observed=observed, allowed=allowed)


def _lines(client_walk: Walk) -> Iterator[str]:
    client = client_walk.client
    place = "the machine" if client.service == HOST else client.service
    yield f"{place}, {client.setting}: {client_walk.answer}"
    for entrance in client_walk.connections:
        yield f"  {entrance.trace.address}: {entrance.answer}"
        yield from _hops(entrance.hops, "    ")
        for sent in entrance.sent:
            to = "not known" if sent.trace is None else str(sent.trace.address)
            if sent.trace is not None and sent.broker.container.advertises_address:
                to = f"its container's address, port {sent.trace.address.port}"
            yield f"    {sent.listener} advertises {sent.broker.service} at {to}: {sent.answer}"
            yield from _hops(sent.hops, "      ")


def _hops(hops: Sequence[Hop], indent: str) -> Iterator[str]:
    for hop in hops:
        yield f"{indent}{hop.stage:<9}{hop.answer:<8}{hop.because}"
