"""The part of `earshot:cluster` with placement aws about the validator in the VPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from earshot.config.aws_parts import InstanceSpec, ParameterName
from earshot.config.cluster import Whole
from earshot.config.kafka_release import FileName
from earshot.listeners.model import Frozen
from earshot.listeners.owned import check_property
from earshot.listeners.problems import refuse, shown
from earshot.listeners.secrets import revealed


class ValidatorInstanceSpec(Frozen):
    """An instance of its own, without a public address, that proves the internal scope."""

    instance: InstanceSpec = InstanceSpec(type="t4g.medium")
    """Spark takes two GiB of memory."""
    every: Whole = Field(default=60, ge=5, le=1440)
    """Minutes after which it validates again, where no deploy asked for it."""
    keep_days: Whole = Field(default=30, ge=1, le=3650)
    """How long its dated reports are kept."""
    client: dict[str, str] = Field(default_factory=dict)
    """Kafka's client properties, where an internal listener takes TLS or SASL."""
    secrets: dict[FileName, ParameterName] = Field(default_factory=dict)
    """By file name below /run/earshot/secrets, the SSM parameter that holds it."""

    @field_validator("client")
    @classmethod
    def _plain(cls, value: dict[str, str]) -> dict[str, str]:
        refuse([f"{key} would reveal a secret" for key in revealed(value)])
        return {key: check_property(key, item) for key, item in value.items()}

    @model_validator(mode="after")
    def _no_id(self) -> ValidatorInstanceSpec:
        refuse(
            f"secrets.{name}: found {parameter}; allowed: a name without {{id}}, for there is one "
            "validator"
            for name, parameter in self.secrets.items()
            if "{" in parameter
        )
        return self


def on_or_off(value: Any) -> Any:
    """`validator: true` is one with every default, false is none."""
    if isinstance(value, bool):
        return {} if value else None
    if value is None or isinstance(value, (Mapping, ValidatorInstanceSpec)):
        return value
    raise ValueError(f"found {shown(value)}; allowed: true, false or a map of settings")
