"""`earshot:cluster` with placement local: brokers as processes of this machine."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from earshot.config.cluster import ClusterSpec, Heap
from earshot.config.removal import UNUSED, Remove
from earshot.errors import AddressError
from earshot.listeners.address import check_host


class LocalSpec(ClusterSpec):
    """Brokers as processes of this machine."""

    SECURES: ClassVar[bool] = True

    placement: Literal["local"]
    external_host: str | None = None
    """A name that other machines use for this one; scope `host` then becomes `external`."""
    heap: Heap = "256m"
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the brokers' data."""
    remove: Remove = UNUSED
    """When a listener that a change takes away may go: unused, anyway, or from a date on."""

    @model_validator(mode="after")
    def _widen(self) -> Self:
        if self.external_host is not None:
            widened = tuple(item.widened() for item in self.listeners)
            object.__setattr__(self, "listeners", widened)
        return self

    @field_validator("external_host")
    @classmethod
    def _host(cls, value: str | None) -> str | None:
        try:
            return None if value is None else check_host(value)
        except AddressError as error:
            raise ValueError(error.line) from None


MODEL = LocalSpec
