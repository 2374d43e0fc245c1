"""The causes of failed cells: one table from (stage, error, kind of name, scope) to a cause.

The first matching row wins, so specific rows of a stage precede its general ones. The caller
provides the observed value; the table has the expected value and the remedy.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.names.kinds import NameKind, kind_of
from earshot.validation.result import Cause
from earshot.validation.terms import Stage

ANY: Final = "*"


@dataclass(frozen=True)
class FailedStage:
    """A failed stage: a stable word for its error, and the observed value."""

    stage: Stage
    error: str
    observed: str
    expected: str = ""
    """The expected value, if it is more specific than the table's."""


@dataclass(frozen=True)
class CauseRow:
    """One row of the table. Empty `names` or `scopes` match all."""

    stage: Stage
    error: str
    kind: str
    expected: str
    remedy: str
    names: tuple[NameKind, ...] = ()
    scopes: tuple[Scope, ...] = ()
    for_user_address: bool = False
    """True for a row that matches only a bootstrap address of the user, whose broker is unknown."""

    def fits(
        self,
        failed_stage: FailedStage,
        name: NameKind,
        scopes: tuple[Scope, ...],
        is_user_address: bool = False,
    ) -> bool:
        return (
            self.stage is failed_stage.stage
            and self.error in (failed_stage.error, ANY)
            and (is_user_address or not self.for_user_address)
            and (not self.names or name in self.names)
            and (not self.scopes or bool(set(self.scopes) & set(scopes)))
        )


_LOOPBACK = (NameKind.LOCALHOST, NameKind.LOOPBACK_ADDRESS)
_CONTAINER = (NameKind.SINGLE_LABEL, NameKind.CONTAINER_ID, NameKind.DOCKER_HOST)
_VPC = (NameKind.EC2_PRIVATE, NameKind.EC2_RESOURCE)
_RESOLVES = "{host} resolves for the clients of {listener}"
_ALWAYS_RESOLVES = "{host} resolves at every lookup"
_COMPARE_SERVERS = (
    "compare the answers of this machine's DNS servers for {host}: it resolved a moment before, so "
    "one of them lacks the name, or fails"
)
_ADVERTISE = (
    "let {broker} advertise to {listener} a name that its clients resolve: `advertised` of "
    "the listener in the stack file, or advertised.listeners"
)
_CONNECTS = "{address} accepts a connection"
_ACCEPTS = "{broker} answers a metadata request on {address}"
_AGREES = "the client and {listener} agree on security"
_ACKNOWLEDGES = "{broker} acknowledges a record (acks=all)"
_RETURNS = "{broker} returns the same record"
_LARGE_PACKETS = (
    "see what is between this machine and {address}: small packets pass, large ones do not. The "
    "MTU of a VPN or tunnel is too large for its path (reduce it, or clamp the MSS of TCP), a "
    'firewall drops the ICMP message "fragmentation needed", or a proxy limits the size of requests'
)

_bootstrap, _metadata, _resolve, _tcp, _security, _produce, _consume = (
    partial(CauseRow, stage) for stage in Stage
)

# fmt: off
TABLE: Final[tuple[CauseRow, ...]] = (
    _resolve("timeout", "resolver-timeout", _RESOLVES,
        "run it again when this machine's resolver answers: the name may be right"),
    _resolve("server-failure", "resolver-failure", _RESOLVES,
        "fix the resolver of this machine or the delegation of {host}: no answer says that the "
        "name does not exist"),
    _resolve(ANY, "unresolvable", "{host} resolves on this machine",
        "correct the bootstrap address, or run this where {host} resolves", for_user_address=True),
    _resolve("no-name", "no-host-name", "one name or IP address, and one port",
        "correct what {broker} advertises to {listener}: `advertised` of the listener in the "
        "stack file, or advertised.listeners (each entry is NAME://HOST:PORT)"),
    _resolve(ANY, "unresolvable", _RESOLVES, "connect from that network, or " + _ADVERTISE,
        names=_CONTAINER),
    _resolve(ANY, "unresolvable", _RESOLVES, "connect from inside that VPC, or " + _ADVERTISE,
        names=_VPC),
    _resolve(ANY, "unresolvable", _RESOLVES,
        "create a public DNS record for {host}, or " + _ADVERTISE,
        names=(NameKind.FQDN,), scopes=(Scope.EXTERNAL,)),
    _resolve(ANY, "unresolvable", _RESOLVES, _ADVERTISE),
    _tcp("refused", "refused", _CONNECTS,
        "correct the bootstrap address, or start the broker that should listen there",
        for_user_address=True),
    _tcp("refused", "refused", _CONNECTS,
        "start {broker}; if it runs in a container or on another machine, it must not advertise "
        "{host}, which leads every client to itself",
        names=(*_LOOPBACK, NameKind.ANY_ADDRESS)),
    _tcp("refused", "refused", _CONNECTS,
        "start {broker}; if it runs, see that {listener} binds port {port} on an interface "
        "behind {host} and that the port is published there"),
    _tcp("no-port", "no-port", "a port from 1 to 65535",
        "correct what {broker} advertises to {listener}: `advertised` of the listener in the "
        "stack file, or advertised.listeners"),
    _tcp("timeout", "timeout", _CONNECTS,
        "connect from inside the broker's network, or " + _ADVERTISE,
        names=(NameKind.PRIVATE_ADDRESS, *_VPC), scopes=(Scope.EXTERNAL, Scope.HOST)),
    _tcp("timeout", "timeout", _CONNECTS,
        "open port {port} for this machine in the firewall or security group of {broker}, and, "
        "between networks, check the routes in both directions: packets are dropped without an "
        "answer"),
    _tcp("no-route", "no-route", _CONNECTS,
        "{host} has an address that this machine cannot route to (IPv6 only, or another "
        "network): connect from there, or " + _ADVERTISE),
    _tcp(ANY, "unreachable", _CONNECTS, "check the network between this machine and {address}"),
    _security("misrouted", "misrouted", "every connection to {address} reaches {broker}",
        "see what {address} is forwarded to: it must lead only to {broker}; if it does, give "
        "{broker} its own certificate for {host}"),
    _security("certificate-name", "certificate-name",
        "a certificate whose subjectAltName has {host}",
        "issue the certificate of {broker} for {host}, or advertise a name in the certificate"),
    _security("certificate-expired", "certificate-expired", "a certificate that is still valid",
        "renew the certificate of {broker}"),
    _security("certificate-not-yet-valid", "certificate-not-yet-valid",
        "a certificate whose validity has begun",
        "compare the clock of this machine with that of the machine that issued the certificate "
        "of {broker}"),
    _security("certificate-unfit", "certificate-unfit",
        "a chain of certificates that clients accept for a server",
        "issue the certificate of {broker} again: for servers (serverAuth, digital signature), "
        "with an RSA key of at least 2,048 bits and SHA-256, by an authority that may issue it"),
    _security("certificate-untrusted", "certificate-untrusted",
        "a certificate of an authority that this client trusts",
        "give the authority's certificate: ssl.truststore.location=FILE and "
        "ssl.truststore.type=PEM in the client properties; if something forwards {address}, let "
        "TLS end at {broker}, not there"),
    _security("authentication", "authentication", "{broker} accepts these credentials",
        "if no broker ever accepted them, check sasl.mechanism and sasl.jaas.config in the client "
        "properties; if they worked before, the cluster has lost the user or its password was "
        "changed: create the user again (a stack with `security`: `pulumi up`)"),
    _security("lost-users", "lost-users",
        "{broker} accepts these credentials, as other brokers do",
        "create the users again (a stack with `security`: `pulumi up`): {broker} has lost them, "
        "which happens to a broker that restarts after the deletion of a user (KAFKA-20774)"),
    _security("client-certificate", "client-certificate",
        "{broker} accepts the certificate of this client",
        "use a certificate of an authority that {broker} trusts: ssl.keystore.location=FILE and "
        "ssl.keystore.type=PEM in the client properties"),
    _security("mechanism", "mechanism", "a mechanism that {listener} has enabled",
        "set sasl.mechanism, and the login module in sasl.jaas.config, to a mechanism that "
        "{broker} lists; or enable it there (sasl.enabled.mechanisms)"),
    _security("protocol", "protocol", _AGREES,
        "see listener.security.protocol.map of {broker}: {address} has another protocol than "
        "expected; a gateway that routes by name also closes connections if it does not "
        "know {host}"),
    _security("timeout", "no-answer", "{broker} makes a TLS handshake on {address}",
        "see the log and the load of {broker}: it accepts connections and does not answer; if its "
        "process runs and is not suspended, something between may drop large packets, such as "
        "those with a certificate"),
    _security("underscore", "underscore-name", "a host name without an underscore",
        "let {broker} advertise to {listener} a name of letters, digits, hyphens and dots (and "
        "issue its certificate for that name): Java refuses TLS for {host} because of the "
        "underscore"),
    _security(ANY, "tls", _AGREES,
        "check the ssl.* client properties (a client certificate may be required) and "
        "{broker}'s log"),
    _bootstrap("protocol", "protocol", _ACCEPTS,
        "set security.protocol to that of {listener}: the connection was closed, which a listener "
        "with TLS or SASL does"),
    _bootstrap("http", "not-kafka", _ACCEPTS,
        "correct the port: a web server listens on {address}, not a Kafka broker"),
    _bootstrap("not-kafka", "not-kafka", _ACCEPTS,
        "see what listens on {address}: it does not answer like a Kafka broker"),
    _bootstrap("controller", "controllers-listener", _ACCEPTS,
        "advertise the port of a listener for clients, or use it in the bootstrap address: "
        "controller.listener.names lists the listeners for controllers"),
    _bootstrap(ANY, "no-answer", _ACCEPTS,
        "see that a Kafka broker listens on {address} with this client's security protocol; "
        "its log has more"),
    _metadata("drift", "drift", "{address}, as the contract says",
        "run `pulumi up` to bring {broker} back to the plan, or put the change into the stack "
        "file"),
    _metadata("missing", "missing", "{broker} at {address}",
        "add the listener {listener} to {broker} (`pulumi up` restores it): without it, clients "
        "of {listener} get LISTENER_NOT_FOUND for the partitions that {broker} leads"),
    _metadata("unlisted", "unlisted", "the cluster's brokers, with their addresses",
        "see the log of the broker there: it answers, but lists no broker that clients can "
        "use (it is fenced, still starting, or shutting down)", for_user_address=True),
    _metadata("unlisted", "unlisted", "{broker} at {address}",
        "see the log of {broker}: it answers, but the cluster does not list it (it is fenced, "
        "still starting, or shutting down)"),
    _metadata("shared", "shared-address", "a host:port of its own for every broker",
        "advertise another host or port for one of them: clients reach only one broker "
        "there, and requests for the other time out"),
    _metadata("not-the-contracts", "another-cluster", "the cluster of the contract",
        "see which brokers listen at {address} (another checkout of the stack, a container): "
        "stop them, or use other ports for one of the two clusters; if the stack's data was "
        "removed and created again, use its current contract"),
    _metadata("no-cluster", "no-cluster-id", "a cluster id, which Kafka returns since 0.10.1",
        "see what listens at {address}, or forwards it: it is not a broker of this cluster, or "
        "a proxy changes its answers"),
    _metadata("disputed", "disputed-broker", "all brokers list {broker} at {address} to {listener}",
        "see the logs of the brokers that do not list it so: they do not get the cluster's "
        "metadata (fenced, cut off from the controllers), or belong to another cluster; clients "
        "that bootstrap there do not find {broker}"),
    _metadata("foreign", "foreign-cluster", "every address leads to one cluster",
        "see what {address} is mapped or forwarded to: another cluster answers there"),
    _metadata("crossed", "crossed-listeners", "the advertised addresses of {listener}",
        "see what {address} is mapped or forwarded to: it should lead to the port that "
        "{listener} binds"),
    _metadata("misrouted", "misrouted", "every connection to {address} reaches {broker}",
        "see what {address} is mapped or forwarded to, and which addresses the name {host} has: "
        "an advertised address must lead only to its own broker"),
    _metadata("unsteady", "unsteady", "{broker} answers on every connection to {address}",
        "see what forwards {address} (one of its targets may be dead), and the connection limits "
        "of {broker} (max.connections)"),
    _metadata("unexpected", "unexpected", "no {broker} at {listener}: the contract has none there",
        "export the contract again (`pulumi up`), or remove that broker from {listener}"),
    _produce("misrouted", "misrouted", "{address} leads to {broker}",
        "see what {address} is mapped or forwarded to: two brokers' addresses are crossed"),
    _produce("no-quorum", "no-quorum", "the controller quorum creates a topic",
        "see that a majority of the controllers runs and that brokers reach them: until then, "
        "brokers answer metadata requests, but nothing can change; if a majority runs, see "
        "whether a proxy at {address} passes ApiVersions, CreateTopics and DeleteTopics"),
    _produce("fenced", "fenced", "the controllers list {broker} among the cluster's brokers",
        "see the logs of {broker} and of the controllers: it answered metadata requests, but the "
        "controllers no longer hear from it (it hangs, stops, or is cut off from them)"),
    _produce("no-api-versions", "no-api-versions", "{address} answers ApiVersions",
        "see what forwards {address}: it must pass ApiVersions, the first request of every client "
        "on each connection"),
    _produce("replicas", "replicas", _ACKNOWLEDGES,
        "see min.insync.replicas: the record's topic has one replica and requires one"),
    _produce("authorization", "authorization", _ACKNOWLEDGES,
        "allow this user Write on topics that begin with __earshot-"),
    _produce("large-lost", "large-packets", "{broker} acknowledges large records like small ones",
        _LARGE_PACKETS),
    _produce("unresolvable", "unsteady-name", _ALWAYS_RESOLVES, _COMPARE_SERVERS),
    _produce(ANY, "not-acknowledged", _ACKNOWLEDGES,
        "see the log and the load of {broker}: it answers, but does not accept a record in time"),
    _consume("corrupt", "corrupt", _RETURNS,
        "check the network between this client and {broker}: a record came back changed"),
    _consume("authorization", "authorization", _RETURNS,
        "allow this user Read on topics that begin with __earshot-"),
    _consume("large-lost", "large-packets", "{broker} returns large records like small ones",
        _LARGE_PACKETS),
    _consume("unresolvable", "unsteady-name", _ALWAYS_RESOLVES, _COMPARE_SERVERS),
    _consume(ANY, "not-returned", _RETURNS,
        "see the log of {broker}: it acknowledged the record and does not return it"),
)
# fmt: on


def broker_text(broker: int) -> str:
    """A broker in a sentence. A negative id means that the id is unknown."""
    return f"broker {broker}" if broker >= 0 else "the broker there"


def explain(
    failed_stage: FailedStage,
    listener: str,
    broker: int,
    address: Address,
    scopes: tuple[Scope, ...] = (),
) -> Cause:
    """The cause of ``failed_stage`` in the cell of ``listener`` and ``broker`` at ``address``."""
    name = kind_of(address.host)
    row = next(
        row for row in TABLE if row.fits(failed_stage, name, scopes, is_user_address=broker < 0)
    )
    fields = {
        "listener": listener,
        "broker": broker_text(broker),
        "address": address,
        "host": address.host,
        "port": address.port,
    }
    return Cause(
        kind=row.kind,
        observed=failed_stage.observed,
        expected=failed_stage.expected or row.expected.format(**fields),
        remedy=row.remedy.format(**fields),
    )
