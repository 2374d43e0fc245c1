"""Dynamic providers of the `docker` placement: the preflight, and the nodes' readiness.

The official provider makes containers, volumes and networks. The providers here are in an
importable module, so that Pulumi stores a reference instead of byte code. All numbers in their
inputs are floats.
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
from pulumi.dynamic import CreateResult, UpdateResult

from earshot.config.docker import DockerHost
from earshot.errors import EarshotError
from earshot.remote.leftovers import remove_leftovers
from earshot_pulumi import leaving
from earshot_pulumi.docker import (
    data_version,
    images,
    labels,
    on_engines,
    put_back,
    removal,
    running,
)
from earshot_pulumi.docker.container_address import (
    ContainerAddress,
    Disturbed,
    Engines,
    incarnation,
    inspected,
    is_up,
)
from earshot_pulumi.docker.in_turn import GRACE, NO_QUORUM_GRACE, check_others
from earshot_pulumi.docker.on_engines import WantedStack, hosts_of
from earshot_pulumi.docker.readiness import fits, majority_runs, repair, wait_for
from earshot_pulumi.dynamic import CheckedProvider, Props, Provider, here, on_lines_of_its_own

_IGNORING_ERRORS = contextlib.suppress(DockerException, OSError, EarshotError)
"""For steps that may fail, because others do the same later."""


class EnginePreflightProvider(CheckedProvider):
    """Checks before any container is touched; also makes up this deployment's id.

    `absent` are the Docker hosts that lack the image, which only an update pulls.
    """

    ID_IN = "deployment"
    IDLE = ("gate", "remove", "absent")  # a new evaluation of the plan is no change here

    def problems(self, olds: Props, news: Props) -> Iterator[str]:
        # made up once and then kept, like names that Pulumi makes up
        news["deployment"] = olds.get("deployment") or uuid.uuid4().hex[:12]
        return _problems(olds, news)

    def differs(self, olds: Props, news: Props) -> bool | None:
        return bool(news.get("absent")) or super().differs(olds, news)

    def made(self, olds: Props, news: Props) -> Props:
        wanted = WantedStack.from_props(news)
        staying = {node.id for node in wanted.plan.nodes}
        with Engines() as engines:
            images.pull(engines, wanted, news.get("absent") or ())
            for host in _hosts(olds, news):
                with _IGNORING_ERRORS:
                    # Pulumi deletes it only after the validation, which must not find it any more
                    for found in engines.of(host).containers.list(filters=_of_deployment(news)):
                        if int(found.labels.get(labels.NODE, "-1")) not in staying:
                            found.stop(timeout=GRACE)
        return {**news, "absent": []}

    def delete(self, _id: str, props: Props) -> None:
        """Removes what an interrupted run left; Pulumi has removed all that its state knew."""
        own = _of_deployment(props)
        with Engines() as engines:
            for host in hosts_of(props):
                with _IGNORING_ERRORS:
                    client = engines.of(host)
                    with _IGNORING_ERRORS:
                        # of those who proved listeners or made users: they have passwords
                        remove_leftovers(client, props["stack"])
                    containers = {"filters": own, "all": True, "ignore_removed": True}
                    _remove(client.containers, containers, force=True, v=True)
                    _remove(client.networks, {"filters": own})
                    # with keys; one with data is of a cluster
                    _remove(client.volumes, {"filters": own})


class StopPreflightProvider(Provider):
    """Checks that the other nodes run, and keeps what the container was made with.

    Pulumi's engine removes a container before it makes the next one, and asks nobody. So a resource
    before each container has the same settings as its inputs, and is updated before it is replaced.
    """

    ID = "good"
    DECISIVE = ("settings",)  # the rest says where to look, and is no reason to look

    def made(self, _olds: Props, news: Props) -> Props:
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


class ReadinessProvider(Provider):
    """One node after a change, or the whole cluster at the end of a run.

    It is updated when a container was replaced, or is found killed, disconnected or restarted. The
    update repairs the container, waits for the node, and so changes the incarnation.
    """

    IDLE = ("incarnation", "state_dir", "users")

    def differs(self, olds: Props, news: Props) -> bool:
        return super().differs(olds, news) or (not news["whole"] and not _is_unchanged(olds))

    def create(self, props: Props) -> CreateResult:
        # a first start: all voters start together, then one wait covers the whole cluster
        if not props["whole"]:
            # what is kept is of another stack's time
            put_back.forget(here(props["state_dir"]), _nodes(props)[0][0].name)
        with on_lines_of_its_own():
            return CreateResult("ready", self._run(props, wait=props["whole"]))

    def update(self, _id: str, olds: Props, news: Props) -> UpdateResult:
        with on_lines_of_its_own():
            try:
                return UpdateResult(self._run(news, wait=True))
            except Disturbed:
                raise
            except EarshotError as error:
                if news["whole"] or (left := self._put_back(olds, news)) is None:
                    raise
                text = f"{error.observed}\n  {left}"
                raise EarshotError(error.object, observed=text, remedy=error.remedy) from None

    def delete(self, _id: str, props: Props) -> None:
        """Stops the container in order, while the rest of its cluster still runs."""
        if props["whole"]:
            return
        ((address, id),) = _nodes(props)
        if props.get("state_dir"):  # states of earlier releases have none
            put_back.forget(here(props["state_dir"]), address.name)
        with Engines() as engines, _IGNORING_ERRORS:
            grace = (
                GRACE if majority_runs(engines, _addresses(props["voters"])) else NO_QUORUM_GRACE
            )
            put_back.remove_stand_in(engines, address)
            engines.of(address).api.stop(id, timeout=grace)

    def _put_back(self, olds: Props, news: Props) -> str | None:
        """How the node of a container that did not come up is left; None: nobody knows how it was,
        or it was no other one."""
        ((_, failed),), ((address, _),) = _nodes(news), _nodes(olds)
        definition = put_back.kept(here(news["state_dir"]), address.name, but=failed)
        if definition is None:
            return None
        print(f"{address} did not come up: making it again as it was")
        with Engines() as engines:
            # as it was, it is asked as it was
            asked = _addresses(olds["tellers"])

            def serves(id: str) -> None:
                if majority_runs(engines, _addresses(olds["voters"])):
                    wait_for(engines, [(address, id)], asked, news["cluster_id"], progress=print)

            return put_back.put_back(engines, address, failed, definition, serves)

    def _run(self, props: Props, wait: bool) -> Props:
        nodes, whole = _nodes(props), bool(props["whole"])
        with Engines() as engines:
            found = [repair(engines, address, id) for address, id in nodes]
            if wait and (whole or majority_runs(engines, _addresses(props["voters"]))):
                asked = _addresses(props["tellers"])
                again = functools.partial(_give_again, props) if props.get("users") else None
                wait_for(
                    engines,
                    nodes,
                    asked,
                    props["cluster_id"],
                    whole,
                    progress=print,
                    give_again=again,
                )
        if wait and not whole:
            put_back.forget(here(props["state_dir"]), nodes[0][0].name)
        return {**props, "incarnation": "" if whole else incarnation(found[0])}


def _give_again(props: Props, broker: int) -> None:
    from earshot_pulumi.docker.users import DockerUsersProvider  # slow to import

    DockerUsersProvider().give_again(props["users"], broker)


def _problems(olds: Props, news: Props) -> Iterator[str]:
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
        yield from data_version.problems(engines, wanted, seen, before)
        yield from removal.problems(engines, wanted, seen, hosts)
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


def _hosts(*props: Props) -> tuple[DockerHost, ...]:
    """The hosts of several inputs, each engine once, by its name in the last inputs."""
    found = {it.engine: it for inputs in props for it in hosts_of(inputs)}
    return tuple(found.values())


def _of_deployment(props: Props) -> dict[str, str]:
    return {"label": f"{labels.DEPLOYMENT}={props['deployment']}"}


def _remove(collection: Any, listed: Mapping[str, Any], **options: bool) -> None:
    """Removes what ``collection`` lists, each whatever becomes of the others."""
    with _IGNORING_ERRORS:
        for found in collection.list(**listed):
            with _IGNORING_ERRORS:
                found.remove(**options)


def _nodes(props: Props) -> list[tuple[ContainerAddress, str]]:
    return [
        (ContainerAddress.from_props(node["place"]), node["container"]) for node in props["nodes"]
    ]


def _addresses(listed: list[Props]) -> list[ContainerAddress]:
    return [ContainerAddress.from_props(it) for it in listed]


def _is_unchanged(olds: Props) -> bool:
    """Whether the container runs, needs no repair, and was not restarted since."""
    ((address, id),) = _nodes(olds)
    try:
        with Engines() as engines:
            found = inspected(engines, address, id)
    except EarshotError:
        return False
    return fits(found, address) and incarnation(found) == olds.get("incarnation")
