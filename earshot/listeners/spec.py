"""`earshot:cluster` of a stack file, as one frozen model; errors name key, finding, allowance.

`read_spec` is the only way in; what it lets through can be planned for its placement's names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, field_validator, model_validator

from earshot.errors import EarshotError, SpecError
from earshot.listeners.address import Address, check_host, parse_address
from earshot.listeners.model import (
    CLIENT_SCOPES,
    BindHost,
    Frozen,
    ListenerName,
    Port,
    Protocol,
    Scope,
)
from earshot.listeners.owned import owner_of

MAX_BROKERS = 1000
FIRST_SEPARATE_CONTROLLER = 10_001
"""Node ids of separate controllers start here, so that brokers can grow without a clash."""

DEFAULT_KAFKA = "4.1.1"
_VERSION = re.compile(r"(3\.9|4\.\d+)\.\d+", re.ASCII)
_SIZE = re.compile(r"[1-9]\d*[mg]", re.ASCII)


class ListenerSpec(Frozen):
    """One listener, for all brokers."""

    name: ListenerName
    port: Port
    scopes: tuple[Scope, ...] = Field(min_length=1)
    protocol: Protocol = Protocol.PLAINTEXT
    bind: BindHost | None = None
    """Interface address to bind; default: what the placement thinks right for the scopes."""
    advertised: dict[int, str] = Field(default_factory=dict)
    """By broker id, a `host` or `host:port` to advertise instead of the provisioned name."""

    @field_validator("scopes", mode="before")
    @classmethod
    def _one_or_more(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("scopes")
    @classmethod
    def _client_scopes(cls, value: tuple[Scope, ...]) -> tuple[Scope, ...]:
        if Scope.CONTROLLER in value:
            raise ValueError("scope 'controller' belongs to the key `controllers`")
        if len(set(value)) != len(value):
            raise ValueError("a scope is named twice")
        return tuple(scope for scope in CLIENT_SCOPES if scope in value)

    @field_validator("advertised")
    @classmethod
    def _addresses(cls, value: dict[int, str]) -> dict[int, str]:
        for text in value.values():
            try:
                override(text)
            except EarshotError as error:
                raise ValueError(error.line) from None
        return value

    def widened(self) -> ListenerSpec:
        """The same listener, for clients beyond this host where it was for those on it."""
        scopes = {Scope.EXTERNAL if item is Scope.HOST else item for item in self.scopes}
        ordered = tuple(scope for scope in CLIENT_SCOPES if scope in scopes)
        return self.model_copy(update={"scopes": ordered})


class ControllerSpec(Frozen):
    """The KRaft quorum: on the first brokers, or on nodes of its own."""

    mode: Literal["combined", "separate"] = "combined"
    count: int | None = Field(default=None, ge=1, le=9)
    """Voters; default: 3 where there are at least three brokers or the mode is separate, else 1."""
    name: ListenerName = "CONTROLLER"
    port: Port = 29092
    protocol: Protocol = Protocol.PLAINTEXT

    @field_validator("count")
    @classmethod
    def _odd(cls, value: int | None) -> int | None:
        if value is not None and value % 2 == 0:
            raise ValueError("an even number of voters survives no more failures than one less")
        return value


class ValidationSpec(Frozen):
    """How the stack proves its listeners after a deploy."""

    records: int = Field(default=3000, ge=1, le=10_000_000)
    """Records in all, in equal shares per producing listener."""
    deadline: int = Field(default=300, ge=10, le=3600)
    """Seconds for the whole run."""


class _ClusterSpec(Frozen):
    brokers: int = Field(default=3, ge=1, le=MAX_BROKERS)
    kafka_version: str = DEFAULT_KAFKA
    listeners: tuple[ListenerSpec, ...] = (
        ListenerSpec(name="INTERNAL", port=19092, scopes=(Scope.INTERNAL,)),
        ListenerSpec(name="EXTERNAL", port=9092, scopes=(Scope.HOST,)),
    )
    inter_broker: ListenerName | None = None
    """Default: the first listener of scope internal."""
    controllers: ControllerSpec = ControllerSpec()
    replication_factor: int | None = Field(default=None, ge=1)
    """Default: 3, or the number of brokers where that is less."""
    min_insync_replicas: int | None = Field(default=None, ge=1)
    """Default: one less than the replication factor, at least 1."""
    extra: dict[str, str] = Field(default_factory=dict)
    """Further broker properties; keys that earshot computes are refused."""
    gate: Literal["required", "off"] = "required"
    validation: ValidationSpec = ValidationSpec()

    @field_validator("kafka_version", mode="before")
    @classmethod
    def _supported(cls, value: Any) -> Any:
        if not isinstance(value, str) or not _VERSION.fullmatch(value):
            raise ValueError(f"Kafka {value!r}: allowed are 3.9.x and 4.x.y, as text in quotes")
        return value

    @field_validator("gate", mode="before")
    @classmethod
    def _yaml_off(cls, value: Any) -> Any:
        # YAML 1.1 reads a bare `off` as false
        return "off" if value is False else value

    @field_validator("extra", mode="before")
    @classmethod
    def _plain_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise ValueError("a map of broker properties")
        return {key: _property(str(key), item) for key, item in value.items()}

    @field_validator("listeners")
    @classmethod
    def _distinct(cls, value: tuple[ListenerSpec, ...]) -> tuple[ListenerSpec, ...]:
        if not value:
            raise ValueError("there must be at least one listener")
        names = [item.name for item in value]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ValueError(f"listener {', '.join(repeated)} is defined twice; names are distinct")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = list(self._problems())
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _problems(self) -> Any:
        names = [item.name for item in self.listeners]
        if not any(Scope.INTERNAL in item.scopes for item in self.listeners):
            yield (
                f"listeners: none of {', '.join(names)} has the scope internal, "
                "and the brokers need one to reach each other"
            )
        if self.inter_broker is not None and self.inter_broker not in names:
            yield f"inter_broker: {self.inter_broker} is none of {', '.join(names)}"
        if self.controllers.name in names:
            yield f"controllers.name: {self.controllers.name} is a client listener's name already"
        if self.controllers.mode == "combined" and (self.controllers.count or 1) > self.brokers:
            yield (
                f"controllers.count: {self.controllers.count} voters on {self.brokers} broker(s); "
                "a combined quorum has at most as many voters as there are brokers"
            )
        if (self.replication_factor or 1) > self.brokers:
            yield (
                f"replication_factor: {self.replication_factor} replicas "
                f"on {self.brokers} broker(s)"
            )
        if self.min_insync > self.replicas:
            yield (
                f"min_insync_replicas: {self.min_insync} of {self.replicas} replicas; "
                "no record could ever be acknowledged"
            )
        for item in self.listeners:
            unknown = sorted(set(item.advertised) - set(self.broker_ids))
            if unknown:
                yield f"listeners.{item.name}.advertised: no broker has the id {unknown[0]}"

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(range(1, self.brokers + 1))

    @property
    def voters(self) -> int:
        if self.controllers.count is not None:
            return self.controllers.count
        return 3 if self.brokers >= 3 or self.controllers.mode == "separate" else 1

    @property
    def controller_ids(self) -> tuple[int, ...]:
        if self.controllers.mode == "combined":
            return self.broker_ids[: self.voters]
        first = FIRST_SEPARATE_CONTROLLER
        return tuple(range(first, first + self.voters))

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Every Kafka process of the cluster, brokers first."""
        return tuple(dict.fromkeys((*self.broker_ids, *self.controller_ids)))

    @property
    def inter_broker_name(self) -> str:
        if self.inter_broker is not None:
            return self.inter_broker
        return next(item.name for item in self.listeners if Scope.INTERNAL in item.scopes)

    @property
    def replicas(self) -> int:
        return self.replication_factor or min(3, self.brokers)

    @property
    def min_insync(self) -> int:
        return self.min_insync_replicas or max(1, self.replicas - 1)


class LocalSpec(_ClusterSpec):
    """Brokers as processes of this machine."""

    placement: Literal["local"]
    external_host: str | None = None
    """A name that other machines use for this one; scope `host` then becomes `external`."""
    heap: str = "256m"
    """Of each JVM."""
    data: Literal["keep", "delete"] = "keep"
    """What `pulumi destroy` does with the brokers' data."""

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
        except EarshotError as error:
            raise ValueError(error.line) from None

    @field_validator("heap")
    @classmethod
    def _size(cls, value: str) -> str:
        if not _SIZE.fullmatch(value):
            raise ValueError(f"heap {value!r}: a JVM size such as 256m or 1g")
        return value


ClusterSpec = Annotated[LocalSpec, Field(discriminator="placement")]
PLACEMENTS = ("local",)
_SPEC: TypeAdapter[LocalSpec] = TypeAdapter(LocalSpec)


def override(text: str) -> Address | str:
    """An `advertised` override: a host, or an Address where a port stands with it."""
    if text.count(":") == 1 or (text.startswith("[") and not text.endswith("]")):
        return parse_address(text)
    return check_host(text)


def read_spec(value: object, source: str) -> LocalSpec:
    """The cluster that ``value`` (parsed YAML or JSON) describes.

    ``source`` says where it stands ("stacks/Pulumi.local.yaml, earshot:cluster").
    Raises SpecError with every problem found, each with its key.
    """
    if not isinstance(value, Mapping):
        raise SpecError(
            source,
            observed=f"found {_shown(value)}",
            allowed="a map of settings with at least `placement`",
            remedy="see the comments in stacks/Pulumi.local.yaml",
        )
    placement = value.get("placement")
    if placement not in PLACEMENTS:
        raise SpecError(
            f"{source}: placement",
            observed=f"found {_shown(placement)}" if "placement" in value else "is missing",
            allowed=", ".join(PLACEMENTS),
        )
    try:
        return _SPEC.validate_python(value)
    except ValidationError as error:
        raise SpecError.of(source, (_problem(item) for item in error.errors())) from None


def _problem(item: Any) -> str:
    key = ".".join(str(part) for part in item["loc"] if part != "[key]")
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        message = "is no key that earshot knows"
    elif item["type"] not in ("value_error", "missing"):
        message += f", found {_shown(item['input'])}"
    return f"{key}: {message}" if key else message


def _property(key: str, value: Any) -> str:
    owner = owner_of(key)
    if owner:
        raise ValueError(f"{key} is computed by earshot; {owner}")
    if isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, (str, int, float)):
        text = str(value)
    else:
        raise ValueError(f"{key}: a property is one line of text, found {_shown(value)}")
    if not re.fullmatch(r"[A-Za-z0-9._-]+", key, re.ASCII):
        raise ValueError(f"{key!r} is no property name: letters, digits, dot, hyphen, underscore")
    if re.search(r"[\r\n\\]", text) or text != text.strip():
        raise ValueError(
            f"{key}: line breaks, backslashes and outer blanks do not survive a properties file"
        )
    return text


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
