"""A double of an engine that keeps the containers of nodes in a dictionary."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from docker.errors import APIError, NotFound
from earshot_pulumi.docker import labels

from tests.components.docker.stacks import MINE, OWN_ID

NETWORK = "earshot-s"
STARTED = "2026-01-01T00:00:00Z"


def node_container(
    id: str, node: int, *, name: str = "", deployment: str = MINE, variables: Iterable[str] = ()
) -> dict[str, Any]:
    """The running container of a broker of stack `s`, as an engine describes it."""
    return {
        "Id": id,
        "Name": f"/{name or f'kafka-{node}'}",
        "State": {
            "Status": "running", "Running": True, "Restarting": False, "Paused": False,
            "ExitCode": 0, "Error": "",
            "StartedAt": STARTED, "FinishedAt": "2025-12-31T23:59:59.123456789Z",
        },
        "RestartCount": 0,
        "Config": {
            "Labels": {
                labels.STACK: "s",
                labels.DEPLOYMENT: deployment,
                labels.NODE: str(node),
                labels.ROLES: "broker,controller",
            },
            "Env": [f"CLUSTER_ID={OWN_ID}", *variables],
        },
        "HostConfig": {"NetworkMode": "bridge", "Binds": [f"data-{node}:/data"]},
        "NetworkSettings": {"Networks": {NETWORK: {"Aliases": [f"kafka-{node}", id[:12]]}}},
    }  # fmt: skip


def listed_volume(id: int, name: str = "", stack: str = "s") -> dict[str, Any]:
    """The volume of a node's data, as the engine lists it."""
    own = {labels.STACK: stack, labels.NODE: str(id)}
    return {"Name": name or f"earshot-s-kafka-{id}", "Labels": own}


class ContainerEngine:
    """An engine with the containers of brokers; ``calls`` has the changes in their order."""

    def __init__(self, *ids: int) -> None:
        self.containers = {f"id-{id}": node_container(f"id-{id}", id) for id in ids}
        self.volumes: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.refuses_to_start = False
        self.ignores_filters = False
        self.clock = "2026-01-01T01:00:00.123456789Z"
        """The engine's own time, which is not that of this machine."""
        self.log = b"one\n\tat a.b.C(D.java)\ntwo\n"
        self.log_since_start = b""
        self.api = SimpleNamespace(
            info=lambda: {"SystemTime": self.clock},
            inspect_container=self.inspect,
            containers=self._list,
            volumes=lambda: {"Volumes": self.volumes},
            remove_volume=lambda name: self.calls.append(f"remove {name}"),
            networks=list,
            logs=self._logs,
            start=self._start,
            stop=self._stop,
            unpause=self._unpause,
            rename=self.rename,
            remove_container=self._remove,
            create_container_from_config=self._create,
            connect_container_to_network=self._connect,
            disconnect_container_from_network=lambda id, name: self.calls.append(f"off {name}"),
        )

    def add(self, id: str, node: int, **details: Any) -> dict[str, Any]:
        self.containers[id] = node_container(id, node, **details)
        return self.containers[id]

    def kill(self, id: str, code: int = 137) -> None:
        self.inspect(id)["State"] |= {"Status": "exited", "Running": False, "ExitCode": code}

    def inspect(self, id: str) -> dict[str, Any]:
        for container in self.containers.values():
            if id in (container["Id"], container["Name"].lstrip("/")):
                return container
        raise NotFound(f"no {id}")

    def rename(self, id: str, name: str) -> None:
        self.inspect(id)["Name"] = f"/{name}"

    def _list(
        self, *, all: bool = False, filters: dict[str, str] | None = None
    ) -> list[dict[str, Any]]:
        label = "" if self.ignores_filters else (filters or {}).get("label", "")
        key, _, value = label.partition("=")
        return [
            {
                "Id": container["Id"],
                "Names": [container["Name"]],
                "Labels": marks,
                "State": _status(container["State"]),
                "Image": "kafka",
                "Ports": None,
                "NetworkSettings": container["NetworkSettings"],
            }
            for container in self.containers.values()
            for marks in [container["Config"]["Labels"]]
            if all or container["State"]["Running"]
            if not key or (key in marks and value in ("", marks[key]))
        ]

    def _logs(
        self, id: str, tail: int, since: float | None = None, until: float | None = None
    ) -> bytes:
        return self.log + (self.log_since_start if until is None else b"")

    def _start(self, id: str) -> None:
        if self.refuses_to_start:
            raise APIError("500", explanation="port is already allocated")
        self.calls.append(f"start {id}")
        self.inspect(id)["State"] |= {"Running": True, "StartedAt": "2026-01-01T00:01:00Z"}

    def _stop(self, id: str, timeout: int) -> None:
        self.calls.append(f"stop {id} {timeout}")
        self.inspect(id)["State"] |= {"Running": False, "Restarting": False, "Paused": False}

    def _unpause(self, id: str) -> None:
        self.calls.append(f"unpause {id}")
        self.inspect(id)["State"]["Paused"] = False

    def _remove(self, id: str, force: bool, v: bool) -> None:
        assert force and v
        self.calls.append(f"remove {id}")
        del self.containers[self.inspect(id)["Id"]]

    def _create(self, config: dict[str, Any], name: str) -> dict[str, str]:
        id = f"again-{name}"
        self.add(id, int(config["Labels"][labels.NODE]), name=name).update(
            {
                "Config": {key: config[key] for key in ("Env", "Labels")},
                "HostConfig": config["HostConfig"],
            }
        )
        self.kill(id)
        return {"Id": id}

    def _connect(self, id: str, network: str, aliases: list[str]) -> None:
        self.calls.append(f"connect {id} {network} {aliases}")
        self.inspect(id)["NetworkSettings"]["Networks"][network] = {}


def _status(state: dict[str, Any]) -> str:
    """The word that an engine's list has for a state."""
    for key in ("Paused", "Restarting", "Running"):
        if state[key]:
            return key.lower()
    return "exited"
