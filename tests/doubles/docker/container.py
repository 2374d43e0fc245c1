"""Double of docker:index/container:Container, after what the official plugin is known to do:

- created on the default bridge, taken off it and connected to each network in turn;
- nearly every change replaces, and the old one is deleted first;
- published ports are reported as the engine has them, sorted: none for a container that is on no
  network or between two starts, which then differs from its inputs and is replaced;
- one that does not run is reported so only where it must run (`mustRun: false`, no ports); else
  its ports stay as they were. A removed one is reported as gone;
- one that ends at once was created all the same;
- without `destroyGraceSeconds` a container is killed, not stopped.
"""

import time
from collections.abc import Iterable, Iterator

import docker

from tests.doubles.docker.container_config import (
    DEFAULTS,
    DETAILS,
    LISTS,
    SHAPE,
    arguments,
    restart_policy,
)
from tests.doubles.docker.image import local_image
from tests.doubles.plugin.kind import Kind, PartlyCreated, ProviderError
from tests.doubles.plugin.values import Plain

POLL_SECONDS = 0.2
REMOVAL_SECONDS = 60.0


class Container(Kind[docker.DockerClient]):
    name_input = "name"
    shape = SHAPE
    defaults = DEFAULTS
    in_place = frozenset(
        {"restart", "mustRun", "start", "rm", "removeVolumes", "destroyGraceSeconds", "wait",
         "waitTimeout", "containerReadRefreshTimeoutMilliseconds"}
    )  # fmt: skip
    unordered = frozenset({"ports", "dns", "labels", "networksAdvanced", "volumes"})

    def objections(self, inputs: Plain) -> Iterable[tuple[str, str]]:
        if inputs.get("wait") is True:
            yield "wait", "waiting for health is not implemented by this test double"

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        local_image(client, inputs["image"])
        id = client.api.create_container(**arguments(client, inputs))["Id"]
        try:
            self._connect(client, id, inputs)
            if inputs.get("start", True):
                client.api.start(id)
        except docker.errors.APIError as error:
            state = inputs | self._computed(client, id, inputs)
            raise PartlyCreated(str(error.explanation), id, state) from error
        return id, inputs | self._computed(client, id, inputs)

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        try:
            computed_outputs = self._computed(client, id, state)
        except docker.errors.NotFound:
            return None
        return {name: [] for name in LISTS} | state | computed_outputs

    def update(self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain) -> Plain:
        if state.get("restart") != inputs.get("restart"):
            client.api.update_container(id, restart_policy=restart_policy(inputs))
        return inputs | self._computed(client, id, inputs)

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
            time.sleep(POLL_SECONDS)
        raise ProviderError(f"container {state['name']} is still being removed")

    def _connect(self, client: docker.DockerClient, id: str, inputs: Plain) -> None:
        networks = inputs.get("networksAdvanced", [])
        if networks and inputs.get("networkMode") in (None, "default", "bridge"):
            client.api.disconnect_container_from_network(id, "bridge")
        for network in networks:
            client.api.connect_container_to_network(
                id,
                network["name"],
                ipv4_address=network.get("ipv4Address") or None,
                aliases=network.get("aliases"),
            )

    def _computed(self, client: docker.DockerClient, id: str, state: Plain) -> Plain:
        """Outputs that the engine reports, and those that replace values of ``state``."""
        container = client.api.inspect_container(id)
        runs, networks = container["State"]["Running"], container["NetworkSettings"]["Networks"]
        computed_outputs: Plain = {
            "name": container["Name"].lstrip("/"),
            "networkDatas": [
                _network_data(name, details_of_network)
                for name, details_of_network in sorted(networks.items())
            ],
        }
        for name, details in DETAILS.items():
            if inputs_of_name := state.get(name):
                computed_outputs[name] = [details | input_item for input_item in inputs_of_name]
        if runs or state.get("mustRun", True):
            computed_outputs["ports"] = list(
                _published(container["NetworkSettings"]["Ports"] or {})
            )
        if not runs:
            computed_outputs["exitCode"] = container["State"]["ExitCode"]
            computed_outputs["mustRun"] = False
        return computed_outputs


def _published(ports: Plain) -> Iterator[Plain]:
    for text, bindings in sorted(
        ports.items(), key=lambda port_item: int(port_item[0].partition("/")[0])
    ):
        inner, _, protocol = text.partition("/")
        for binding in bindings or ():
            yield {
                "internal": int(inner),
                "external": int(binding["HostPort"]),
                "ip": binding["HostIp"],
                "protocol": protocol,
            }


def _network_data(name: str, network: Plain) -> Plain:
    return {
        "networkName": name,
        "ipAddress": network["IPAddress"],
        "ipPrefixLength": network["IPPrefixLen"],
        "gateway": network["Gateway"],
        "macAddress": network["MacAddress"],
        "globalIpv6Address": network["GlobalIPv6Address"],
        "globalIpv6PrefixLength": network["GlobalIPv6PrefixLen"],
        "ipv6Gateway": network["IPv6Gateway"],
    }
