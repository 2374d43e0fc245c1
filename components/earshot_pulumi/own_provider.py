"""A program's own provider for a cluster, whose settings earshot's own calls must follow.

Preflight, readiness and rolling changes must reach the same engine or account as the resources of
that provider.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pulumi

from earshot.errors import EarshotError

Settings = Mapping[str, object]


@dataclass(frozen=True)
class GivenProvider:
    """The program's own provider, and its settings by schema name."""

    resource: pulumi.ProviderResource
    settings: Settings = field(repr=False)


def settings_of(provider: pulumi.ProviderResource) -> pulumi.Output[Settings]:
    """The settings of ``provider`` by schema name, with secrets in clear.

    Settings that a preview does not know are `pulumi.output.Unknown`. They are read from Pulumi's
    engine, as a component in a program of another language has only the provider's URN.
    """

    async def read(urn: str) -> Settings:
        resource = await pulumi.runtime.invoke_async("pulumi:pulumi:getResource", {"urn": urn})
        settings: Settings = resource["state"]
        return settings

    return provider.urn.apply(read)


def refuse(kind: str, settings: Settings, names: tuple[str, ...], allowed: str) -> None:
    """Raises EarshotError if a provider of this ``kind`` has one of the settings ``names``."""
    if unsupported := [name for name in names if settings.get(name)]:
        raise EarshotError(
            "provider",
            observed=f"found {', '.join(unsupported)} in the {kind}, which earshot's own calls "
            "do not support",
            allowed=allowed,
        )
