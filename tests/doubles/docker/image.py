"""Double of docker:index/remoteImage:RemoteImage. It uses an existing image, or pulls it."""

import docker

from tests.doubles.plugin.kind import Kind, ProviderError, Shape
from tests.doubles.plugin.values import Plain

SHAPE: Shape = {
    "name": None, "keepLocally": None, "forceRemove": None, "triggers": None,
    "pullTriggers": None,
}  # fmt: skip
DEFAULTS: Plain = {"keepLocally": False, "forceRemove": False}


class RemoteImage(Kind[docker.DockerClient]):
    name_input = "name"
    shape = SHAPE
    defaults = DEFAULTS
    in_place = frozenset({"keepLocally", "forceRemove"})

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        image = local_image(client, inputs["name"])
        return f"{image['Id']}{inputs['name']}", inputs | self._computed(image)

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        """The state of the same image. If the name refers to another image now, the old one is
        gone."""
        try:
            image = client.api.inspect_image(state["name"])
        except docker.errors.ImageNotFound:
            return None
        return state | self._computed(image) if id == f"{image['Id']}{state['name']}" else None

    def update(self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain) -> Plain:
        return inputs | self._computed(local_image(client, inputs["name"]))

    def delete(self, client: docker.DockerClient, id: str, state: Plain) -> None:
        if state.get("keepLocally"):
            return
        try:
            client.api.remove_image(state["name"], force=state.get("forceRemove", False))
        except docker.errors.ImageNotFound:
            return

    def _computed(self, image: Plain) -> Plain:
        digests = image.get("RepoDigests") or [""]
        return {"imageId": image["Id"], "repoDigest": digests[0]}


def local_image(client: docker.DockerClient, name: str) -> Plain:
    """The engine's description of the image, which is pulled if it is missing. Raises
    ProviderError."""
    try:
        try:
            image: Plain = client.api.inspect_image(name)
        except docker.errors.ImageNotFound:
            image = client.images.pull(name).attrs
    except docker.errors.APIError as error:
        raise ProviderError(
            f"Unable to read Docker image into resource: unable to pull image {name}: error "
            f"pulling image {name}: {error.explanation}"
        ) from error
    return image
