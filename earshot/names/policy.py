"""The resolvers for the clients of each scope: the policy, its defaults, and real resolvers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

from pydantic import Field, ValidationError, field_validator

from earshot.errors import AddressError
from earshot.json_object import Document
from earshot.listeners.address import check_host
from earshot.listeners.model import Frozen
from earshot.listeners.problems import describe, shown
from earshot.listeners.terms import Scope
from earshot.names.configured import configuration
from earshot.names.invented import DoubtedResolver
from earshot.names.lookup import Lookup, Resolver, literal, look_up, unanswered
from earshot.names.resolvers import SystemResolver, parse_server
from earshot.placement_registry import on_this_machine

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
SYSTEM = "system"
"""The word for getaddrinfo of this machine, in place of a list of servers."""


class WaivedName(Frozen):
    """Why a name is accepted without evidence, and the last day of the waiver."""

    reason: str
    until: date | None = None
    """None for always."""

    @field_validator("reason")
    @classmethod
    def _has_reason(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("a waived name needs a reason")
        return value.strip()

    @field_validator("until", mode="before")
    @classmethod
    def _day(cls, value: object) -> object:
        if isinstance(value, date) or value is None:
            return value
        try:
            if isinstance(value, str) and _DAY.fullmatch(value):
                return date.fromisoformat(value)
        except ValueError:
            pass
        raise ValueError(f"found {value!r}; allowed: a day such as 2027-01-31")

    @property
    def is_over(self) -> bool:
        """True after the last day, in UTC."""
        return self.until is not None and self.until < datetime.now(UTC).date()


class ResolverPolicy(Frozen):
    """Resolvers per scope, time limits, and names that need not resolve here.

    Defaults of a scope without resolvers:

    - `host`, and on placement `local` also `internal` and `controller`: `system`, this machine's
      own lookup with its hosts file, which clients here use.
    - `external`: the DNS servers that this machine is configured with. The hosts file is not used,
      because it is not evidence for other machines.
    - `internal` and `controller` of other placements: no resolver, because this machine is not in
      the brokers' network.

    One server that resolves a name is enough, as the servers are a sample of those that clients
    use. A search domain of this machine counts only for clients here.
    """

    resolvers: dict[Scope, tuple[str, ...]] = Field(default_factory=dict)
    """DNS servers by scope (`ip`, `ip:port`, `[ipv6]:port`), or only the word `system`. All servers
    are queried at the same time."""
    timeout: float = Field(default=5.0, gt=0, le=600, strict=True)
    """Seconds for all lookups together."""
    retry: float = Field(default=0.0, ge=0, le=3600, strict=True)
    """Seconds for which the lookup of a name that does not resolve is repeated: a new record may
    take time to spread."""
    waived: dict[str, WaivedName] = Field(default_factory=dict)
    """Names that are accepted without evidence: the reason, or a map of `reason` and `until`."""

    @field_validator("resolvers", mode="before")
    @classmethod
    def _lists(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {
            k: (servers,) if isinstance(servers, str) else servers for k, servers in value.items()
        }

    @field_validator("resolvers")
    @classmethod
    def _servers(cls, value: dict[Scope, tuple[str, ...]]) -> dict[Scope, tuple[str, ...]]:
        for scope, servers in value.items():
            if SYSTEM in servers and len(servers) > 1:
                server_texts = ", ".join(servers)
                raise ValueError(
                    f"{scope}: `{SYSTEM}` cannot be combined with servers, found {server_texts}"
                )
            for text in servers:
                if text != SYSTEM:
                    _checked(parse_server, text, f"{scope}: ")
        return value

    @field_validator("waived", mode="before")
    @classmethod
    def _reasons(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        problems = [
            f"{k}: found {shown(reason)}; allowed: the reason, or a map of reason and until"
            for k, reason in value.items()
            if not isinstance(reason, str | Mapping | WaivedName)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return {
            k: {"reason": reason} if isinstance(reason, str) else reason
            for k, reason in value.items()
        }

    @field_validator("waived")
    @classmethod
    def _names(cls, value: dict[str, WaivedName]) -> dict[str, WaivedName]:
        for name in value:
            _checked(check_host, name)
        if len({name.lower() for name in value}) < len(value):
            raise ValueError(f"found {', '.join(value)}; allowed: each name once, in any case")
        return {name.lower(): waiver for name, waiver in value.items()}

    @property
    def waivers(self) -> dict[str, str]:
        """The reasons of current waivers, by name in lower case."""
        return {name: waiver.reason for name, waiver in self.waived.items() if not waiver.is_over}

    def waiver(self, host: str) -> str:
        """The waiver's reason for ``host``, or an empty text."""
        waiver = self.waived.get(host.lower())
        return "" if waiver is None or waiver.is_over else waiver.reason

    def expired(self, host: str) -> str:
        """A note that the waiver of ``host`` is over, or an empty text."""
        waiver = self.waived.get(host.lower())
        over = waiver is not None and waiver.is_over
        return f"it was waived until {waiver.until}: {waiver.reason}" if waiver and over else ""


def read_policy(document: Document) -> ResolverPolicy:
    """The policy in ``document``, the value of `names`. Raises ValueError with all problems."""
    try:
        return ResolverPolicy.model_validate(document)
    except ValidationError as error:
        raise ValueError("; ".join(describe(error, ResolverPolicy, document))) from None


class SystemResolvers:
    """The real resolvers for one run. Tests use a double.

    A resolver that has not answered for any name is not used again in later batches. Addresses that
    a resolver invents count as denials.
    """

    @cached_property
    def _silent(self) -> set[str]:
        """Labels of the resolvers that have not answered."""
        return set()

    @cached_property
    def _doubted(self) -> dict[str, DoubtedResolver]:
        """The resolvers by label: one object per label looks its control names up only once."""
        return {}

    def look_up(
        self, questions: Iterable[tuple[str, Resolver]], policy: ResolverPolicy
    ) -> dict[tuple[str, str], Lookup]:
        """`names.lookup.look_up` within the limits of ``policy``."""
        pairs = list(questions)
        open_questions = [
            (name, self.doubted(resolver))
            for name, resolver in pairs
            if resolver.label not in self._silent
        ]
        lookups = look_up(open_questions, policy.timeout, policy.retry)
        answering = {lookup.resolver for lookup in lookups.values() if lookup.answered}
        labels = {label for name, label in lookups if literal(name) is None}
        self._silent.update(labels - answering)
        labelled_names = [(name, resolver.label) for name, resolver in pairs]
        return {
            (name.lower(), label): unanswered(name, label, policy.timeout)
            for name, label in labelled_names
        } | lookups

    def doubted(self, resolver: Resolver) -> Resolver:
        """``resolver``, whose invented addresses count as denials."""
        return self._doubted.setdefault(resolver.label, DoubtedResolver(resolver))

    def resolver(self, policy: ResolverPolicy, scope: Scope, placement: str) -> Resolver | None:
        """The resolver for the clients of ``scope``, or None if there is none."""
        servers = policy.resolvers.get(scope, ())
        if not servers:
            if scope is Scope.HOST or (on_this_machine(placement) and scope is not Scope.EXTERNAL):
                servers = (SYSTEM,)
            elif scope is Scope.EXTERNAL:
                servers = self.configured()
        if not servers:
            return None
        return self.system() if servers == (SYSTEM,) else self.dns(servers)

    def configured(self) -> tuple[str, ...]:
        """This machine's own DNS servers."""
        return configuration().servers

    def search(self) -> tuple[str, ...]:
        """The search domains of this machine, which other machines do not have."""
        return configuration().search

    def system(self) -> Resolver:
        """The resolver of this machine's own clients."""
        return SystemResolver()

    def dns(self, servers: tuple[str, ...]) -> Resolver:
        """The given DNS servers."""
        from earshot.names.nameservers import DnsResolver  # slow to import

        return DnsResolver(servers)


def _checked(check: Any, text: str, prefix: str = "") -> None:
    """Raises ValueError, with ``prefix`` before its message, if ``check`` refuses ``text``."""
    try:
        check(text)
    except AddressError as error:
        raise ValueError(f"{prefix}{error.line}") from None
