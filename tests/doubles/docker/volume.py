"""Double of docker:index/volume:Volume."""

import docker

from tests.doubles.docker.network import labels
from tests.doubles.plugin.kind import Kind, Shape
from tests.doubles.plugin.values import Plain

SHAPE: Shape = {
    "name": None, "driver": None, "driverOpts": None,
    "labels": {"label": None, "value": None},
}  # fmt: skip
DEFAULTS: Plain = {"driver": "local"}


class Volume(Kind[docker.DockerClient]):
    name_input = "name"
    shape = SHAPE
    defaults = DEFAULTS

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        """Like the engine, it uses an existing volume of that name."""
        volume = client.api.create_volume(
            inputs["name"],
            driver=inputs.get("driver"),
            driver_opts=inputs.get("driverOpts"),
            labels=labels(inputs) or None,
        )
        return volume["Name"], inputs | self._computed(volume)

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        try:
            return state | self._computed(client.api.inspect_volume(id))
        except docker.errors.NotFound:
            return None

    def update(self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain) -> Plain:
        return inputs | self._computed(client.api.inspect_volume(id))

    def delete(self, client: docker.DockerClient, id: str, state: Plain) -> None:
        try:
            client.api.remove_volume(id)
        except docker.errors.NotFound:
            return

    def _computed(self, volume: Plain) -> Plain:
        return {"driver": volume["Driver"], "mountpoint": volume["Mountpoint"]}
