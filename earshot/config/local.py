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
    """Where brokers run: local, as processes of this machine."""
    external_host: Annotated[str, AfterValidator(partial(reraised, check_host))] | None = None
    """A name under which other machines reach this one. Listeners of scope host then serve scope
    external and bind all interfaces."""
    heap: Heap = "256m"
    """The heap of each JVM, as `-Xmx` takes it, such as 256m or 1g."""
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the brokers' data: keep or delete."""
    client_config: str = ""
    """A file with Kafka client properties, relative to the project. earshot logs in with them where
    listeners ask for credentials and there is no `security`."""
    remove: Remove = UNUSED
    """When a listener that a change removes goes: unused (once no client is connected), anyway, or
    from a date on (UTC, such as 2030-12-31)."""

    @model_validator(mode="after")
    def _widen(self) -> Self:
        if self.external_host is not None:
            widened = tuple(
                listener.rescoped(Scope.HOST, Scope.EXTERNAL) for listener in self.listeners
            )
            object.__setattr__(self, "listeners", widened)
        return self

    @model_validator(mode="after")
    def _one_validator(self) -> Self:
        if self.client_config and self.security is not None:
            problem = "client_config: found with `security`, whose user validates the listeners"
            refuse([f"{problem}; allowed: one of the two"])
        return self

    @field_validator("client_config")
    @classmethod
    def _path(cls, value: str) -> str:
        if not value.isprintable():
            raise ValueError(f"found {shown(value)}; allowed: a file's path, in one line")
        return value


MODEL = LocalSpec
