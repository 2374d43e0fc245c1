"""Double of docker:index/container:Container, after what the official plugin is known to do:

- created on the default bridge, taken off it and connected to each network in turn;
- nearly every change replaces, and the old one is deleted first;
- a stopped container that must run is reported by a refresh as `mustRun: false`, and the next
  update starts it; a removed one is reported as gone;
- `image` is reported as the image's id, so a program that gives a tag replaces its container after
  a refresh: it should give the `imageId` of a RemoteImage;
- without `destroyGraceSeconds` a container is killed, not stopped;
- `wait` waits at creation only; what failed to start or to become healthy stays in the state.
"""

from __future__ import annotations

import time

import docker

from tests.doubles.docker.container_config import (
    MIB,
    SHAPE,
    archive,
    arguments,
    restart_policy,
    swap,
)
from tests.doubles.docker.image import local_image
from tests.doubles.plugin.kind import Kind, PartlyCreated, ProviderError
from tests.doubles.plugin.values import Plain

UPDATED_BY_ENGINE = ("restart", "maxRetryCount", "cpuShares", "cpuSet", "memory", "memorySwap")
DEFAULTS: Plain = {
    "mustRun": True, "start": True, "rm": False, "restart": "no", "removeVolumes": True,
    "wait": False, "waitTimeout": 60,
}  # fmt: skip
SETTLE_SECONDS = 0.2
POLL_SECONDS = 1.0
REMOVAL_SECONDS = 60.0


class Container(Kind[docker.DockerClient]):
    named = "name"
    shape = SHAPE
    defaults = DEFAULTS
    in_place = frozenset(
        {*UPDATED_BY_ENGINE, "mustRun", "start", "rm", "removeVolumes", "destroyGraceSeconds",
         "wait", "waitTimeout"}
    )  # fmt: skip

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        local_image(client, inputs["image"])
        id = client.api.create_container(**arguments(client, inputs))["Id"]
        try:
            self._connect(client, id, inputs)
            if uploads := inputs.get("uploads"):
                client.api.put_archive(id, "/", archive(uploads))
            if inputs.get("start", True):
                client.api.start(id)
                self._settle(client, id, inputs)
        except (docker.errors.APIError, ProviderError) as error:
            said = error.explanation if isinstance(error, docker.errors.APIError) else error
            raise PartlyCreated(str(said), id, inputs | self._computed(client, id)) from error
        return id, inputs | self._computed(client, id)

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        try:
            found = client.api.inspect_container(id)
            computed = self._computed(client, id)
        except docker.errors.NotFound:
            return None
        running = found["State"]["Running"] or found["State"]["Restarting"]
        if state.get("mustRun", True) and not running:
            computed["mustRun"] = False
        return state | computed

    def update(self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain) -> Plain:
        if any(state.get(name) != inputs.get(name) for name in UPDATED_BY_ENGINE):
            client.api.update_container(
                id,
                restart_policy=restart_policy(inputs),
                cpu_shares=inputs.get("cpuShares"),
                cpuset_cpus=inputs.get("cpuSet"),
                mem_limit=inputs["memory"] * MIB if "memory" in inputs else None,
                memswap_limit=swap(inputs["memorySwap"]) if "memorySwap" in inputs else None,
            )
        if inputs.get("mustRun", True) and not state.get("mustRun", True):
            client.api.start(id)
            self._settle(client, id, inputs | {"wait": False})
        return inputs | self._computed(client, id)

    def delete(self, client: docker.DockerClient, id: str, state: Plain) -> None:
        try:
            if grace := state.get("destroyGraceSeconds"):
                client.api.stop(id, timeout=grace)
            client.api.remove_container(id, v=state.get("removeVolumes", True), force=True)
        except docker.errors.NotFound:
            return
        except docker.errors.APIError as error:
            if "is already in progress" not in str(error):
                raise
        end = time.monotonic() + REMOVAL_SECONDS
        while time.monotonic() < end:
            try:
                client.api.inspect_container(id)
            except docker.errors.NotFound:
                return
            time.sleep(SETTLE_SECONDS)
        raise ProviderError(f"container {state['name']} is still being removed")

    def _connect(self, client: docker.DockerClient, id: str, inputs: Plain) -> None:
        networks = inputs.get("networksAdvanced", [])
        if networks and inputs.get("networkMode") in (None, "default", "bridge"):
            client.api.disconnect_container_from_network(id, "bridge")
        for network in networks:
            client.api.connect_container_to_network(
                id,
                network["name"],
                ipv4_address=network.get("ipv4Address"),
                aliases=network.get("aliases"),
            )

    def _settle(self, client: docker.DockerClient, id: str, inputs: Plain) -> None:
        """Until it is seen to run, or to be healthy where that is waited for."""
        time.sleep(SETTLE_SECONDS)
        end = time.monotonic() + inputs.get("waitTimeout", 60)
        while True:
            state = client.api.inspect_container(id)["State"]
            must_run = inputs.get("mustRun", True) and inputs.get("restart", "no") == "no"
            if must_run and not state["Running"]:
                raise ProviderError(
                    f"container {inputs['name']} exited with status {state['ExitCode']}:"
                    f" {_last_line(client, id)}"
                )
            if not inputs.get("wait"):
                return
            if "Health" not in state:
                raise ProviderError(
                    f"container {inputs['name']} is to be waited for and has no health check"
                )
            if state["Health"]["Status"] == "healthy":
                return
            if time.monotonic() > end:
                raise ProviderError(
                    f"container {inputs['name']} is {state['Health']['Status']}, not healthy,"
                    f" after {inputs.get('waitTimeout', 60)} s: {_last_probe(state['Health'])}"
                )
            time.sleep(POLL_SECONDS)

    def _computed(self, client: docker.DockerClient, id: str) -> Plain:
        found = client.api.inspect_container(id)
        computed: Plain = {
            "name": found["Name"].lstrip("/"),
            "image": found["Image"],
            "networkDatas": [
                {
                    "networkName": name,
                    "ipAddress": network["IPAddress"],
                    "ipPrefixLength": network["IPPrefixLen"],
                    "gateway": network["Gateway"],
                    "macAddress": network["MacAddress"],
                }
                for name, network in sorted(found["NetworkSettings"]["Networks"].items())
            ],
        }
        if not found["State"]["Running"]:
            computed["exitCode"] = found["State"]["ExitCode"]
        return computed


def _last_line(client: docker.DockerClient, id: str) -> str:
    lines = client.api.logs(id, tail=1).decode(errors="replace").split("\n")
    return next((line.strip() for line in lines if line.strip()), "it said nothing")


def _last_probe(health: Plain) -> str:
    for probe in reversed(health.get("Log") or []):
        text = " ".join(probe["Output"].split())
        return f"status {probe['ExitCode']} {text}".strip()
    return "not probed yet"
