"""Double of docker:index/remoteImage:RemoteImage. It finds what is there, or pulls it."""

import docker

from tests.doubles.plugin.kind import Kind, ProviderError, Shape
from tests.doubles.plugin.values import Plain

SHAPE: Shape = {
    "name": None, "keepLocally": None, "forceRemove": None, "triggers": None,
    "pullTriggers": None,
}  # fmt: skip
DEFAULTS: Plain = {"keepLocally": False, "forceRemove": False}


class RemoteImage(Kind[docker.DockerClient]):
    named = "name"
    shape = SHAPE
    defaults = DEFAULTS
    in_place = frozenset({"keepLocally", "forceRemove"})

    def create(self, client: docker.DockerClient, inputs: Plain) -> tuple[str, Plain]:
        found = local_image(client, inputs["name"])
        return f"{found['Id']}{inputs['name']}", inputs | self._computed(found)

    def read(self, client: docker.DockerClient, id: str, state: Plain) -> Plain | None:
        """Only the same image: where the name has come to mean another one, it is gone."""
        try:
            found = client.api.inspect_image(state["name"])
        except docker.errors.ImageNotFound:
            return None
        return state | self._computed(found) if id == f"{found['Id']}{state['name']}" else None

    def update(self, client: docker.DockerClient, id: str, state: Plain, inputs: Plain) -> Plain:
        return inputs | self._computed(local_image(client, inputs["name"]))

    def delete(self, client: docker.DockerClient, id: str, state: Plain) -> None:
        if state.get("keepLocally"):
            return
        try:
            client.api.remove_image(state["name"], force=state.get("forceRemove", False))
        except docker.errors.ImageNotFound:
            return

    def _computed(self, found: Plain) -> Plain:
        digests = found.get("RepoDigests") or [""]
        return {"imageId": found["Id"], "repoDigest": digests[0]}


def local_image(client: docker.DockerClient, name: str) -> Plain:
    """The engine's description of the image, pulled where it is missing. Raises ProviderError."""
    try:
        try:
            found: Plain = client.api.inspect_image(name)
        except docker.errors.ImageNotFound:
            found = client.images.pull(name).attrs
    except docker.errors.APIError as error:
        raise ProviderError(
            f"Unable to read Docker image into resource: unable to pull image {name}: error "
            f"pulling image {name}: {error.explanation}"
        ) from error
    return found
