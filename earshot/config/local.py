"""`earshot:cluster` with placement local: brokers as processes of this machine."""

from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, field_validator, model_validator

from earshot.config.cluster import ClusterSpec, Heap
from earshot.config.removal import UNUSED, Remove
from earshot.listeners.address import check_host
from earshot.listeners.problems import refuse, reraised, shown
from earshot.listeners.terms import Scope


class LocalSpec(ClusterSpec):
    """Brokers as processes of this machine."""

    PLAINTEXT_QUORUM: ClassVar[bool] = True

    placement: Literal["local"]
    external_host: Annotated[str, AfterValidator(partial(reraised, check_host))] | None = None
    """A name that other machines use for this one; scope `host` then becomes `external`."""
    heap: Heap = "256m"
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the brokers' data."""
    client_config: str = ""
    """A file of Kafka's client properties, from the project's folder on: who earshot comes in as
    where listeners ask for credentials, and there is no `security`; empty: nobody."""
    remove: Remove = UNUSED
    """When a listener that a change takes away may go: unused, anyway, or from a date on."""

    @model_validator(mode="after")
    def _widen(self) -> Self:
        if self.external_host is not None:
            widened = tuple(item.rescoped(Scope.HOST, Scope.EXTERNAL) for item in self.listeners)
            object.__setattr__(self, "listeners", widened)
        return self

    @model_validator(mode="after")
    def _one_validator(self) -> Self:
        if self.client_config and self.security is not None:
            found = "client_config: found beside `security`, whose own user proves the listeners; "
            refuse([f"{found}allowed: one of the two"])
        return self

    @field_validator("client_config")
    @classmethod
    def _path(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError(f"found {shown(value)}; allowed: a file's path, in one line")
        return value


MODEL = LocalSpec
