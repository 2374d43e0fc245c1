"""Kinds of nodes in containers: what comes before one is stopped, and its readiness.

The official provider makes containers, volumes and networks.
"""

import contextlib
import functools
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pulumi
from docker.errors import DockerException

from earshot.errors import EarshotError
from earshot_pulumi.docker import (
    put_back,
)
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Engines,
    incarnation,
    inspected,
    is_up,
)
from earshot_pulumi.docker.in_turn import GRACE, NO_QUORUM_GRACE, check_others
from earshot_pulumi.docker.on_engines import hosts_of
from earshot_pulumi.docker.readiness import fits, majority_runs, repair, wait_for
from earshot_pulumi.driver import or_put_back
from earshot_pulumi.properties import here
from earshot_pulumi.provider.internal import InternalKind
from earshot_pulumi.provider.kind import Operation, Properties


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
        # Pulumi removes the container next, and reports where that fails
        with Engines() as engines, contextlib.suppress(DockerException, OSError, EarshotError):
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
