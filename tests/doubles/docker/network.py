"""Double of docker:index/network:Network."""

import docker

from tests.doubles.plugin.kind import Kind, Shape
from tests.doubles.plugin.values import Plain

SHAPE: Shape = {
    "name": None, "driver": None, "ipamDriver": None, "labels": {"label": None, "value": None},
}  # fmt: skip
DEFAULTS: Plain = {"driver": "bridge", "ipamDriver": "default"}


class Network(Kind[docker.DockerClient]):
    name_input = "name"
    shape = SHAPE
    defaults = DEFAULTS

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        network = client.api.create_network(
            inputs["name"], driver=inputs["driver"], check_duplicate=True, labels=labels(inputs)
        )
        return network["Id"], inputs | self._computed(client, network["Id"])

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        try:
            return state | self._computed(client, id)
        except docker.errors.NotFound:
            return None

    def update(self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain) -> Plain:
        return inputs | self._computed(client, id)

    def delete(self, client: docker.DockerClient, id: str, state: Plain) -> None:
        try:
            client.api.remove_network(id)
        except docker.errors.NotFound:
            return

    def _computed(self, client: docker.DockerClient, id: str) -> Plain:
        network = client.api.inspect_network(id)
        return {
            "driver": network["Driver"],
            "scope": network["Scope"],
            "internal": network["Internal"],
        }


def labels(inputs: Plain) -> dict[str, str]:
    """The provider's list of labels in the form of the engine."""
    return {label["label"]: label["value"] for label in inputs.get("labels", [])}
