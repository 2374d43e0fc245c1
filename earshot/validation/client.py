"""The boundary to librdkafka: translates client properties, and maps errors to stable words.

Users provide Kafka's own client properties (those of `--command-config`, and of Spark behind
`kafka.`), which are translated for librdkafka. The first specific error of a client is its cause:
`_ALL_BROKERS_DOWN` and time-outs only follow it.
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

FAST: Final[Mapping[str, object]] = {
    "client.id": "earshot",
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 20,
    "topic.metadata.refresh.fast.interval.ms": 20,
    "allow.auto.create.topics": False,
    "log_level": 0,
}
"""Settings for a quick answer and early retries: librdkafka's defaults suit daemons. By default a
producer would also create a missing topic."""

MAX_TEXT: Final = 500
"""The maximum length (characters) of an error, which may contain text from a peer."""
_RENAMED: Final = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    # a PEM key store is one file with the key and its chain
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
_STORES: Final = {
    "ssl.truststore": ("certificates",),
    "ssl.keystore": ("key", "certificate.chain"),
}
"""The properties with a store's content, by the beginning of its properties' names."""
_STORE_TYPES: Final = tuple(f"{store}.type" for store in _STORES)
_JAVA_ONLY: Final = (
    *("security.providers", "ssl.protocol", "ssl.enabled.protocols", "ssl.provider"),
    *("ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
    "ssl.secure.random.implementation",
)
"""TLS settings of Java only. They concern neither trusted authorities nor the client's identity."""
_SECURITY: Final = ("security.", "sasl.", "ssl.", "enable.ssl.", "enable.sasl.")
_CONNECTING: Final = ("client.", "broker.", "api.version.", "socket.", "connections.")
_LOGIN: Final = (
    *("security.protocol", "sasl.mechanism", "sasl.jaas.config"),
    *("ssl.truststore.location", "ssl.truststore.certificates", "ssl.truststore.type"),
    *("ssl.keystore.location", "ssl.keystore.certificate.chain", "ssl.keystore.key"),
    *("ssl.key.password", "ssl.endpoint.identification.algorithm"),
)
"""The properties of a login."""
_NEAR: Final = 0.9
"""The similarity of a misspelt name."""
ClientSettings = dict[str, Any]
"""Properties of a client of librdkafka by name: texts, numbers and functions that it calls."""
_PATIENCE: Final = frozenset({"request.timeout.ms", "default.api.timeout.ms"})


def connecting(client: Mapping[str, str]) -> dict[str, str]:
    """The properties of ``client`` for connecting, for its identity, and for its time-outs.

    Other properties (`transactional.id`, serializers, batching) concern an application's own
    records, and would make a probe fail on a healthy cluster.
    """
    return {
        key: value
        for key, value in client.items()
        if key.startswith((*_SECURITY, *_CONNECTING)) or key in _PATIENCE
    }


def misspelt(client: Mapping[str, str]) -> Mapping[str, str]:
    """The likely names of properties whose names are similar to those of a login's."""
    import difflib  # slow to import

    prefixed = tuple(f".{name}" for name in _LOGIN)  # such as `kafka.…`, which Spark reads
    unused = [key for key in client.keys() - connecting(client) if not key.endswith(prefixed)]
    near = {key: difflib.get_close_matches(key.lower(), _LOGIN, 1, _NEAR) for key in unused}
    return {key: names[0] for key, names in near.items() if names}


def translate(client: Mapping[str, str]) -> ClientSettings:
    """Kafka's client properties (only those of `connecting`) as librdkafka's properties.

    Properties with the same name are copied. Properties that only Java's clients have are omitted,
    except those about security. Raises EarshotError if librdkafka has no counterpart (a JKS store),
    and for `misspelt` names.
    """
    for key, name in misspelt(client).items():
        raise EarshotError(
            f"client property {key}",
            observed="is not a property of Kafka's clients",
            allowed=f"{name}, which is similar",
        )
    _check_stores(client)
    values: ClientSettings = {}
    for key, value in connecting(client).items():
        if key in _STORE_TYPES or key in _JAVA_ONLY:
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


def _check_stores(client: Mapping[str, str]) -> None:
    """Raises EarshotError for a store that librdkafka cannot read, or that Java's clients refuse.

    librdkafka ignores contradictions for which Java's clients do not start.
    """
    for store, parts in _STORES.items():
        kind = client.get(f"{store}.type", "JKS").upper()
        location, texts = f"{store}.location", [f"{store}.{part}" for part in parts]
        given = [text for text in texts if text in client]
        if location in client and kind != "PEM":
            raise EarshotError(
                f"client property {location}",
                observed=f"is a store of the type {kind}",
                allowed=f"a PEM file, with {store}.type=PEM (Java's clients read PEM too)",
                remedy="openssl pkcs12 -in STORE -out STORE.pem -nodes",
            )
        if given and kind != "PEM":
            refused, why = given[0], f"is set for a store of the type {kind}"
            allowed = f"PEM texts, with {store}.type=PEM"
        elif given and location in client:
            refused, why, allowed = given[0], f"is set in addition to {location}", "one of them"
        elif given and given != texts:
            refused, why = given[0], "is set alone"
            allowed = " and ".join(texts)
        elif kind == "PEM" and f"{store}.password" in client:
            refused, why = f"{store}.password", "is set for a PEM store"
            allowed = "no such password; ssl.key.password is that of an encrypted key"
        else:
            continue
        raise EarshotError(
            f"client property {refused}",
            observed=f"{why}: Java's clients refuse that",
            allowed=allowed,
        )


def _is_special(path: str) -> bool:
    """True if ``path`` is a pipe or device: OpenSSL could wait forever for its content."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _check_files(client: Mapping[str, str]) -> None:
    """Raises EarshotError for a file of TLS that cannot be read: OpenSSL does not name it."""
    for key, path in client.items():
        if key.startswith("ssl.") and key.endswith(".location"):
            try:
                with Path(path).open("rb") as file:
                    file.read(1)
            except IsADirectoryError:
                pass  # OpenSSL reads a folder of authorities
            except (OSError, ValueError) as reason:
                why = reason.strerror if isinstance(reason, OSError) else str(reason)
                raise EarshotError(
                    f"client property {key}",
                    observed=f"{clipped(path, 255)} cannot be read ({why})",
                    allowed="a PEM file",
                ) from None


_PEM_ON_ONE_LINE: Final = re.compile(
    r"(?P<begin>-----BEGIN (?P<what>[A-Z ]+)-----) +(?P<body>[\w+/= ]+?) +"
    r"(?P<end>-----END (?P=what)-----) *",
    re.ASCII,
)
"""PEM on one line, as line continuations (backslash) produce it. Kafka accepts spaces for line
ends."""


def _with_lines(match: re.Match[str]) -> str:
    lines = textwrap.wrap(match["body"].replace(" ", ""), 64)
    return "\n".join((match["begin"], *lines, match["end"], ""))


@lru_cache(maxsize=1024)
def _is_known(key: str) -> bool:
    """True if librdkafka has a property ``key``, by trying it."""
    try:
        Producer({"log_level": 0, key: ""})
    except KafkaException as error:
        return "No such configuration property" not in failure_of(error).text
    except (AttributeError, TypeError, ValueError):  # a function or a dictionary, not a text
        return False
    return True


def configuration(
    bootstrap: str, protocol: Protocol | None, client: Mapping[str, str]
) -> ClientSettings:
    """The settings of one librdkafka client.

    ``bootstrap`` is `host:port,…`. ``protocol`` is the listener's, and overrides the client's
    `security.protocol`; None without a contract. Raises EarshotError like `translate`, and for
    files that cannot be read.
    """
    values = {**FAST, **translate(client), "bootstrap.servers": bootstrap}
    _check_files(client)
    return values if protocol is None else values | {"security.protocol": str(protocol)}


def protocol_of(client: Mapping[str, str]) -> Protocol:
    """The value of `security.protocol` in ``client``. Raises EarshotError for an unknown one."""
    text = client.get("security.protocol", "PLAINTEXT").upper()
    try:
        return Protocol(text)
    except ValueError:
        raise EarshotError(
            "client property security.protocol", observed=repr(text), allowed=", ".join(Protocol)
        ) from None


class Errors:
    """An `error_cb` that stores the errors of a client, whose `poll` calls it.

    With ``address``, only errors of that address are stored: a client also connects to brokers that
    it learns of, whose errors prove nothing about the asked broker.
    """

    def __init__(self, address: Address | None = None) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._failures: list[Failure] = []

    def __call__(self, error: KafkaError) -> None:
        failure = failure_of(error)
        peer = _PEER.search(failure.text) if self._address is not None else None
        if peer is not None and peer["name"] != str(self._address):
            return
        with self._lock:
            self._failures.append(failure)

    def first(self) -> Failure | None:
        """The first specific error."""
        with self._lock:
            return next(
                (failure for failure in self._failures if failure.error != "unreachable"), None
            )

    def explain(self, error: BaseException) -> Failure:
        """The first specific error, else ``error`` itself (of librdkafka)."""
        return self.first() or failure_of(error)


class EachErrors(dict[int, Errors]):
    """An `error_cb` for a client of several brokers: stores each error with its broker, by
    number."""

    def __call__(self, error: KafkaError) -> None:
        for errors in self.values():
            errors(error)


_PEER: Final = re.compile(r"(?:^|://)(?P<name>[^\s/]+)/(?:bootstrap|-?\d+): ")
"""The beginning of librdkafka's connection errors: `ssl://host:port/id: `; for PLAINTEXT without
the protocol."""

_ELAPSED: Final = re.compile(r" \(after \d+ms in state [^)]*?(?:\(s\)[^)]*)?\)")
"""The end of librdkafka's connection errors, removed so that equal errors have equal text."""

_ERROR_WORDS: Final = {
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
"""Words for transport errors by a part of their text; the first match wins."""


def failure_of(error: BaseException | KafkaError) -> Failure:
    """The stable word for an error of librdkafka, with its own text."""
    if isinstance(error, KafkaException) and error.args and isinstance(error.args[0], KafkaError):
        error = error.args[0]
    if not isinstance(error, KafkaError):
        return Failure("client", clipped(str(error), MAX_TEXT))
    code, text = error.code(), clipped(_ELAPSED.sub("", error.str()), MAX_TEXT)
    lowered = text.lower()
    word = _ERROR_WORDS.get(code) or error.name().lower().strip("_").replace("_", "-")
    if refuses_certificate(text):
        word = "client-certificate"
    elif code == KafkaError._TRANSPORT:
        word = next(word for pattern, word in _TRANSPORT_WORDS.items() if pattern in lowered)
    elif word == "authentication" and "unsupported sasl mechanism" in lowered:
        word = "mechanism"  # the broker has not enabled it
    elif word == "authentication" and "request not valid in current sasl state" in lowered:
        word = "no-login"  # the listener has no SASL
    return Failure(word, text)


def _credentials(jaas: str) -> dict[str, str]:
    modules = read_jaas(jaas)
    options = modules[0].options
    if len(modules) > 1:
        observed = f"has {len(modules)} login modules"
        allowed = "one: Kafka's clients accept only one"
    elif not {"username", "password"} <= options.keys():
        observed = f"has no username and password for {modules[0].name}"
        allowed = (
            "a PLAIN or SCRAM login module with both; for other mechanisms librdkafka's own "
            "sasl.* properties"
        )
    elif options.get("tokenauth", "").lower() == "true":
        observed = "uses a delegation token (tokenauth), which librdkafka does not support"
        allowed = "the credentials of a user"
    else:
        return {f"sasl.{key}": options[key] for key in ("username", "password")}
    raise EarshotError("client property sasl.jaas.config", observed=observed, allowed=allowed)
