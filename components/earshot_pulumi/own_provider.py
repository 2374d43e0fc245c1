"""A provider that a program gives to a cluster, where earshot asks an engine or AWS itself.

Preflight, readiness and changes in turn must reach the same engine, or the same account, as the
resources of that provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pulumi
from pulumi.output import Unknown

from earshot.errors import EarshotError

DOCKER_ONLY: Final = ("caMaterial", "certMaterial", "keyMaterial", "context", "sshOpts")
"""Settings of a `docker.Provider` that earshot's own connections to its engine do not have."""
AWS_ONLY: Final = (
    "assumeRoles",
    "assumeRoleWithWebIdentity",
    "customCaBundle",
    "httpProxy",
    "httpsProxy",
    "insecure",
    "sharedConfigFiles",
    "sharedCredentialsFiles",
)
"""Settings of an `aws.Provider` that earshot's own calls of AWS do not have."""
AWS_READ: Final = ("profile", "accessKey", "secretKey", "token", "region", "endpoints")
_HOST_INPUTS: Final = {"engine": "host", "cert_path": "certPath"}
"""Settings of a `docker.Provider` by the input of `hosts` that says the same."""

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class GivenProvider:
    """A provider of the program's own, and its settings by their schema names."""

    resource: pulumi.ProviderResource
    settings: Settings = field(repr=False)


def settings_of(provider: pulumi.ProviderResource) -> pulumi.Output[Settings]:
    """The settings of ``provider`` by their schema names, secrets in clear.

    Those that a preview does not know are `pulumi.output.Unknown`. Pulumi's engine gives them: in a
    component that a program in another language makes, there is only the provider's URN.
    """

    async def read(urn: str) -> Settings:
        found = await pulumi.runtime.invoke_async("pulumi:pulumi:getResource", {"urn": urn})
        settings: Settings = found["state"]
        return settings

    return provider.urn.apply(read)


def docker_inputs(args: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """The inputs of a `DockerCluster`, whose host is the engine of a `docker.Provider`.

    Raises EarshotError where the provider is for another engine than ``args``, or has settings
    that earshot does not use.
    """
    hosts = args.get("hosts") or [{}]
    if len(hosts) != 1:
        raise EarshotError(
            "provider",
            observed=f"found a docker.Provider, which has one engine, for {len(hosts)} `hosts`",
            remedy="leave it out: the cluster makes a provider for each of its hosts",
        )
    _refuse(
        "docker.Provider",
        settings,
        DOCKER_ONLY,
        "host (unix://, ssh:// or tcp://) and certPath, a folder with ca.pem, cert.pem and key.pem",
    )
    host = dict(hosts[0])
    for key, name in _HOST_INPUTS.items():
        wanted = settings.get(name) or None
        if host.get(key) not in (None, wanted) and not isinstance(wanted, Unknown):
            raise EarshotError(
                f"hosts[0].{key}",
                observed=f"found {host[key]}, and the docker.Provider has {name} {wanted}",
                remedy=f"leave hosts[0].{key} out, or give the cluster another provider",
            )
        host[key] = wanted
    return {**args, "hosts": [host]}


def aws_settings(settings: Settings) -> Settings:
    """Those of an `aws.Provider` with which earshot calls AWS, too.

    Raises EarshotError where it has settings that earshot's calls do not use.
    """
    _refuse(
        "aws.Provider",
        settings,
        AWS_ONLY,
        f"{', '.join(AWS_READ)}; a profile of ~/.aws/config may assume a role (role_arn)",
    )
    return {name: settings[name] for name in AWS_READ if name in settings}


def _refuse(kind: str, settings: Settings, names: tuple[str, ...], allowed: str) -> None:
    if found := [name for name in names if settings.get(name)]:
        raise EarshotError(
            "provider",
            observed=f"found {', '.join(found)} in the {kind}, which earshot's own calls lack",
            allowed=allowed,
        )
