"""A kind of custom resource, called as the plugin's host calls it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from earshot_pulumi.aws_settings import SETTINGS
from earshot_pulumi.provider.kind import InvalidInputs, Kind, Operation, Properties


@dataclass(frozen=True)
class Checked:
    """What a check returns."""

    inputs: Properties
    failures: list[str]


@dataclass(frozen=True)
class Made:
    """What a create, an update or a read returns; without an id the resource is gone."""

    id: str
    outs: Properties


@dataclass(frozen=True)
class Called:
    """The calls of one kind; lines that it logs are printed."""

    kind: Kind
    config: Mapping[str, Any] = field(default_factory=dict)
    """The stack's configuration after the check of an update."""

    def check(self, olds: Properties, news: Properties) -> Checked:
        news = dict(news)
        try:
            return Checked(self.kind.check(self._operation(), olds, news), [])
        except InvalidInputs as error:
            return Checked(news, list(error.reasons.values()))

    def differs(self, olds: Properties, news: Properties) -> bool:
        return self.kind.diff(self._operation(), olds, news).changed

    def create(self, news: Properties, *, preview: bool = False) -> Made:
        return Made(*self.kind.create(self._operation(preview), news))

    def update(self, olds: Properties, news: Properties) -> Made:
        return Made("", self.kind.update(self._operation(), olds, news))

    def read(self, olds: Properties) -> Properties | None:
        return self.kind.read(self._operation(), olds)

    def delete(self, olds: Properties) -> None:
        self.kind.delete(self._operation(), olds)

    def delete_before_replacement(self, olds: Properties) -> None:
        self.kind.delete_before_replacement(self._operation(), olds)

    def _operation(self, preview: bool = False) -> Operation:
        urn = "urn:pulumi:s::earshot::earshot:index:Resource::name"
        checked = {f"{SETTINGS} {urn}": self.config.get(SETTINGS, {})}
        return Operation(urn, preview=preview, config={**self.config, **checked})
