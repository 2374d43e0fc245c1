"""`security` of a stack file: what goes with it, and what is refused by name."""

from pathlib import Path
from typing import Any

import pytest

from earshot.certificates.given import Files
from earshot.config.document import read_spec
from earshot.errors import SpecError
from earshot.listeners.security import AUTHORIZER
from earshot.listeners.terms import Mechanism
from earshot.placement.secured import files_of
from tests.config.aws_documents import document, read_aws
from tests.goldens import refusals_are_golden
from tests.raised import raised

MISTAKES = Path(__file__).parent / "mistakes"
"""The texts of refusals, which `EARSHOT_WRITE_GOLDENS=1` writes."""

OF_OTHERS = (
    "x: security.mechanism: found '{}', whose users Kafka does not store; allowed: SCRAM-SHA-256 "
    "or SCRAM-SHA-512, in addition to which `extra` can enable OAUTHBEARER (see docs/security.md); "
    "or no `security`, with `protocol` and `extra` for the authentication"
)


def secured(**changes: Any) -> dict[str, Any]:
    """A secured cluster, with ``changes``."""
    return {
        "placement": "local",
        "listeners": [
            {"name": "INTERNAL", "port": 19092, "scopes": "internal", "protocol": "SSL"},
            {"name": "EXTERNAL", "port": 9092, "scopes": "host", "protocol": "SASL_SSL"},
        ],
        "controllers": {"protocol": "SSL"},
        "security": {"users": [{"name": "app", "prefixes": ["app-", "app-"]}]},
        **changes,
    }


PRIVATE_CA = (
    "arn:aws:acm-pca:eu-central-1:111122223333:certificate-authority/"
    "12345678-1234-1234-1234-123456789012"
)
FILES = {"certificate": "certs/{node}.pem", "authority": "certs/ca.pem"}


def refusal(document: dict[str, Any]) -> str:
    error = raised(SpecError, read_spec, document, "x")
    return str(error)


def test_a_secured_cluster_has_defaults() -> None:
    security = read_spec(secured(), "x").security
    assert security is not None
    assert (security.tls.issue, security.tls.days, security.tls.renew_days) == ("stack", 397, 30)
    assert security.mechanism is Mechanism.SCRAM_SHA_512
    assert security.user_names == ("validator", "app")
    assert security.users[0].prefixes == ("app-",)


def test_nodes_may_have_certificates_of_others() -> None:
    security = read_spec(secured(security={"tls": {"from": FILES}}), "x").security
    assert security is not None and security.tls.files is not None
    assert security.tls.files.certificate == "certs/{node}.pem"
    assert security.tls.files.key == security.tls.files.password == ""


@pytest.mark.parametrize("region", ["", "us-gov-west-1", "eusc-de-east-1"])
def test_they_may_lie_in_aws(region: str) -> None:
    places = {**FILES, "key": "ssm:/kafka/{node}.key", "region": region}
    security = read_spec(secured(security={"tls": {"from": places}}), "x").security
    assert security is not None
    assert files_of(security, Path("/p/.earshot/stacks/s/kafka")) == Files(
        "/p/certs/{node}.pem", "ssm:/kafka/{node}.key", "/p/certs/ca.pem", "", region
    )


def test_without_security_protocols_are_the_users_own() -> None:
    document = secured(extra={"ssl.client.auth": "required"})
    del document["security"]
    assert read_spec(document, "x").security is None


def test_what_does_not_go_with_security_is_named() -> None:
    mistakes: list[Any] = [
        {"controllers": {"protocol": "SASL_SSL"}},
        {"placement": "docker", "controllers": {"protocol": "PLAINTEXT"}},
        {"inter_broker": "EXTERNAL"},
        {"extra": {"ssl.client.auth": "none"}},
        {"security": {"users": [{"name": "validator"}]}},
        {"security": {"users": [{"name": "CN=node"}]}},
        {"security": {"users": [{"name": "node-1"}]}},
        {"security": {"users": [{"name": "ca"}]}},
        {"security": {"users": [{"name": "app"}, {"name": "app"}]}},
        {"security": {"users": [{"name": "app", "prefixes": [""]}]}},
        {"security": {"tls": {"authorities": [2, 2]}}},
        {"security": {"password_numbers": {"z": 2, "validator": 2}}},
        {"security": {"tls": {"days": 30}}},
        {"security": {"tls": {"issue": "stack", "from": FILES}}},
        {"security": {"tls": {"from": {"authority": "ca.pem"}}}},
        {"security": {"tls": {"from": {"private_ca": "arn:aws:acm:x"}}}},
        {"security": {"tls": {"from": {**FILES, "regoin": "x"}}}},
        {"security": {"tls": {"form": FILES}}},
        {"security": {"tls": {"from": {**FILES, "private_ca": PRIVATE_CA}}}},
        {"security": {"tls": {"from": {**FILES, "key": "vault:{node}"}}}},
        {"security": {"tls": {"from": {**FILES, "password": "ssm:/{node}"}}}},
        {"security": {"tls": {"from": {**FILES, "key": "ssm:/k", "region": "Frankfurt"}}}},
        {"security": {"tls": {"from": {**FILES, "region": "eu-central-1"}}}},
        {"security": {"mechanism": "PLAIN"}},
        {"extra": {"listener.name.internal.oauthbearer.sasl.jaas.config": "x required;"}},
        {"security": None, "extra": {"sasl.oauthbearer.jwks.endpoint.url": 'https://a"b'}},
        {"extra": {"sasl.oauthbearer.jwks.endpoint.url": "https://a b"}},
        *({"security": {"mechanism": mechanism}} for mechanism in ("OAUTHBEARER", "GSSAPI")),
    ]
    refusals_are_golden(mistakes, lambda it: refusal(secured(**it)), MISTAKES / "security.txt")


def asking(internal: str | None, external: str | None, **changes: Any) -> dict[str, Any]:
    """A secured cluster whose listeners ask for certificates so."""
    document = secured(**changes)
    for item, value in zip(document["listeners"], (internal, external), strict=True):
        item["client_auth"] = value
    return document


@pytest.mark.parametrize("external", ["none", "requested", "required", None])
def test_clients_with_passwords_show_certificates_where_a_listener_says_so(
    external: str | None,
) -> None:
    spec = read_spec(asking("required", external), "x")
    assert spec.asks_for_certificates("INTERNAL")
    assert spec.asks_for_certificates("EXTERNAL") == (external in ("requested", "required"))


@pytest.mark.parametrize("internal", ["none", "requested"])
def test_a_certificate_is_required_where_nothing_else_says_who_a_client_is(internal: str) -> None:
    assert refusal(asking(internal, None)) == (
        f"x: listeners.INTERNAL.client_auth: found {internal} with SSL, where only a certificate "
        "authenticates a client; allowed: required"
    )


def test_without_security_no_client_needs_a_certificate() -> None:
    assert refusal(asking(None, "required", security=None)) == (
        "x: listeners.EXTERNAL.client_auth: found required without `security`; allowed: with it; "
        "without it `extra` has Kafka's own settings"
    )


def test_a_listener_has_a_mechanism_of_its_own() -> None:
    document = secured()
    document["listeners"][1]["mechanism"] = "SCRAM-SHA-256"
    spec = read_spec(document, "x")
    assert spec.security is not None
    assert spec.mechanism("EXTERNAL", spec.security) == "SCRAM-SHA-256"
    assert spec.mechanism("INTERNAL", spec.security) == "SCRAM-SHA-512"
    assert spec.mechanisms(spec.security) == ("SCRAM-SHA-512", "SCRAM-SHA-256")
    assert read_spec(secured(), "x").mechanisms(spec.security) == ("SCRAM-SHA-512",)


def test_a_mechanism_is_for_listeners_where_users_log_in() -> None:
    document = secured()
    document["listeners"][0]["mechanism"] = "SCRAM-SHA-256"
    assert refusal(document) == (
        "x: listeners.INTERNAL.mechanism: found SCRAM-SHA-256 with SSL, where clients "
        "do not log in; "
        "allowed: with SASL_SSL"
    )


def test_listeners_without_tls_are_named_all_at_once() -> None:
    names = {"INTERNAL": "internal", "EXTERNAL": "host"}
    listeners = [
        {"name": name, "port": port, "scopes": scope, "protocol": "PLAINTEXT"}
        for port, (name, scope) in enumerate(names.items(), 9092)
    ]
    plain = {"protocol": "SASL_PLAINTEXT"}
    reported = refusal(secured(listeners=listeners, controllers=plain))
    assert [line.split(":")[0].strip(" -") for line in reported.splitlines()[1:]] == [
        "listeners.INTERNAL.protocol",
        "listeners.EXTERNAL.protocol",
        "controllers.protocol",
    ]


def test_a_listener_that_is_missing_is_told_before_its_security() -> None:
    listeners = [{"name": "EXTERNAL", "port": 9092, "scopes": "host", "protocol": "SASL_SSL"}]
    assert "none of EXTERNAL has the scope internal" in refusal(secured(listeners=listeners))


@pytest.mark.parametrize("placement", ["local", "docker"])
def test_security_alone_puts_no_listener_into_plain_text(placement: str) -> None:
    spec = read_spec({"placement": placement, "security": {}}, "x")
    first, *others = spec.listeners
    assert (first.name, str(first.protocol)) == ("INTERNAL", "SSL")
    assert others and {str(item.protocol) for item in others} == {"SASL_SSL"}
    assert str(spec.controllers.protocol) == "SSL"
    plain = read_spec({"placement": placement}, "x")
    assert {str(item.protocol) for item in plain.listeners} == {"PLAINTEXT"}


def test_the_listener_between_brokers_is_the_one_that_the_file_names() -> None:
    listeners = [
        {"name": "CLIENTS", "port": 19092, "scopes": "internal"},
        {"name": "BROKERS", "port": 19093, "scopes": "internal"},
    ]
    spec = read_spec(
        {"placement": "docker", "listeners": listeners, "inter_broker": "BROKERS", "security": {}},
        "x",
    )
    assert [str(item.protocol) for item in spec.listeners] == ["SASL_SSL", "SSL"]


def test_containers_that_are_not_made_for_it_are_not_secured() -> None:
    hosts = [{"name": "a", "external": "a.example"}, {"name": "b", "external": "b.example"}]
    found = {"placement": "docker", "security": {}}
    assert refusal({**found, "hosts": hosts}) == (
        "x: security: found with 2 Docker hosts, where it has not been run; allowed: one host, or "
        "protocols by `protocol` and `extra`"
    )
    listeners = [
        {"name": "INTERNAL", "port": 1, "scopes": "internal", "advertised": {1: "b1.example"}}
    ]
    assert refusal({**found, "listeners": listeners}) == (
        "x: listeners.INTERNAL.advertised: found with `security`; allowed: between brokers "
        "only the containers' names, through which users are created"
    )


def test_instances_are_told_by_security_alone_how_to_come_in() -> None:
    own = {"client": {"a": "b"}, "validator": {"client": {"a": "b"}}}
    assert refusal(document(security={}, **own)) == (
        "x:\n"
        "  - client: found with `security`, which provides the client properties; remove it\n"
        "  - validator.client: found with `security`, which provides the client properties; "
        "remove it"
    )
    files = {"secrets": {"node-1.pem": "/p", "own.pem": "/p"}}
    validator = {"validator": {"secrets": {"validator.properties": "/p"}}}
    assert refusal(document(security={}, **files, **validator)) == (
        "x:\n"
        "  - secrets.node-1.pem: found with `security`, which has a file of that name\n"
        "  - validator.secrets.validator.properties: found with `security`, which has a file of "
        "that name"
    )


def test_instances_take_certificates_of_others() -> None:
    spec = read_aws(security={"tls": {"from": {"certificate": "a", "authority": "b"}}})
    assert spec.security is not None and spec.security.tls.files is not None


NODES_REFUSED = (
    "x: extra: super.users: found {} with the authorizer.class.name {}; allowed: User:ANONYMOUS "
    "among them, as which nodes reach the quorum through CONTROLLER in plain text, or "
    'allow.everyone.if.no.acl.found: "true"'
)


@pytest.mark.parametrize(
    ("users", "reported"), [({}, "none"), ({"super.users": "User:admin"}, "User:admin")]
)
def test_an_authorizer_that_refuses_the_nodes_is_refused(
    users: dict[str, str], reported: str
) -> None:
    extra = {"authorizer.class.name": AUTHORIZER, **users}
    assert refusal(document(extra=extra)) == NODES_REFUSED.format(reported, AUTHORIZER)


@pytest.mark.parametrize(
    "extra",
    [
        {"super.users": "User:admin; User:ANONYMOUS"},
        {"super.users": "${file:/etc/kafka/users:all}"},
        {"allow.everyone.if.no.acl.found": "True"},
        {"principal.builder.class": "org.example.Builder"},
        {"authorizer.class.name": "org.example.Authorizer"},
    ],
)
def test_an_authorizer_that_may_know_the_nodes_is_taken(extra: dict[str, str]) -> None:
    extra = {"authorizer.class.name": AUTHORIZER, **extra}
    assert read_spec(document(extra=extra), "x").extra == extra


def test_what_nodes_are_called_is_not_known_where_the_quorum_is_not_in_plain_text() -> None:
    extra = {"authorizer.class.name": AUTHORIZER, "super.users": "User:CN=node"}
    controllers = {"protocol": "SSL"}
    assert read_spec(document(extra=extra, controllers=controllers), "x").extra == extra
