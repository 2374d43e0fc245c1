import os
import re
import subprocess
from typing import Any

import pytest
import yaml
from hypothesis import given, settings

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Node, SecurityPlan
from earshot.listeners.properties import read_properties
from earshot.listeners.render import annotated, server_properties
from earshot.listeners.terms import Mechanism, Protocol, Role, UnknownHost
from earshot.user_data.boot import PACKAGING, SecretFile, System, ssm_report, ssm_secret
from earshot.user_data.cloud_config import LIMIT
from earshot.user_data.render import PROPERTIES, digest, user_data
from tests.listeners.clusters import odd_properties
from tests.raised import raised
from tests.user_data.nodes import boot, cluster, node
from tests.user_data.properties import files_in, properties_in

ONE = node()
SSL_NODE = node(protocol=Protocol.SSL)
PLAN = cluster(ONE)
REPORT_COMMAND = ssm_report("/n", "eu-central-1")
PREPARE = "/usr/local/sbin/kafka-prepare"
REPORT = "/usr/local/sbin/kafka-report"
UNITS = "/etc/systemd/system"


def files(plan: ClusterPlan = PLAN, booting_node: Node = ONE, **changes: Any) -> dict[str, Any]:
    """The files of a node that boots with ``changes``."""
    return files_in(user_data(plan, booting_node, boot(**changes)))


def test_is_a_cloud_config_in_ascii() -> None:
    text = user_data(PLAN, ONE, boot())
    assert text.startswith("#cloud-config\n")
    assert text.isascii()
    document = yaml.safe_load(text)
    assert set(document) == {"write_files", "runcmd"}
    assert [" ".join(command) for command in document["runcmd"]] == [
        "systemctl daemon-reload",
        "systemctl restart systemd-journald systemd-sysctl",
        "systemctl enable --now --no-block kafka-prepare.service",
    ]
    assert {file["path"]: file.get("permissions") for file in document["write_files"]} == {
        PROPERTIES: None,
        "/etc/kafka/client.properties": None,
        "/etc/kafka/log4j2.properties": None,
        "/etc/systemd/journald.conf.d/kafka.conf": None,
        "/etc/sysctl.d/kafka.conf": None,
        f"{UNITS}/kafka-prepare.service": None,
        f"{UNITS}/kafka.service": None,
        f"{UNITS}/kafka-ready.service": None,
        PREPARE: "0755",
        REPORT: "0755",
    }


@pytest.mark.parametrize("system", System)
def test_every_command_has_its_package(system: System) -> None:
    script = files(system=system, report=REPORT_COMMAND)[PREPARE]
    for name in ("java", "curl", "tar", "gzip", "mkfs.xfs", "aws"):
        assert script.count(f"need {name} {PACKAGING[system].packages[name]}\n") == 1
    for line in PACKAGING[system].install:
        assert f"{line}\n" in script
    assert "python3.11" not in script


def test_server_properties_are_the_plans() -> None:
    assert properties_in(user_data(PLAN, ONE, boot())) == server_properties(PLAN, ONE)


@settings(deadline=None)  # templates are compiled in the first example
@given(odd_properties)
def test_any_property_survives(extra: dict[str, str]) -> None:
    plan = cluster(ONE, **extra)
    assert read_properties(files(plan)[PROPERTIES]) == annotated(plan, ONE)


def test_the_same_arguments_give_the_same_text_and_others_another_digest() -> None:
    text = user_data(PLAN, ONE, boot())
    assert text == user_data(cluster(node()), node(), boot())
    assert digest(text) != digest(user_data(PLAN, ONE, boot(heap="2g")))


SECURITY = SecurityPlan(folder="/run/kafka/secrets", mechanism=Mechanism.SCRAM_SHA_512)


TLS = {
    f"listener.name.{name}.ssl.{store}.{key}": value
    for name in ("internal", "external", "controller")
    for store in ("keystore", "truststore")
    for key, value in (("type", "PEM"), ("location", "/run/kafka/secrets/broker.pem"))
}


@pytest.mark.parametrize("system", System)
@pytest.mark.parametrize(("update", "extra", "secrets", "changes"), [
    ({"security": SECURITY}, {}, ("node-1.pem", "ca.pem", "users"),
     {"version": "0123456789abcdef", "makes_users": True}),
    ({}, TLS, ("a.pem",), {}),
], ids=["secured", "with TLS in its properties"])  # fmt: skip
def test_a_large_cluster_stays_below_the_limit(
    system: System,
    update: dict[str, Any],
    extra: dict[str, str],
    secrets: tuple[str, ...],
    changes: dict[str, Any],
) -> None:
    nodes = [
        node(id, host=f"broker-{id}.a-rather-long-name.kafka.prod.example.com",
             protocol=Protocol.SSL)
        for id in range(1, 10)
    ]  # fmt: skip
    parameter_place = ("/earshot/kafka-production/security/broker-1", "ap-southeast-2")
    changes |= {
        "system": system,
        "secrets": tuple(ssm_secret(name, *parameter_place) for name in secrets),
    }
    plan = cluster(*nodes, **extra).model_copy(update=update)
    assert (
        len(user_data(plan, nodes[0], boot(report=ssm_report(*parameter_place), **changes))) < LIMIT
    )


def test_a_secured_node_logs_in_as_itself_and_one_of_them_creates_users() -> None:
    plan = cluster(SSL_NODE).model_copy(update={"security": SECURITY})
    written_files = files(plan, SSL_NODE, makes_users=True, version="0a")
    assert read_properties(written_files["/etc/kafka/client.properties"]).values == {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/run/kafka/secrets/node-1.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/run/kafka/secrets/ca.pem",
    }
    assert "until in_sync && users_made; do\n" in written_files[REPORT]
    assert "done </run/kafka/secrets/users\n" in written_files["/usr/local/sbin/kafka-users"]
    written_files = files(plan, SSL_NODE, version="0a")
    assert "until in_sync; do\n" in written_files[REPORT]
    assert "/usr/local/sbin/kafka-users" not in written_files


def test_lean_scripts_are_the_same_commands() -> None:
    secrets = (SecretFile(name="a", command=("b",)),)
    plans = (cluster(SSL_NODE, filling="x" * length) for length in (1, 1300))
    full, lean = (
        files(plan, SSL_NODE, makes_users=True, version="0a", secrets=secrets) for plan in plans
    )
    for path, script in lean.items():
        if path.startswith("/usr/local/sbin/"):
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
            assert script.startswith("#!/bin/bash\nset -euo pipefail\n")
            assert full[path].startswith("#!/bin/bash\n# ")
        elif path != PROPERTIES:
            lines = [line.strip() for line in full[path].splitlines() if line.strip()]
            assert script.splitlines() == [line for line in lines if not line.startswith("# ")]


def test_too_much_is_refused_with_its_size() -> None:
    plan = cluster(ONE, **{"some.property": "x" * LIMIT})
    assert re.fullmatch(
        r"node 1: user data: \d+ bytes\n  allowed: 16384 bytes\n"
        r"  fix: set fewer or shorter properties in `extra`",
        str(raised(EarshotError, user_data, plan, ONE, boot())),
    )


def test_as_much_as_ec2_takes_is_taken() -> None:
    def text(length: int) -> str:
        return user_data(cluster(ONE, **{"some.property": "x" * length}), ONE, boot())

    spare = LIMIT - len(text(2500)) + 2500  # what is left without comments
    assert len(text(spare)) == LIMIT
    with pytest.raises(EarshotError, match="16385 bytes"):
        text(spare + 1)


def test_a_node_without_the_listener_that_others_use_is_refused() -> None:
    node_without_internal = ONE.model_copy(update={"listeners": ONE.listeners[1:]})
    error = raised(
        EarshotError, user_data, cluster(node_without_internal), node_without_internal, boot()
    )
    assert str(error) == "node 1: has no listener INTERNAL"


@pytest.mark.parametrize("unknown", [ONE, node(2)])
def test_an_unknown_name_is_refused(unknown: Any) -> None:
    listener = unknown.listeners[-1].model_copy(update={"host": UnknownHost(what="interface")})
    broken = unknown.model_copy(update={"listeners": (*unknown.listeners[:-1], listener)})
    plan = cluster(broken) if unknown is ONE else cluster(ONE, broken)
    with pytest.raises(EarshotError, match=r"CONTROLLER://\(interface: not known yet\)"):
        user_data(plan, plan.nodes[0], boot())


@pytest.mark.parametrize(
    "log_dir", ["/data/1", "/var/lib/kafka", "/var/lib/kafka/../x", "/var/lib/kafkas/x"]
)
def test_data_lies_on_the_volume(log_dir: str) -> None:
    moved = ONE.model_copy(update={"log_dir": log_dir})
    assert str(raised(EarshotError, user_data, cluster(moved), moved, boot())) == (
        f"node 1: log_dir: {log_dir} is not on the data volume\n"
        "  allowed: a directory below /var/lib/kafka"
    )


def test_a_secret_among_the_properties_is_refused() -> None:
    plan = cluster(ONE, **{"ssl.keystore.password": "hush", "ssl.keystore.type": "PKCS12"})
    assert str(raised(EarshotError, user_data, plan, ONE, boot())) == (
        "node 1: user data: would hold the secret in ssl.keystore.password\n"
        "  allowed: no secret: everyone who may describe the instance can read its user data\n"
        "  fix: fetch it on the instance as a file below /run/kafka/secrets, and name that "
        "file: PEM key stores need no password, and a config provider reads any value from a file"
    )


@pytest.mark.parametrize(
    "roles", [(Role.BROKER,), (Role.CONTROLLER,), (Role.BROKER, Role.CONTROLLER)]
)
def test_a_node_checks_what_its_roles_promise(roles: tuple[Role, ...]) -> None:
    booting_node = node(3, roles)
    script = files(cluster(booting_node, node(9)), booting_node)[REPORT]
    assert ("kafka-topics.sh" in script) == (Role.BROKER in roles)
    assert ("--bootstrap-controller" in script) == (roles == (Role.CONTROLLER,))
    port = 19092 if Role.BROKER in roles else 29092
    assert f"address=broker-3.kafka.example.com:{port}\n" in script


def test_systems_differ_in_the_installation_of_packages() -> None:
    amazon, debian = (
        files(system=system, report=REPORT_COMMAND)
        for system in (System.AMAZON_LINUX_2023, System.DEBIAN)
    )
    assert {path for path in amazon if amazon[path] != debian[path]} == {PREPARE}
    assert "dnf --assumeyes" in amazon[PREPARE] and "apt-get" not in amazon[PREPARE]
    assert "need java java-17-amazon-corretto-headless\n" in amazon[PREPARE]
    assert "need aws awscli-2\n" in amazon[PREPARE]
    assert "apt-get" in debian[PREPARE] and "dnf" not in debian[PREPARE]
    assert "need java openjdk-17-jre-headless\n" in debian[PREPARE]


def test_a_tool_is_installed_only_where_it_is_used() -> None:
    assert "need aws" not in files()[PREPARE]
    assert "need aws" in files(report=REPORT_COMMAND)[PREPARE]
    assert "need aws" in files(secrets=(ssm_secret("a.pem", "/n", "eu-central-1"),))[PREPARE]


@pytest.mark.parametrize(
    ("version", "file", "option"),
    [
        ("3.9.2", "log4j.properties", "-Dlog4j.configuration="),
        ("4.1.1", "log4j2.properties", "-Dlog4j2.configurationFile="),
    ],
)
def test_kafka_logs_to_the_journal(version: str, file: str, option: str) -> None:
    written_files = files(cluster(ONE, kafka_version=version))
    assert [path for path in written_files if "/log4j" in path] == [f"/etc/kafka/{file}"]
    assert f"{option}file:/etc/kafka/{file}\n" in written_files[f"{UNITS}/kafka.service"]
    assert "SystemMaxUse=" in written_files["/etc/systemd/journald.conf.d/kafka.conf"]


def test_a_broker_may_fetch_keys_of_tokens_from_where_its_settings_say() -> None:
    keys = {"sasl.oauthbearer.jwks.endpoint.url": "https://a/keys%20"}
    service = f"{UNITS}/kafka.service"
    plan = PLAN.model_copy(update={"extra": tuple(keys.items())})
    lines = files(plan)[service].splitlines()
    usual = "KAFKA_OPTS=-XX:+ExitOnOutOfMemoryError"
    assert [line for line in lines if "KAFKA_OPTS=" in line] == [
        f"Environment={usual}",
        f'Environment="{usual} -Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://a/keys%%20"',
    ]
    assert "allowed.urls" not in files()[service]


def test_the_check_speaks_the_listeners_protocol() -> None:
    client = {"ssl.truststore.location": "/run/kafka/secrets/ca.pem"}
    client_properties = files(cluster(SSL_NODE), SSL_NODE, client=client)[
        "/etc/kafka/client.properties"
    ]
    assert read_properties(client_properties).values == {"security.protocol": "SSL", **client}


def test_words_reach_the_shell_as_they_are() -> None:
    secret = SecretFile(name="key", command=("fetch", "it's $HOME"))
    written_files = files(report=("tell", "a b", "$(x)"), secrets=(secret,))
    assert """if tell 'a b' '$(x)' "$value"; then""" in written_files[REPORT]
    assert """    fetch 'it'"'"'s $HOME' "$@" >""" in written_files[PREPARE]
    two_secrets = (secret, SecretFile(name="ca", command=("fetch", "-v", "it")))
    script = files(secrets=two_secrets)[PREPARE]
    assert """    fetch key 'it'"'"'s $HOME'\n    fetch ca -v it\n""" in script
    assert '    fetch "$@" >' in script, "what both begin with is written once"


JOURNAL = """\
[2026-01-01 00:00:00,000] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
org.apache.kafka.common.config.ConfigException: Invalid value abc
	at org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:776)
[2026-01-01 00:00:01,000] INFO shutting down (kafka.server.BrokerServer)
"""


@pytest.mark.parametrize(
    ("journal", "reported"),
    [(JOURNAL, "org.apache.kafka.common.config.ConfigException: Invalid value abc\n"), ("", "")],
)
def test_a_node_that_is_late_reports_the_cause_that_kafka_gave(journal: str, reported: str) -> None:
    script = files()[REPORT]
    body = script[script.index("last_error()") : script.index("case $1 in")]
    journalctl = "journalctl() { printf '%s' \"$JOURNAL\"; }\n"
    completed = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"{journalctl}{body}\nlast_error || true"],
        env={"PATH": os.environ["PATH"], "JOURNAL": journal},
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout == reported


def test_every_file_ends_with_its_last_line() -> None:
    written_files = files()
    assert {path for path, content in written_files.items() if not content.endswith("\n")} == set()
