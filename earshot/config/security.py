"""`security` of a cluster: TLS with the stack's own certificates, users, ACLs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from earshot.certificates.places import NODE, is_in_aws, is_private_ca, problem
from earshot.config.listener import ListenerSpec
from earshot.listeners.model import Frozen, whole_number
from earshot.listeners.problems import refuse, repeated, shown
from earshot.listeners.security import (
    ANONYMOUS,
    AUTHORIZER,
    OAUTHBEARER,
    VALIDATOR,
    is_computed,
    is_token_url,
    token_listener,
)
from earshot.listeners.terms import ClientAuth, Mechanism, Protocol

_USER = re.compile(r"[a-z][a-z0-9._-]{0,63}", re.ASCII)
_KEY_STORE = re.compile(r"node-\d+", re.ASCII)
_OF_OTHERS = ("GSSAPI", OAUTHBEARER)
"""Mechanisms of Kafka for which `security` cannot create users."""
_AUTHORIZER = "authorizer.class.name"
_SUPER_USERS = "super.users"
_ANYONE = "allow.everyone.if.no.acl.found"
_TOKEN_URL = re.compile(r"(?:https?|file)://[A-Za-z0-9._~:/?#@!&()*+;=%\[\]-]+", re.ASCII)
_REGION = re.compile(r"[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}", re.ASCII)
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,200}", re.ASCII)
Days = Annotated[int, BeforeValidator(whole_number)]
Number = Annotated[int, BeforeValidator(whole_number), Field(ge=1, le=9999)]


class GivenSpec(Frozen):
    """Node certificates that were issued elsewhere, as PEM, or that a private CA issues.

    Each is in a file (relative to the project), an SSM parameter (`ssm:NAME`) or a secret of
    Secrets Manager (`secretsmanager:NAME`).
    """

    certificate: str = ""
    """Place of the node's certificate chain as PEM, the node's own first: a file relative to the
    project, `ssm:NAME` or `secretsmanager:NAME`; `{node}` is replaced by the node's id."""
    key: str = ""
    """Place of the private key. Default: with the certificate."""
    authority: str = ""
    """Place of the certificates of the authority that clients trust."""
    password: str = ""
    """Place of the password of the private keys. Default: they have none."""
    region: str = ""
    """The AWS region of places in AWS. Default: the environment's."""
    private_ca: str = ""
    """The ARN of a private CA of AWS Certificate Manager that issues a certificate per node;
    replaces the other keys."""

    @field_validator("certificate", "key", "authority", "password")
    @classmethod
    def _is_place(cls, value: str) -> str:
        refuse(filter(None, [problem(value)]))
        return value

    @field_validator("authority", "password")
    @classmethod
    def _of_all_nodes(cls, value: str) -> str:
        if NODE in value:
            problems = f"found {NODE}, which belongs in `certificate` and `key`"
            raise ValueError(f"{problems}; allowed: one place for all nodes")
        return value

    @field_validator("private_ca")
    @classmethod
    def _is_ca(cls, value: str) -> str:
        if not is_private_ca(value):
            raise ValueError(
                f"found {shown(value)}; allowed: an ARN, "
                "arn:aws:acm-pca:REGION:ACCOUNT:certificate-authority/ID"
            )
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.private_ca and (other_keys := self.model_fields_set - {"private_ca"}):
            given_keys = f"found private_ca and {', '.join(sorted(other_keys))}"
            raise ValueError(
                f"{given_keys}; allowed: only private_ca, or only places of certificates"
            )
        if not self.private_ca:
            missing_keys = [key for key in ("certificate", "authority") if not getattr(self, key)]
            refuse(f"{key}: is missing" for key in missing_keys)
        if self.region and not _REGION.fullmatch(self.region):
            raise ValueError(
                f"region: found {shown(self.region)}; allowed: one of AWS, such as eu-central-1"
            )
        places = (self.certificate, self.key, self.authority, self.password)
        if self.region and not any(map(is_in_aws, places)):
            allowed = "a place in SSM or Secrets Manager, or no region"
            raise ValueError(f"region: found where all are files; allowed: {allowed}")
        return self


class TlsSpec(Frozen):
    """Where certificates come from, and how long they last."""

    model_config = ConfigDict(populate_by_name=True)  # `from` is a keyword of Python

    issue: Literal["stack"] = "stack"
    """stack: the stack's own authority issues a certificate per node and user."""
    files: GivenSpec | None = Field(default=None, alias="from")
    """The source of node certificates, if not the stack's authority, which always issues those of
    users."""
    days: Days = Field(default=397, ge=2, le=3650)
    """Days for which an issued certificate is valid."""
    renew_days: Days = Field(default=30, ge=1)
    """An update renews certificates that are valid for no more than this number of days."""
    authorities: tuple[Number, ...] = Field(default=(1,), min_length=1, max_length=2)
    """Numbers of the stack's authorities: the first one issues, all are trusted."""

    @property
    def private_ca(self) -> str:
        """The ARN of the private CA that issues nodes' certificates, or empty."""
        return self.files.private_ca if self.files is not None else ""

    @field_validator("authorities")
    @classmethod
    def _each_once(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError(f"found {value[0]} twice; allowed: different numbers")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.files is not None and "issue" in self.model_fields_set:
            raise ValueError("found `issue` and `from`; allowed: one of them")
        if self.renew_days >= self.days:
            problems = f"found {self.renew_days} for certificates of {self.days} days"
            raise ValueError(f"renew_days: {problems}; allowed: fewer days than they last")
        return self


class UserSpec(Frozen):
    """A client with its own password, and its permissions."""

    name: str
    """The user's name."""
    prefixes: tuple[str, ...] = ()
    """The user may do everything with topics, groups and transactional ids whose names begin with
    one of these prefixes, and nothing else."""

    @field_validator("name")
    @classmethod
    def _usable(cls, value: str) -> str:
        if not _USER.fullmatch(value):
            raise ValueError(
                f"found {shown(value)}; allowed: lower-case letters, digits, dots, hyphens and "
                "underscores, beginning with a letter, 64 in all"
            )
        if value == VALIDATOR:
            raise ValueError(
                f"found {VALIDATOR}, a user that every secured cluster has for earshot"
            )
        if value in ("ca", "trusted"):
            raise ValueError(f"found {value}, which is the name of the authority's files")
        if _KEY_STORE.fullmatch(value):
            raise ValueError(f"found {value}, which is the name of a node's key store")
        return value

    @field_validator("prefixes")
    @classmethod
    def _of_topics(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        refuse(
            f"found {shown(prefix)}; allowed: characters of a topic's name, at least one"
            for prefix in value
            if not _PREFIX.fullmatch(prefix)
        )
        return tuple(dict.fromkeys(value))


class SecuritySpec(Frozen):
    """TLS, users and ACLs of a cluster; without it listeners have their `protocol`."""

    tls: TlsSpec = TlsSpec()
    """Where certificates come from, and how long they are valid."""
    mechanism: Mechanism = Mechanism.SCRAM_SHA_512
    """The SASL mechanism of SASL_SSL listeners."""
    users: tuple[UserSpec, ...] = ()
    """The clients that log in, in addition to earshot's own user `validator`."""
    password_numbers: dict[str, Number] = Field(default_factory=dict)
    """By user, the number of the password; another number makes an update generate another
    password. Default: 1."""

    @field_validator("mechanism", mode="before")
    @classmethod
    def _of_users_of_kafkas(cls, value: object) -> object:
        if value in _OF_OTHERS:
            raise ValueError(
                f"found {value!r}, whose users Kafka does not store; allowed: "
                f"{' or '.join(Mechanism)}, in addition to which `extra` can enable {OAUTHBEARER} "
                "(see docs/security.md); or no `security`, with `protocol` and `extra` for the "
                "authentication"
            )
        return value

    @field_validator("password_numbers", mode="before")
    @classmethod
    def _no_passwords(cls, value: object) -> object:
        if isinstance(value, Mapping):
            refuse(
                f"{shown(name)}: found a text; allowed: a whole number; a password of your own is "
                "in the stack's configuration (see docs/users.md)"
                for name, number in value.items()
                if isinstance(number, str) and not number.isdecimal()
            )
        return value

    @field_validator("users")
    @classmethod
    def _distinct(cls, value: tuple[UserSpec, ...]) -> tuple[UserSpec, ...]:
        repeated_names = repeated(user.name for user in value)
        refuse(f"{name} occurs {times} times" for name, times in repeated_names)
        return value

    @model_validator(mode="after")
    def _of_users(self) -> Self:
        users = ", ".join(self.user_names)
        refuse(
            f"password_numbers: found {shown(name)}, which is not a user; allowed: {users}"
            for name in self.password_numbers
            if name not in self.user_names
        )
        return self

    @property
    def user_names(self) -> tuple[str, ...]:
        """The names of all users that log in: the validator and the stack's users."""
        return (VALIDATOR, *(user.name for user in self.users))


def token_problems(extra: Mapping[str, str]) -> Iterator[str]:
    """Why token settings in ``extra`` cannot be JVM options, a text each."""
    for key, value in extra.items():
        if is_token_url(key) and not _TOKEN_URL.fullmatch(value):
            yield f"extra: {key}: found {shown(value)}; allowed: a URL of https, http or file"


def authorizer_problems(controllers: str, extra: Mapping[str, str]) -> Iterator[str]:
    """Why the authorizer in ``extra`` would refuse nodes access to the quorum.

    ``controllers`` is the quorum's plaintext listener. A controller ends if another one refuses its
    request.
    """
    users = extra.get(_SUPER_USERS, "")
    unknown = "${" in users or any(key.endswith("principal.builder.class") for key in extra)
    anyone = extra.get(_ANYONE, "").strip().lower() == "true"
    if extra.get(_AUTHORIZER, "").strip() != AUTHORIZER or unknown or anyone:
        return
    if (anonymous_user := f"User:{ANONYMOUS}") not in map(str.strip, users.split(";")):
        yield (
            f"extra: {_SUPER_USERS}: found {users or 'none'} with the {_AUTHORIZER} {AUTHORIZER}; "
            f"allowed: {anonymous_user} among them, as which nodes reach the quorum through "
            f"{controllers} "
            f'in plain text, or {_ANYONE}: "true"'
        )


def security_problems(
    listeners: Iterable[ListenerSpec],
    inter_broker: str,
    controllers: Protocol,
    extra: Mapping[str, str],
) -> Iterator[str]:
    """Listeners and extra properties that conflict with `security`, a text each.

    A client without TLS or credentials is anonymous and has no ACLs. So neither nodes nor clients
    could do anything on such a listener.
    """
    allowed, required = (Protocol.SSL, Protocol.SASL_SSL), ClientAuth.REQUIRED
    for listener in listeners:
        key, protocol = f"listeners.{listener.name}", listener.protocol
        if listener.name == inter_broker and protocol is not Protocol.SSL:
            problem = f"found {protocol} between brokers of a cluster with `security`"
            allow = f"{Protocol.SSL}, where they show certificates"
            yield f"{key}.protocol: {problem}; allowed: {allow}"
        elif protocol not in allowed:
            problem = f"found {protocol} in a cluster with `security`, whose clients authenticate"
            yield f"{key}.protocol: {problem}; allowed: {', '.join(allowed)}"
        elif protocol is Protocol.SSL and (listener.client_auth or required) is not required:
            problem = f"found {listener.client_auth} with {protocol}"
            why = "where only a certificate authenticates a client"
            yield f"{key}.client_auth: {problem}, {why}; allowed: {required}"
        if listener.mechanism is not None and not protocol.sasl:
            problem = f"found {listener.mechanism} with {protocol}, where clients do not log in"
            yield f"{key}.mechanism: {problem}; allowed: with {Protocol.SASL_SSL}"
    if controllers not in (Protocol.SSL, Protocol.PLAINTEXT):
        yield (
            f"controllers.protocol: found {controllers} in a cluster with `security`; "
            f"allowed: {Protocol.SSL}, where nodes show certificates, or {Protocol.PLAINTEXT} as "
            "long as a cluster that was in plain text is not stopped"
        )
    for key in filter(is_computed, extra):
        yield f"extra: {key} is computed by earshot where there is `security`"
    logins = {
        listener.name.lower() for listener in listeners if listener.protocol is Protocol.SASL_SSL
    }
    for key in extra:
        if (name := token_listener(key)) and name not in logins:
            problem = f"found {key}, and no listener {name.upper()} with logins"
            listener_names = ", ".join(sorted(logins)) or "none, as no listener is SASL_SSL"
            yield f"extra: {problem}; allowed: {listener_names}"
