"""librdkafka at one boundary: how its clients are configured, and what its errors mean.

A user hands over Kafka's own client properties (what `--command-config` takes, and what Spark takes
behind `kafka.`); librdkafka gets their translation. Of the errors of a client the first specific
one explains the rest: `_ALL_BROKERS_DOWN` and time-outs only follow it.
"""

from __future__ import annotations

import re
import stat
import textwrap
import threading
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from earshot.errors import EarshotError
from earshot.listeners.address import Address
from earshot.listeners.listed import clipped
from earshot.listeners.terms import Protocol
from earshot.validation.failure import Failure as Failure
from earshot.validation.failure import refuses_certificate
from earshot.validation.jaas import read_jaas

FAST: Final[Mapping[str, Any]] = {
    "client.id": "earshot",
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "allow.auto.create.topics": False,
    "log_level": 0,
}
"""librdkafka's defaults suit daemons; a probe wants its answer now, and retries soon.
A producer would also create the topic that it asks for."""

LONGEST_TEXT: Final = 500
"""Characters of an error: part of it is what a peer has sent."""
_RENAMED: Final = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    # a PEM key store is one file with the key and its chain
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
_STORE_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")
_JAVAS_OWN: Final = (
    *("security.providers", "ssl.protocol", "ssl.enabled.protocols", "ssl.provider"),
    *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
    "ssl.secure.random.implementation",
)
"""How Java does TLS; it says nothing about trusted authorities or the client's identity."""
_SECURITY: Final = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")
_CONNECTING: Final = ("client.", "broker.", "api.version.", "socket.", "connections.")
_PATIENCE: Final = frozenset({"request.timeout.ms", "default.api.timeout.ms"})


def connecting(client: Mapping[str, str]) -> dict[str, str]:
    """Those of ``client`` that say how a client connects, its identity, and how long it waits.

    What an application sets besides is for its own records: a `transactional.id`, a serializer,
    how long it collects them. A probe that took it over would fail where the cluster is well.
    """
    return {
        key: value
        for key, value in client.items()
        if key.startswith((*_SECURITY, *_CONNECTING)) or key in _PATIENCE
    }


def translate(client: Mapping[str, str]) -> dict[str, Any]:
    """The `connecting` ones of Kafka's client properties in librdkafka's words.

    What it names alike passes unchanged. What only Java's clients know is left out, unless it is
    about security. Raises EarshotError for what librdkafka has no counterpart of (a JKS store).
    """
    for key in ("ssl.truststore", "ssl.keystore"):
        kind = client.get(f"{key}.type", "JKS").upper()
        if f"{key}.location" in client and kind != "PEM":
            raise EarshotError(
                f"client property {key}.location",
                observed=f"is a store of the type {kind}",
                allowed=f"a PEM file, said by {key}.type=PEM: Java's clients read those too",
                remedy="openssl pkcs12 -in STORE -out STORE.pem -nodes",
            )
    values: dict[str, Any] = {}
    for key, value in connecting(client).items():
        if key in _STORE_TYPES or key in _JAVAS_OWN:
            continue
        if not (key.startswith(_SECURITY) or _is_known(key)):
            continue
        if key == "sasl.jaas.config":
            values |= _credentials(value)
        elif key == "ssl.endpoint.identification.algorithm":
            values[key] = value or "none"
        else:
            text = _PEM_ON_ONE_LINE.sub(_with_lines, value)
            values |= dict.fromkeys(_RENAMED.get(key, (key,)), text)
            if key.endswith(".location") and _is_special(text):
                raise EarshotError(
                    f"client property {key}",
                    observed=f"{clipped(text, 255)} is not a regular file",
                    allowed="a PEM file",
                )
    return values


def _is_special(path: str) -> bool:
    """Whether ``path`` is a pipe or device: OpenSSL would wait for its first byte or its end."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


_PEM_ON_ONE_LINE: Final = re.compile(
    r"(?P<begin>-----BEGIN (?P<what>[A-Z ]+)-----) +(?P<body>[\w+/= ]+?) +"
    r"(?P<end>-----END (?P=what)-----) *",
    re.ASCII,
)
"""As lines that end in a backslash give it; Kafka takes any space for the end of a line."""


def _with_lines(match: re.Match[str]) -> str:
    lines = textwrap.wrap(match["body"].replace(" ", ""), 64)
    return "\n".join((match["begin"], *lines, match["end"], ""))


@lru_cache(maxsize=1024)
def _is_known(key: str) -> bool:
    """Whether librdkafka has a property ``key``: only it can tell."""
    try:
        Producer({"log_level": 0, key: ""})
    except KafkaException as error:
        return "No such configuration property" not in failure_of(error).text
    except (AttributeError, TypeError, ValueError):  # a function or a dictionary, not a text
        return False
    return True


def configuration(
    bootstrap: str, protocol: Protocol | None, client: Mapping[str, str]
) -> dict[str, Any]:
    """Settings of one librdkafka client.

    ``bootstrap`` is `host:port,…`. ``protocol`` is the listener's own and wins over the user's
    `security.protocol`, which counts where no contract says it (None). Raises EarshotError as
    `translate` does.
    """
    values = {**FAST, **translate(client), "bootstrap.servers": bootstrap}
    return values if protocol is None else values | {"security.protocol": str(protocol)}


def protocol_of(client: Mapping[str, str]) -> Protocol:
    """The protocol that the user's properties ask for; raises EarshotError for an unknown one."""
    text = client.get("security.protocol", "PLAINTEXT").upper()
    try:
        return Protocol(text)
    except ValueError:
        raise EarshotError(
            "client property security.protocol", observed=repr(text), allowed=", ".join(Protocol)
        ) from None


class Errors:
    """An `error_cb` that keeps what a client reports; call the client's `poll` to be served.

    With ``asked``, only what concerns that address: a client also connects to brokers that it has
    just learned of, and an error there says nothing about the broker that named them.
    """

    def __init__(self, asked: Address | None = None) -> None:
        self._asked = asked
        self._lock = threading.Lock()
        self._seen: list[Failure] = []

    def __call__(self, error: KafkaError) -> None:
        failure = failure_of(error)
        met = _PEER.search(failure.text) if self._asked is not None else None
        if met is not None and met["name"] != str(self._asked):
            return
        with self._lock:
            self._seen.append(failure)

    def first(self) -> Failure | None:
        """The first specific error."""
        with self._lock:
            return next((failure for failure in self._seen if failure.error != "unreachable"), None)

    def explain(self, error: BaseException) -> Failure:
        """The first specific error, or ``error`` itself (of librdkafka) where there is none."""
        return self.first() or failure_of(error)


class EachErrors(dict[int, Errors]):
    """An `error_cb` of a client of several brokers, by number: each keeps what concerns it."""

    def __call__(self, error: KafkaError) -> None:
        for errors in self.values():
            errors(error)


_PEER: Final = re.compile(r"(?:^|://)(?P<name>[^\s/]+)/(?:bootstrap|-?\d+): ")
"""How librdkafka begins an error of a connection: `ssl://host:port/id: `, and without the protocol
where that is PLAINTEXT."""

_ELAPSED: Final = re.compile(r" \(after \d+ms in state [^)]*?(?:\(s\)[^)]*)?\)")
"""How librdkafka ends it: the same error of two brokers differs in nothing else."""

_WORDS: Final = {
    KafkaError._RESOLVE: "unresolvable",
    KafkaError._AUTHENTICATION: "authentication",
    KafkaError.SASL_AUTHENTICATION_FAILED: "authentication",
    KafkaError.UNSUPPORTED_SASL_MECHANISM: "authentication",
    KafkaError._SSL: "tls",
    KafkaError._TIMED_OUT: "timeout",
    KafkaError._TIMED_OUT_QUEUE: "timeout",
    KafkaError._MSG_TIMED_OUT: "timeout",
    KafkaError.REQUEST_TIMED_OUT: "timeout",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "authorization",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "authorization",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "authorization",
    KafkaError.NOT_LEADER_FOR_PARTITION: "misrouted",
    KafkaError.LEADER_NOT_AVAILABLE: "no-leader",
    KafkaError.LISTENER_NOT_FOUND: "missing",
    KafkaError.NOT_ENOUGH_REPLICAS: "replicas",
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: "replicas",
    KafkaError._ALL_BROKERS_DOWN: "unreachable",
}
_TRANSPORT_WORDS: Final = {
    "refused": "refused",
    "security.protocol": "protocol",
    "ssl listener": "protocol",
    "timed out": "timeout",
    "timeout": "timeout",
    "": "disconnected",
}
"""For an error of the transport, by what its text has, the first that fits."""


def failure_of(error: BaseException | KafkaError) -> Failure:
    """The stable word for an error of librdkafka, with its own text."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        error = error.args[0]
    if not isinstance(error, KafkaError):
        return Failure("client", clipped(str(error), LONGEST_TEXT))
    code, text = error.code(), clipped(_ELAPSED.sub("", error.str()), LONGEST_TEXT)
    lowered = text.lower()
    word = _WORDS.get(code) or error.name().lower().strip("_").replace("_", "-")
    if code in (KafkaError._TRANSPORT, KafkaError._SSL) and refuses_certificate(text):
        word = "client-certificate"
    elif code == KafkaError._TRANSPORT:
        word = next(word for part, word in _TRANSPORT_WORDS.items() if part in lowered)
    elif word == "authentication" and "unsupported sasl mechanism" in lowered:
        word = "mechanism"  # the broker has not enabled it
    elif word == "authentication" and "request not valid in current sasl state" in lowered:
        word = "no-login"  # the listener asks for none
    return Failure(word, text)


def _credentials(jaas: str) -> dict[str, str]:
    modules = read_jaas(jaas)
    options = modules[0].options
    if len(modules) > 1:
        observed = f"names {len(modules)} login modules"
        allowed = "one: Kafka's clients take no more"
    elif not {"username", "password"} <= options.keys():
        observed = f"gives {modules[0].name} no username and password"
        allowed = (
            "a PLAIN or SCRAM login module with both; for other mechanisms librdkafka's own "
            "sasl.* properties"
        )
    elif options.get("tokenauth", "").lower() == "true":
        observed = "logs in with a delegation token (tokenauth), which librdkafka cannot"
        allowed = "the credentials of a user"
    else:
        return {f"sasl.{key}": options[key] for key in ("username", "password")}
    raise EarshotError("client property sasl.jaas.config", observed=observed, allowed=allowed)
