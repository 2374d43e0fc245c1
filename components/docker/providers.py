"""Dynamic providers of the `docker` placement: the cluster's ground, and its nodes' readiness.

Containers, volumes and networks themselves are the official provider's. These live in an
importable module so that Pulumi stores a reference and not byte code. Every number arrives as a
float here.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any, Final

from pulumi.dynamic import CheckFailure, CheckResult, CreateResult, DiffResult, UpdateResult

from components.docker import ground, labels
from components.docker.ground import Wanted, hosts_of
from components.docker.place import Engines, Place, incarnation, inspected
from components.docker.readiness import fits, majority_runs, mend, wait_for
from components.owner import OwnedProvider
from earshot.errors import EarshotError
from earshot.spec.docker import DockerHost

Props = dict[str, Any]

GRACE: Final = 60
"""Seconds that a broker has to hand over what it leads, while there is a quorum to hand it to."""
NO_QUORUM_GRACE: Final = 3
"""Without one it waits in vain for leave to go; its data is on disk anyway."""


class GroundProvider(OwnedProvider):
    """What must hold before any container is touched; also what makes this deployment known."""

    def check(self, olds: Props, news: Props) -> CheckResult:
        # as names that Pulumi makes up: once, then for good
        news["deployment"] = olds.get("deployment") or uuid.uuid4().hex[:12]
        try:
            found = _problems(olds, news)
        except EarshotError as error:
            found = [str(error)]
        text = "\n".join(f"- {problem}" for problem in found)
        return CheckResult(news, [CheckFailure("plan", f"\n{text}")] if found else [])

    def create(self, props: Props) -> CreateResult:
        return CreateResult(props["deployment"], props)

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        wanted = Wanted.from_props(news)
        staying = {node.id for node in wanted.plan.nodes}
        with Engines() as engines:
            for host in _hosts(olds, news):
                with _whatever_docker_says():
                    # the engine deletes last, after the validation, which must not see it any more
                    for found in engines.of(host).containers.list(filters=_own(news)):
                        if int(found.labels.get(labels.NODE, "-1")) not in staying:
                            found.stop(timeout=GRACE)
        return UpdateResult(news)

    def delete(self, _id: str, props: Props) -> None:
        """Everything that the state knew is gone; what an interrupted run has left goes now."""
        with Engines() as engines:
            for host in hosts_of(props):
                with _whatever_docker_says():
                    client = engines.of(host)
                    for found in client.containers.list(all=True, filters=_own(props)):
                        found.remove(force=True, v=True)
                    for network in client.networks.list(filters=_own(props)):
                        network.remove()


class ReadinessProvider(OwnedProvider):
    """One node after a change, or the whole cluster at the end of a run.

    It is updated when a container was replaced, and when one is found killed, disconnected or
    started anew since: then it is mended, waited for, and its incarnation is another.
    """

    def diff(self, _id: str, olds: Props, news: Props) -> DiffResult:
        inputs = (key for key in news if key != "incarnation")
        changed = any(olds.get(key) != news[key] for key in inputs)
        return DiffResult(changes=changed or (not news["whole"] and not _as_it_was(olds)))

    def create(self, props: Props) -> CreateResult:
        # a first start: all voters together, then one wait for the whole
        return CreateResult("ready", self._run(props, wait=props["whole"]))

    def update(self, _id: str, _olds: Props, news: Props) -> UpdateResult:
        return UpdateResult(self._run(news, wait=True))

    def delete(self, _id: str, props: Props) -> None:
        """The container is about to go: let it take leave of a cluster that is still there."""
        if props["whole"]:
            return
        ((place, id),) = _nodes(props)
        with Engines() as engines, _whatever_docker_says():
            grace = GRACE if majority_runs(engines, _places(props["voters"])) else NO_QUORUM_GRACE
            engines.of(place).api.stop(id, timeout=grace)

    def _run(self, props: Props, wait: bool) -> Props:
        nodes, whole = _nodes(props), bool(props["whole"])
        with _told(), Engines() as engines:
            found = [mend(engines, place, id) for place, id in nodes]
            if wait and (whole or majority_runs(engines, _places(props["voters"]))):
                tellers = _places(props["tellers"])
                wait_for(engines, nodes, tellers, whole, progress=print)
        return {**props, "incarnation": "" if whole else incarnation(found[0])}


def _problems(olds: Props, news: Props) -> list[str]:
    wanted, hosts = Wanted.from_props(news), _hosts(olds, news)
    with Engines() as engines:
        for host in wanted.hosts:
            engines.of(host)
        seen = ground.look(engines, _answering(engines, hosts, wanted))
        found = list(ground.problems(wanted, seen))
        return found + list(ground.removal_problems(engines, wanted, seen, hosts))


def _answering(
    engines: Engines, hosts: tuple[DockerHost, ...], wanted: Wanted
) -> Iterator[DockerHost]:
    """Those of the stack, and those that it is about to lose as far as they answer."""
    for host in hosts:
        if host in wanted.hosts:
            yield host
        else:
            with contextlib.suppress(EarshotError):
                engines.of(host)
                yield host


def _hosts(*props: Props) -> tuple[DockerHost, ...]:
    """The hosts of several inputs, each engine once, as the last one calls it."""
    found = {it.engine: it for inputs in props for it in hosts_of(inputs)}
    return tuple(found.values())


def _own(props: Props) -> dict[str, str]:
    return {"label": f"{labels.DEPLOYMENT}={props['deployment']}"}


def _nodes(props: Props) -> list[tuple[Place, str]]:
    return [(Place.from_props(node["place"]), node["container"]) for node in props["nodes"]]


def _places(listed: list[Props]) -> list[Place]:
    return [Place.from_props(it) for it in listed]


def _as_it_was(olds: Props) -> bool:
    """Whether the container runs, fits, and was not started anew since."""
    ((place, id),) = _nodes(olds)
    try:
        with Engines() as engines:
            found = inspected(engines, place, id)
    except EarshotError:
        return False
    return fits(found, place) and incarnation(found) == olds.get("incarnation")


@contextlib.contextmanager
def _whatever_docker_says() -> Iterator[None]:
    """For what is done so that it goes more smoothly, and is done by others if it fails."""
    from docker.errors import DockerException

    with contextlib.suppress(DockerException, OSError, EarshotError):
        yield


@contextlib.contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except EarshotError as error:
        # the engine puts "Exception calling application:" before it
        raise EarshotError(f"\n{error}") from None
