"""Kafka's settings of a secured cluster: TLS by PEM files, SCRAM, permissions. Pure.

A key store is one PEM file with the node's key and certificate, so it needs no password and no
setting holds a secret: https://kafka.apache.org/documentation/#security_ssl (KIP-651).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from earshot.listeners.terms import ClientAuth, Protocol

if TYPE_CHECKING:
    from earshot.listeners.model import ClusterPlan, Node, SecurityPlan


AUTHORITY = "ca.pem"
"""The file, in a secured node's folder, with the authority that all nodes and clients trust."""
TRUSTED = "trusted.pem"
"""In its place, where nodes trust others than the stack's first authority alone."""
NODE, NODES = "node", "nodes"
"""What certificates of nodes call each of them, and the unit: a grown cluster changes no node."""
CLIENTS = "clients"
"""The unit that certificates of users name."""
VALIDATOR = "validator"
"""The user that earshot proves listeners as; every secured cluster has it."""
FOLDER, VALIDATOR_FILE = "security", f"{VALIDATOR}.properties"
"""What a stack's folder of keys and passwords is called, and in it the validator's properties."""
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
CIPHERS = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
)
"""Those of TLS 1.3, and of 1.2 those with forward secrecy that RFC 9325 (section 4.2) recommends,
and the like with ChaCha20 (RFC 7905)."""
USERS = "users"
"""The file with what becomes of users and permissions, where a node makes them: see
`earshot.users.lines`."""
_KEY_STORE = re.compile(r"node-\d+\.pem", re.ASCII)
_STORES = (
    "ssl.keystore.type",
    "ssl.keystore.location",
    "ssl.truststore.type",
    "ssl.truststore.location",
)
OAUTHBEARER = "OAUTHBEARER"
"""Logins by tokens, which `extra` describes; earshot itself comes in by SCRAM beside it."""
ANONYMOUS = "ANONYMOUS"
"""The user that a client without a certificate and without a login is to Kafka."""
_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_COMPUTED = ("ssl.", "sasl.", "listener.name.", "authorizer.", "super.users", "principal.builder.")
_COMPUTED_KEYS = ("allow.everyone.if.no.acl.found", "connections.max.reauth.ms")
_TOKENS = "sasl.oauthbearer."
"""Settings of all listeners on which clients log in by OAUTHBEARER."""
_TOKENS_OF_ONE = re.compile(r"listener\.name\.([^.]+(?:\.[^.]+)*?)\.(?:sasl\.)?oauthbearer\..+")
"""Those of one listener; its name in lower case."""
_TOKEN_URLS = ("jwks.endpoint.url", "token.endpoint.url")


def is_secret_file(name: str) -> bool:
    """Whether a node or the validator of a secured cluster has a file of that ``name``."""
    return name in (AUTHORITY, TRUSTED, USERS, VALIDATOR_FILE) or bool(_KEY_STORE.fullmatch(name))


def is_computed(key: str) -> bool:
    """Whether ``key`` is about what `security` decides, so that `extra` must not hold it."""
    if key.startswith(_TOKENS) or token_listener(key):
        return False
    return key.startswith(_COMPUTED) or key in _COMPUTED_KEYS


def token_listener(key: str) -> str:
    """The listener, in lower case, whose logins by OAUTHBEARER ``key`` is about; else empty."""
    match = _TOKENS_OF_ONE.fullmatch(key)
    return match[1] if match else ""


def is_token_url(key: str) -> bool:
    """Whether ``key`` is for a URL by which OAUTHBEARER gets keys or tokens."""
    return (key.startswith(_TOKENS) or bool(token_listener(key))) and key.endswith(_TOKEN_URLS)


def token_options(values: Mapping[str, str]) -> tuple[str, ...]:
    """The JVM's option that lets a broker with these settings fetch the keys of tokens.

    Kafka 4.0 and later asks no server that it does not name: see
    https://kafka.apache.org/documentation/#security_sasl_oauthbearer
    """
    urls = [value for key, value in values.items() if is_token_url(key)]
    if not urls:
        return ()
    return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={','.join(dict.fromkeys(urls))}",)


def principal(name: str, unit: str) -> str:
    """The principal that Kafka derives from such a certificate, as Java prints it (RFC 2253)."""
    return f"CN={name},OU={unit}"


def node_name(node: int) -> str:
    """What the key store of the node with this id is called, without its `.pem`."""
    return f"node-{node}"


def node_id(name: str) -> int:
    """The id of the node with the key store ``name``."""
    return int(name.rpartition("-")[2])


def security_settings(plan: ClusterPlan, node: Node) -> dict[str, str]:
    """The settings of ``node`` for TLS, logins and permissions; none where nothing is secured."""
    security = plan.security
    if security is None:
        return {}
    protocols = {listener.name: listener.protocol for listener in node.listeners}
    by_name = {listener.name: listener for listener in node.listeners}
    # a broker connects to the quorum with what it has for the quorum's listener
    protocols.setdefault(plan.controller, plan.controller_protocol)
    values: dict[str, str] = {}
    for name, protocol in protocols.items():
        if not protocol.tls:
            continue
        prefix = f"listener.name.{name.lower()}."
        usual = ClientAuth.NONE if protocol.sasl else ClientAuth.REQUIRED
        item = by_name.get(name)
        values[_client_auth(name)] = str((item and item.client_auth) or usual)
        if item is not None and protocol.sasl:
            mechanisms = [str(it) for it in security.mechanisms(item)]
            tokens = any(token_listener(key) == name.lower() for key in dict(plan.extra))
            enabled = [*mechanisms, OAUTHBEARER] if tokens else mechanisms
            values[f"{prefix}sasl.enabled.mechanisms"] = ",".join(enabled)
            for mechanism in mechanisms:
                values[f"{prefix}{mechanism.lower()}.sasl.jaas.config"] = _LOGIN
    principals = security.principals or (principal(NODE, NODES),)
    if _is_open(plan):
        principals = (*principals, ANONYMOUS)
    # settings that all listeners share are written once: user data has little room
    return values | {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{security.folder}/{node_name(node.id)}.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": f"{security.folder}/{trusted_by(security)}",
        "ssl.enabled.protocols": "TLSv1.3,TLSv1.2",
        "ssl.cipher.suites": ",".join(_ciphers(security)),
        "authorizer.class.name": AUTHORIZER,
        "super.users": ";".join(f"User:{item}" for item in principals),
        "allow.everyone.if.no.acl.found": "false",
    }


def _ciphers(security: SecurityPlan) -> Sequence[str]:
    """In the order in which brokers choose among those of a client."""
    if not security.slow_aes:
        return CIPHERS
    return sorted(CIPHERS, key=lambda name: "CHACHA20" not in name)


def _is_open(plan: ClusterPlan) -> bool:
    """Whether clients come in without saying who they are: as long as a cluster that was in plain
    text changes, and where its quorum stays so. They may do what they could do before."""
    protocols = {
        plan.controller_protocol,
        *(listener.protocol for node in plan.brokers for listener in node.listeners),
    }
    return Protocol.PLAINTEXT in protocols


def trusted_by(security: SecurityPlan) -> str:
    """The file in the node's folder with the certificates of all authorities that nodes trust."""
    return trusted_file(security.authorities, given=bool(security.principals))


def trusted_file(authorities: Sequence[int], *, given: bool) -> str:
    """The same for nodes that trust these ``authorities`` of the stack; ``given``: and that of
    others, who have made their certificates."""
    return TRUSTED if given or tuple(authorities) != (1,) else AUTHORITY


def own_stores(values: Mapping[str, str], listener: str) -> dict[str, str]:
    """Kafka's client properties to reach ``listener`` of a node as the node itself, by the settings
    that it runs with; empty for one that `security_settings` has not secured."""
    if values.get("authorizer.class.name") != AUTHORIZER or _client_auth(listener) not in values:
        return {}  # `security` has not made these settings, or the listener is without TLS
    # a listener's own go before common ones, as Kafka has it: nodes of earlier releases have these
    stores = {key: values.get(_of_listener(listener, key), values.get(key, "")) for key in _STORES}
    return stores if all(stores.values()) else {}


def own_access(values: Mapping[str, str]) -> dict[str, str]:
    """Librdkafka's settings to reach a broker as itself, by the settings that it runs with.

    Empty for one that `security_settings` has not secured.
    """
    stores = own_stores(values, values.get("inter.broker.listener.name", "").strip())
    if not stores:
        return {}
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": stores["ssl.truststore.location"],
        "ssl.certificate.location": stores["ssl.keystore.location"],
        "ssl.key.location": stores["ssl.keystore.location"],
    }


def _client_auth(listener: str) -> str:
    """The property that each listener with TLS has."""
    return _of_listener(listener, "ssl.client.auth")


def _of_listener(listener: str, key: str) -> str:
    """The property ``key`` for ``listener`` alone."""
    return f"listener.name.{listener.lower()}.{key}"
