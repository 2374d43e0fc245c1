"""Double of docker:index/network:Network."""

import docker

from tests.doubles.plugin.kind import Kind, Shape
from tests.doubles.plugin.values import Plain

SHAPE: Shape = {
    "name": None, "driver": None, "ipamDriver": None, "labels": {"label": None, "value": None},
}  # fmt: skip
DEFAULTS: Plain = {"driver": "bridge", "ipamDriver": "default"}


class Network(Kind[docker.DockerClient]):
    named = "name"
    shape = SHAPE
    defaults = DEFAULTS

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        made = client.api.create_network(
            inputs["name"], driver=inputs["driver"], check_duplicate=True, labels=labels(inputs)
        )
        return made["Id"], inputs | self._computed(client, made["Id"])

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
        found = client.api.inspect_network(id)
        return {"driver": found["Driver"], "scope": found["Scope"], "internal": found["Internal"]}


def labels(inputs: Plain) -> dict[str, str]:
    """The provider's list of pairs as the engine takes it."""
    return {item["label"]: item["value"] for item in inputs.get("labels", [])}
