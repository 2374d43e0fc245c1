"""Kinds of the `docker` placement: the preflights, and the nodes' readiness.

The official provider makes containers, volumes and networks.
"""

import contextlib
import functools
import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pulumi
from docker.errors import DockerException

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.remote.leftovers import remove_leftovers
from earshot_pulumi import leaving
from earshot_pulumi.docker import (
    images,
    labels,
    on_engines,
    put_back,
    running,
    volume_data,
)
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Engines,
    incarnation,
    inspected,
    is_up,
)
from earshot_pulumi.docker.in_turn import GRACE, NO_QUORUM_GRACE, check_others
from earshot_pulumi.docker.on_engines import WantedStack, hosts_of
from earshot_pulumi.docker.readiness import fits, majority_runs, repair, wait_for
from earshot_pulumi.driver import or_put_back
from earshot_pulumi.properties import here
from earshot_pulumi.provider.internal import CheckedKind, InternalKind
from earshot_pulumi.provider.kind import Operation, Properties

_IGNORING_ERRORS = contextlib.suppress(DockerException, OSError, EarshotError)
"""For steps that may fail, because others do the same later."""


class EnginePreflightKind(CheckedKind):
    """Checks before any container is touched; also makes up this deployment's id.

    `absent` are the Docker hosts that lack the image, which only an update pulls.
    """

    ID_IN = "deployment"
    interrupted = (
        "interrupted before a container was changed: images may be missing, and containers of "
        "removed brokers may be stopped; the next `pulumi up` does the rest"
    )
    IDLE = ("gate", "remove", "absent")  # a new evaluation of the plan is no change here

    def problems(self, operation: Operation, olds: Properties, news: Properties) -> Iterator[str]:
        # made up once and then kept, like names that Pulumi makes up
        news["deployment"] = olds.get("deployment") or uuid.uuid4().hex[:12]
        return _problems(olds, news) if on_engines.can_be_asked(news) else iter(())

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        return bool(news.get("absent")) or super().differs(operation, olds, news)

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        wanted = WantedStack.from_props(news)
        staying = {node.id for node in wanted.plan.nodes}
        with Engines() as engines:
            on_engines.check_network(engines, wanted)
            images.pull(engines, wanted, news.get("absent") or (), operation.log)
            for host in _hosts(olds, news):
                with _IGNORING_ERRORS:
                    # Pulumi deletes it only after the validation, which must not find it any more
                    for found in engines.of(host).containers.list(filters=_of_deployment(news)):
                        if int(found.labels.get(labels.NODE, "-1")) not in staying:
                            found.stop(timeout=GRACE)
        return {**news, "absent": []}

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        """Removes what an interrupted run left; Pulumi has removed all that its state knew."""
        own = _of_deployment(olds)
        with Engines() as engines:
            for host in hosts_of(olds):
                with _IGNORING_ERRORS:
                    client = engines.of(host)
                    with _IGNORING_ERRORS:
                        # of those who proved listeners or made users: they have passwords
                        remove_leftovers(client, olds["stack"])
                    containers = {"filters": own, "all": True, "ignore_removed": True}
                    _remove(client.containers, containers, force=True, v=True)
                    _remove(client.networks, {"filters": own})
                    # with keys; one with data is of a cluster
                    _remove(client.volumes, {"filters": own})


class DockerStopPreflightKind(InternalKind):
    """Checks that the other nodes run, and keeps what the container was made with.

    Pulumi's engine removes a container before it makes the next one, without a check. So a resource
    before each container has the same settings as its inputs, and is updated before it is replaced.
    """

    ID = "good"
    interrupted = "interrupted before the container was stopped: nothing was changed"
    DECISIVE = ("settings",)  # the rest says where to look, and is no reason to look

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        address = ContainerAddress.from_props(news["place"])
        with Engines() as engines:
            found = engines.inspect(str(address), address, address.name)
            if found and is_up(found):
                own = found["Config"]["Labels"] or {}
                check_others(engines, hosts_of(news), address.name, own)
                put_back.keep(here(news["state_dir"]), found)
        return news


def digest(settings: Mapping[str, Any]) -> pulumi.Output[str]:
    """Other text for other inputs of a container; a secret, where one of them is."""
    return pulumi.Output.all(**settings).apply(
        lambda known: hashlib.sha256(
            json.dumps(known, sort_keys=True, default=vars).encode()
        ).hexdigest()
    )


class DockerReadinessKind(InternalKind):
    """One node after a change, or the whole cluster at the end of a run.

    It is updated when a container was replaced, or is found killed, disconnected or restarted. The
    update repairs the container, waits for the node, and so changes the incarnation.
    """

    ID = "ready"
    IDLE = ("incarnation", "state_dir", "users")
    interrupted = (
        "interrupted while the node was waited for: its container runs on, and is repaired and "
        "waited for by the next `pulumi up`"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        changed = super().differs(operation, olds, news)
        return changed or (not news["whole"] and not _is_unchanged(olds))

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if olds:
            return or_put_back(
                lambda: self._run(operation, news, wait=True),
                lambda: None if news["whole"] else self._put_back(operation, olds, news),
            )
        # a first start: all voters start together, then one wait covers the whole cluster
        if not news["whole"]:
            # what is kept is of another stack's time
            put_back.forget(here(news["state_dir"]), _nodes(news)[0][0].name)
        return self._run(operation, news, wait=news["whole"])

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        """Stops the container in order, while the rest of its cluster still runs."""
        if olds["whole"]:
            return
        ((address, container),) = _nodes(olds)
        if olds.get("state_dir"):  # states of earlier releases have none
            put_back.forget(here(olds["state_dir"]), address.name)
        with Engines() as engines, _IGNORING_ERRORS:
            grace = GRACE if majority_runs(engines, _addresses(olds["voters"])) else NO_QUORUM_GRACE
            put_back.remove_stand_in(engines, address)
            engines.of(address).api.stop(container, timeout=grace)

    def _put_back(self, operation: Operation, olds: Properties, news: Properties) -> str | None:
        """How the node of a container that did not come up is left; None: its former settings are
        unknown, or it is a new node."""
        ((_, failed),), ((address, _),) = _nodes(news), _nodes(olds)
        definition = put_back.kept(here(news["state_dir"]), address.name, but=failed)
        if definition is None:
            return None
        operation.log(f"{address} did not come up: making it again as it was")
        with Engines() as engines:
            # as it was, it is asked as it was
            asked = _addresses(olds["tellers"])

            def serves(id: str) -> None:
                if majority_runs(engines, _addresses(olds["voters"])):
                    cluster = news["cluster_id"]
                    wait_for(engines, [(address, id)], asked, cluster, progress=operation.log)

            return put_back.put_back(engines, address, failed, definition, serves)

    def _run(self, operation: Operation, props: Properties, wait: bool) -> Properties:
        nodes, whole, users = _nodes(props), bool(props["whole"]), props.get("users")
        with Engines() as engines:
            found = [repair(engines, address, id) for address, id in nodes]
            if wait and (whole or majority_runs(engines, _addresses(props["voters"]))):
                asked = _addresses(props["tellers"])
                again = functools.partial(_give_again, operation, users) if users else None
                wait_for(
                    engines,
                    nodes,
                    asked,
                    props["cluster_id"],
                    whole,
                    progress=operation.log,
                    give_again=again,
                )
        if wait and not whole:
            put_back.forget(here(props["state_dir"]), nodes[0][0].name)
        return {**props, "incarnation": "" if whole else incarnation(found[0])}


def _give_again(operation: Operation, users: Properties, broker: int) -> None:
    from earshot_pulumi.docker.users import DockerUsersKind  # slow to import

    DockerUsersKind().give_again(users, broker, operation.log)


def _problems(olds: Properties, news: Properties) -> Iterator[str]:
    wanted, hosts = WantedStack.from_props(news), _hosts(olds, news)
    with Engines() as engines:
        for host in wanted.hosts:
            engines.of(host)
        seen = on_engines.look(engines, _answering(engines, hosts, wanted))
        yield from on_engines.problems(wanted, seen)
        there = list(running.running(engines, wanted, seen))
        yield from running.link_problems(there, wanted)
        if leaving.matters(news["remove"]):
            yield from running.client_problems(engines, wanted, there)
        before = WantedStack.from_props(olds) if olds else None
        yield from volume_data.version_problems(engines, wanted, seen, before)
        yield from volume_data.removal_problems(engines, wanted, seen, hosts)
        news["absent"] = images.absent(engines, wanted)


def _answering(
    engines: Engines, hosts: tuple[DockerHost, ...], wanted: WantedStack
) -> Iterator[DockerHost]:
    """The stack's hosts, and of those that it is about to lose the ones that answer."""
    for host in hosts:
        if host in wanted.hosts:
            yield host
        else:
            with contextlib.suppress(EarshotError):
                engines.of(host)
                yield host


def _hosts(*props: Properties) -> tuple[DockerHost, ...]:
    """The hosts of several inputs, each engine once, by its name in the last inputs."""
    found = {it.engine: it for inputs in props for it in hosts_of(inputs)}
    return tuple(found.values())


def _of_deployment(props: Properties) -> dict[str, str]:
    return {"label": f"{labels.DEPLOYMENT}={props['deployment']}"}


def _remove(collection: Any, listed: Mapping[str, Any], **options: bool) -> None:
    """Removes what ``collection`` lists, each whatever becomes of the others."""
    with _IGNORING_ERRORS:
        for found in collection.list(**listed):
            with _IGNORING_ERRORS:
                found.remove(**options)


def _nodes(props: Properties) -> list[tuple[ContainerAddress, str]]:
    return [
        (ContainerAddress.from_props(node["place"]), node["container"]) for node in props["nodes"]
    ]


def _addresses(listed: list[Properties]) -> list[ContainerAddress]:
    return [ContainerAddress.from_props(it) for it in listed]


def _is_unchanged(olds: Properties) -> bool:
    """Whether the container runs, needs no repair, and was not restarted since."""
    ((address, id),) = _nodes(olds)
    try:
        with Engines() as engines:
            found = inspected(engines, address, id)
    except EarshotError:
        return False
    return fits(found, address) and incarnation(found) == olds.get("incarnation")
