"""Resource kinds for nodes in containers: the check before a container is stopped, and readiness.

The official provider creates containers, volumes and networks.
"""

import contextlib
import functools
import hashlib
import json

import pulumi

from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot_pulumi.docker import put_back
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Engines,
    asking,
    incarnation,
    inspected,
    is_up,
)
from earshot_pulumi.docker.engine_objects import hosts_of
from earshot_pulumi.docker.readiness import RunningCluster, is_intact, majority_runs, repair
from earshot_pulumi.docker.rolling_restart import (
    GRACE,
    NO_QUORUM_GRACE,
    check_others,
    connect_others,
)
from earshot_pulumi.driver import change_or_restore
from earshot_pulumi.properties import here, read
from earshot_pulumi.provider.kind import Inputs, Kind, Operation, Properties


class DockerStopPreflightKind(Kind):
    """Checks that the other nodes run, and saves the container's definition.

    Pulumi's engine deletes a container before it creates the new one, without a check. So each
    container depends on a resource with the same settings, which is updated before that.
    """

    ID = "good"
    interrupted = "interrupted before the container was stopped: nothing was changed"
    DECISIVE = ("settings",)  # the other inputs only locate the container

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        address = read(ContainerAddress, news["place"])
        with Engines() as engines:
            container = engines.inspect(str(address), address, address.name)
            if container and is_up(container):
                own_labels = container["Config"]["Labels"] or {}
                check_others(engines, hosts_of(news), address.name, own_labels)
                with asking(str(address), address):
                    put_back.keep(here(news["state_dir"]), address.name, container)
        return news


def digest(settings: Inputs) -> pulumi.Output[str]:
    """A SHA-256 of a container's inputs; a secret if one of them is."""
    return pulumi.Output.all(**settings).apply(
        lambda values: hashlib.sha256(
            json.dumps(values, sort_keys=True, default=vars).encode()
        ).hexdigest()
    )


class DockerReadinessKind(Kind):
    """Readiness of one node after a change, or of the whole cluster at the end of a run.

    The resource is updated if a container was replaced, killed, disconnected or restarted. The
    update repairs the container, waits for the node, and changes the incarnation.
    """

    ID = "ready"
    IDLE = ("incarnation", "state_dir", "users")
    OWNS = ("nodes", "whole")
    interrupted = (
        "interrupted while waiting for the node: its container continues to run; the next "
        "`pulumi up` repairs it and waits for it"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        is_changed = super().differs(operation, olds, news)
        return is_changed or (not news["whole"] and not _is_unchanged(olds))

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        if olds:
            return change_or_restore(
                lambda: self._run(operation, news, wait=True),
                lambda: None if news["whole"] else self._put_back(operation, olds, news),
            )
        # at a first start all voters start together, and one wait covers the whole cluster
        if not news["whole"]:
            # a saved definition belongs to an earlier stack
            put_back.forget(here(news["state_dir"]), _nodes(news)[0][0].name)
        return self._run(operation, news, wait=news["whole"])

    def delete(self, operation: Operation, olds: Properties) -> None:
        """Stops the container gracefully, while the rest of its cluster still runs."""
        if olds["whole"]:
            return
        ((address, container),) = _nodes(olds)
        if olds.get("state_dir"):  # states of earlier releases have none
            put_back.forget(here(olds["state_dir"]), address.name)
        # Pulumi removes the container next, and reports a failure of that
        with Engines() as engines, contextlib.suppress(*FAILURES, EarshotError):
            grace = GRACE if majority_runs(engines, _addresses(olds["voters"])) else NO_QUORUM_GRACE
            put_back.remove_substitute(engines, address)
            engines.of(address).api.stop(container, timeout=grace)

    def _put_back(self, operation: Operation, olds: Properties, news: Properties) -> str | None:
        """Puts back the former container of a node that did not come up. Returns its state as text.

        None if the former definition is unknown or the node is new.
        """
        ((_, failed_id),), ((address, _),) = _nodes(news), _nodes(olds)
        definition = put_back.saved_definition(
            here(news["state_dir"]), address.name, except_id=failed_id
        )
        if definition is None:
            return None
        operation.log(f"{address} did not come up: making it again with its former settings")
        with Engines() as engines:
            # the former container has the former listeners
            brokers = _addresses(olds["tellers"])
            cluster = RunningCluster(engines, brokers, news["cluster_id"], say=operation.log)

            def serves(id: str) -> None:
                if majority_runs(engines, _addresses(olds["voters"])):
                    cluster.wait_for([(address, id)])

            return put_back.put_back(engines, address, failed_id, definition, serves)

    def _run(self, operation: Operation, props: Properties, wait: bool) -> Properties:
        nodes, whole, users = _nodes(props), bool(props["whole"]), props.get("users")
        with Engines() as engines:
            containers = [repair(engines, address, id) for address, id in nodes]
            if wait and (whole or majority_runs(engines, _addresses(props["voters"]))):
                if not whole:
                    connect_others(engines, nodes[0][0], containers[0])
                brokers = _addresses(props["tellers"])
                reset = functools.partial(_reset_passwords, operation, users) if users else None
                cluster_id, say = props["cluster_id"], operation.log
                cluster = RunningCluster(
                    engines, brokers, cluster_id, whole, say, reset_passwords=reset
                )
                cluster.wait_for(nodes)
        if wait and not whole:
            put_back.forget(here(props["state_dir"]), nodes[0][0].name)
        return {**props, "incarnation": "" if whole else incarnation(containers[0])}


def _reset_passwords(operation: Operation, users: Properties, broker: int) -> None:
    from earshot_pulumi.docker.users import DockerUsersKind  # slow to import

    DockerUsersKind().reset_passwords(users, broker, operation.log)


def _nodes(props: Properties) -> list[tuple[ContainerAddress, str]]:
    return [(read(ContainerAddress, node["place"]), node["container"]) for node in props["nodes"]]


def _addresses(places: list[Properties]) -> list[ContainerAddress]:
    return [read(ContainerAddress, place) for place in places]


def _is_unchanged(olds: Properties) -> bool:
    """True if the container runs, needs no repair, and was not restarted since ``olds``."""
    ((address, id),) = _nodes(olds)
    try:
        with Engines() as engines:
            container = inspected(engines, address, id)
    except EarshotError:
        return False
    return is_intact(container, address) and incarnation(container) == olds.get("incarnation")
