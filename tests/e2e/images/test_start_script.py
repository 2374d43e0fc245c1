"""The demands, refusals and derived variables of the double's start script, as documented for
apache/kafka."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from earshot.jvm.java import find_java
from tests.e2e.images.load import CONTEXT, kafka_jars

CONFIGURE = CONTEXT / "docker" / "configure"
CLUSTER_ID = "ZWFyc2hvdC10ZXN0cy1ydQ"


def run_configure(secrets: Path | None = None, **variables: str) -> tuple[int, str, dict[str, str]]:
    """The exit status, the output, and the Kafka variables afterwards."""
    script = f"set -eu; source {CONFIGURE}; echo ---; env -0"
    environment = {"PATH": os.environ["PATH"], "SECRETS": str(secrets or "/none"), **variables}
    completed = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment
    )
    output, _, variable_text = completed.stdout.partition("---\n")
    pairs = dict(word.split("=", 1) for word in variable_text.split("\0") if word)
    kafka = {name: value for name, value in pairs.items() if name.startswith("KAFKA_")}
    return completed.returncode, output + completed.stderr, kafka


@pytest.mark.parametrize(
    ("advertised", "derived"),
    [
        ("A://b1:9092", "A://0.0.0.0:9092"),
        ("A://b1:9092,B://ext.example:39092", "A://0.0.0.0:9092,B://0.0.0.0:39092"),
        ("A://[::1]:9092", "A://0.0.0.0::1]:9092"),  # broken in the image as well
    ],
)
def test_listeners_are_derived_from_the_advertised_ones(advertised: str, derived: str) -> None:
    code, output, variables = run_configure(KAFKA_ADVERTISED_LISTENERS=advertised)
    assert (code, output) == (0, "")
    assert variables["KAFKA_LISTENERS"] == derived
    assert variables["KAFKA_ADVERTISED_LISTENERS"] == advertised


ADVERTISED = {"KAFKA_ADVERTISED_LISTENERS": "A://b1:9092"}
UNSUPPORTED = "KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller.\n"


@pytest.mark.parametrize(("container_variables", "code", "expected_output", "listeners"), [
    ({**ADVERTISED, "KAFKA_LISTENERS": "A://:19092"}, 0, "", "A://:19092"),
    ({**ADVERTISED, "KAFKA_PROCESS_ROLES": "controller"}, 1, UNSUPPORTED, None),
    ({"KAFKA_ADVERTISED_LISTENERS": "", "KAFKA_PROCESS_ROLES": "controller"}, 0, "", None),
    ({**ADVERTISED, "KAFKA_PROCESS_ROLES": "broker,controller"}, 0, "", "A://0.0.0.0:9092"),
    ({**ADVERTISED, "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "A:SSL"}, *(0, "", "A://0.0.0.0:9092")),
    ({"KAFKA_ADVERTISED_LISTENERS": "SASL_PLAINTEXT://b:1"},
     *(1, "KAFKA_OPTS environment variable not set\n", None)),
    ({"KAFKA_ADVERTISED_LISTENERS": "SASL_PLAINTEXT://b:1", "KAFKA_OPTS": "-Dx"},
     *(0, "", "SASL_PLAINTEXT://0.0.0.0:1")),
], ids=[
    "listeners that are given stay", "a controller alone may not advertise",
    "an empty variable of a controller is dropped", "a combined node may advertise",
    "SSL in the map alone demands no stores", "SASL in a name demands options", "SASL with options",
])  # fmt: skip
def test_what_the_script_makes_of_variables(
    container_variables: dict[str, str], code: int, expected_output: str, listeners: str | None
) -> None:
    exit_code, output, variables = run_configure(None, **container_variables)
    assert (exit_code, output) == (code, expected_output)
    if code == 0:
        assert variables.get("KAFKA_LISTENERS") == listeners
        assert bool(variables.get("KAFKA_ADVERTISED_LISTENERS")) is (listeners is not None)
        assert not any(name.startswith("KAFKA_SSL") for name in variables)


TLS = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "keys",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "keys-password",
    "KAFKA_SSL_KEY_CREDENTIALS": "key-password",
}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    for name in ("keys", "keys-password", "key-password", "trust", "trust-password"):
        (tmp_path / name).write_text(f"{name}!\n")
    return tmp_path


@pytest.mark.parametrize("name", ["SSL", "SASL_SSL", "INTERNAL_SSL"])
@pytest.mark.parametrize("missing_variable", TLS)
def test_ssl_in_a_name_demands_stores(secrets: Path, name: str, missing_variable: str) -> None:
    tls_variables = {key: value for key, value in TLS.items() if key != missing_variable}
    code, output, _ = run_configure(
        secrets, KAFKA_ADVERTISED_LISTENERS=f"{name}://b:1", KAFKA_OPTS="-Dx", **tls_variables
    )
    assert (code, output) == (1, f"{missing_variable} environment variable not set\n")


def test_ssl_in_a_name_sets_locations_and_passwords(secrets: Path) -> None:
    code, output, variables = run_configure(secrets, KAFKA_ADVERTISED_LISTENERS="SSL://b:1", **TLS)
    assert (code, output) == (0, "")
    assert variables["KAFKA_SSL_KEYSTORE_LOCATION"] == f"{secrets}/keys"
    assert variables["KAFKA_SSL_KEYSTORE_PASSWORD"] == "keys-password!"
    assert variables["KAFKA_SSL_KEY_PASSWORD"] == "key-password!"


def test_a_store_that_is_not_there_is_named(secrets: Path) -> None:
    (secrets / "keys").unlink()
    code, output, _ = run_configure(secrets, KAFKA_ADVERTISED_LISTENERS="SSL://b:1", **TLS)
    assert (code, output) == (1, f"{secrets}/keys file does not exist\n")


@pytest.mark.parametrize("demand", ["required", "requested"])
def test_client_certificates_demand_a_trust_store(secrets: Path, demand: str) -> None:
    tls_variables = {
        **TLS,
        "KAFKA_ADVERTISED_LISTENERS": "SSL://b:1",
        "KAFKA_SSL_CLIENT_AUTH": demand,
    }
    code, output, _ = run_configure(secrets, **tls_variables)
    assert (code, output) == (1, "KAFKA_SSL_TRUSTSTORE_FILENAME environment variable not set\n")
    tls_variables |= {
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "trust",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "trust-password",
    }
    code, _, variables = run_configure(secrets, **tls_variables)
    assert code == 0
    assert variables["KAFKA_SSL_TRUSTSTORE_PASSWORD"] == "trust-password!"


# Kafka's own wrapper on our default files, without a container.

VOTER = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:9092",
}


def run_wrapper(folder: Path, mounted_text: str | None = None, **variables: str) -> tuple[str, str]:
    """The properties that Kafka's wrapper writes, and its output if it failed."""
    for name in ("default", "mounted", "final"):
        (folder / name).mkdir()
    for name in ("server.properties", "log4j2.yaml", "tools-log4j2.yaml"):
        shutil.copy(CONTEXT / "docker" / name, folder / "default")
    default_properties = folder / "default" / "server.properties"
    default_properties.write_text(default_properties.read_text().replace("/tmp/", f"{folder}/"))
    if mounted_text is not None:
        (folder / "mounted" / "server.properties").write_text(mounted_text)
    completed = subprocess.run(
        [
            find_java().executable, "-cp", os.pathsep.join(map(str, kafka_jars())),
            "kafka.docker.KafkaDockerWrapper", "setup", "-D", folder / "default",
            "-M", folder / "mounted", "-F", folder / "final",
        ],
        env={"PATH": os.environ["PATH"], "CLUSTER_ID": CLUSTER_ID, **variables},
        capture_output=True,
        text=True,
    )  # fmt: skip
    output = (completed.stdout + completed.stderr) if completed.returncode else ""
    return (folder / "final" / "server.properties").read_text(), output


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_variables_become_properties_and_storage_is_formatted(tmp_path: Path) -> None:
    extra = {"KAFKA_LOG_DIRS": f"{tmp_path}/data", "KAFKA_A__B_C": "x", "KAFKA_A___B": "y"}
    properties, output = run_wrapper(
        tmp_path, **VOTER, **extra, KAFKA_HEAP_OPTS="-Xmx1G", OTHER="z"
    )
    assert output == ""
    lines = properties.split()
    assert "controller.quorum.voters=1@localhost:9093" in lines
    assert {"a_b.c=x", "a-b=y"} <= set(lines)
    assert "heap.opts" not in properties and "OTHER" not in properties
    assert "offsets.topic" not in properties, "any setting drops every shipped default"
    assert f"cluster.id={CLUSTER_ID}" in (tmp_path / "data" / "meta.properties").read_text()


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_shipped_properties_are_used_where_nothing_is_set(tmp_path: Path) -> None:
    properties, output = run_wrapper(tmp_path)
    assert output == ""
    assert "advertised.listeners=PLAINTEXT://localhost:9092" in properties
    assert (tmp_path / "kraft-combined-logs" / "meta.properties").exists()


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_variables_come_after_a_mounted_file(tmp_path: Path) -> None:
    mounted_text = f"log.dirs={tmp_path}/data\nnode.id=7\n"
    properties, output = run_wrapper(tmp_path, mounted_text, **VOTER)
    assert output == ""
    assert properties.index("node.id=7") < properties.index("node.id=1")


@pytest.mark.e2e
@pytest.mark.requires("java")
def test_a_dynamic_quorum_is_not_formatted(tmp_path: Path) -> None:
    dynamic = {key: value for key, value in VOTER.items() if "VOTERS" not in key}
    dynamic |= {"KAFKA_CONTROLLER_QUORUM_BOOTSTRAP_SERVERS": "localhost:9093"}
    _, output = run_wrapper(tmp_path, KAFKA_LOG_DIRS=f"{tmp_path}/data", **dynamic)
    assert "controller.quorum.voters is not set" in output.replace("\n", " ")
    assert not (tmp_path / "data" / "meta.properties").exists()
