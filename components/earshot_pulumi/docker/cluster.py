"""`DockerCluster`, which may use the program's own `docker.Provider`."""

from typing import Final

import pulumi
from pulumi.output import Unknown

from earshot.errors import EarshotError
from earshot_pulumi.cluster import Cluster, Settings, refuse
from earshot_pulumi.cluster_args import DockerClusterArgs
from earshot_pulumi.provider.kind import Inputs, Properties

DOCKER_ONLY: Final = ("caMaterial", "certMaterial", "keyMaterial", "context", "sshOpts")
"""Settings of a `docker.Provider` that earshot's own connections to the engine do not support."""
_HOST_INPUTS: Final = {"engine": "host", "cert_path": "certPath"}
"""Maps inputs of `hosts` to the equivalent settings of a `docker.Provider`."""


class DockerCluster(Cluster):
    """Kafka brokers as containers on Docker hosts; changes replace one container at a time."""

    _placement = "docker"
    _provider_type = "docker:index:Provider"

    def __init__(
        self, name: str, args: DockerClusterArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(name, args, opts)

    def _provided(
        self, args: Properties, settings: Settings, provider: pulumi.ProviderResource
    ) -> tuple[Properties, Settings, Inputs]:
        return docker_inputs(args, settings), {}, {"provider": provider}


def docker_inputs(args: Inputs, settings: Settings) -> Properties:
    """``args`` of a `DockerCluster`, with the engine of its `docker.Provider` as the only host.

    ``settings`` are the provider's. Raises EarshotError if ``args`` name another engine or more
    than one host, or if the provider has settings that earshot does not support.
    """
    hosts = args.get("hosts") or [{}]
    if len(hosts) != 1:
        raise EarshotError(
            "provider",
            observed=f"found a docker.Provider, which has one engine, for {len(hosts)} `hosts`",
            remedy="leave it out: the cluster makes a provider for each of its hosts",
        )
    refuse(
        "docker.Provider",
        settings,
        DOCKER_ONLY,
        "host (unix://, ssh:// or tcp://) and certPath, a folder with ca.pem, cert.pem and key.pem",
    )
    host = dict(hosts[0])
    for key, name in _HOST_INPUTS.items():
        value = settings.get(name) or None
        if host.get(key) not in (None, value) and not isinstance(value, Unknown):
            raise EarshotError(
                f"hosts[0].{key}",
                observed=f"found {host[key]}, and the docker.Provider has {name} {value}",
                remedy=f"leave hosts[0].{key} out, or give the cluster another provider",
            )
        host[key] = value
    return {**args, "hosts": [host]}
