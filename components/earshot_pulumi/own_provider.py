"""A provider that a program gives to a cluster, where earshot asks an engine or AWS itself.

Preflight, readiness and changes in turn must reach the same engine, or the same account, as the
resources of that provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi

from earshot.errors import EarshotError

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


def refuse(kind: str, settings: Settings, names: tuple[str, ...], allowed: str) -> None:
    """Raises EarshotError for settings called ``names`` of a provider of this ``kind``."""
    if found := [name for name in names if settings.get(name)]:
        raise EarshotError(
            "provider",
            observed=f"found {', '.join(found)} in the {kind}, which earshot's own calls lack",
            allowed=allowed,
        )
