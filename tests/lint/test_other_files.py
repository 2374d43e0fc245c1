"""Files of variables and user data in `earshot lint`: what is wrong, where, what is not known."""

import base64
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.model import FileOptions, FileReport

VARIABLES = """\
# of the broker
KAFKA_NODE_ID=1
KAFKA_PROCESS_ROLES=broker
KAFKA_CONTROLLER_QUORUM_VOTERS=2@controller:9093
KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER
export KAFKA_LISTENERS=PLAINTEXT://:9092
KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://0.0.0.0:9092"
DB_PASSWORD=hunter2
"""
PROPERTIES = """\
process.roles=broker
node.id=1
listeners=PLAINTEXT://:9092
advertised.listeners=PLAINTEXT://0.0.0.0:9092
controller.quorum.voters=2@controller:9093
controller.listener.names=CONTROLLER
"""
CLOUD_CONFIG = "#cloud-config\nwrite_files:\n  - path: /etc/server.properties\n    content: |\n" + (
    "".join(f"      {line}\n" for line in PROPERTIES.splitlines())
)
SCRIPT = f"#!/bin/bash\ncat > /etc/server.properties <<'END'\n{PROPERTIES}END\n"

UNSAID = FileOptions()


def checked(folder: Path, name: str, text: str, said: FileOptions = UNSAID) -> FileReport:
    file = folder / name
    file.write_text(text)
    return check(file, {}, said)


def places(linted: FileReport) -> list[tuple[str, int, int]]:
    return [(it.finding.rule, it.place.line, it.place.column) for it in linted.mistakes]


@pytest.mark.parametrize("name", [".env", ".env.local", "kafka.env"])
def test_variables_of_a_broker_are_checked_in_a_file_of_their_own(
    tmp_path: Path, name: str
) -> None:
    found = checked(tmp_path, name, VARIABLES)
    assert (found.kind, places(found)) == ("environment file", [("KL002", 7, 1)])
    (mistake,) = found.mistakes
    assert mistake.finding.observed == (
        "advertised.listeners: PLAINTEXT advertises 0.0.0.0:9092; Kafka does not start"
    )


def test_an_exported_variable_is_placed_at_its_name(tmp_path: Path) -> None:
    text = VARIABLES.replace("://:9092", "://:").replace("0.0.0.0", "kafka")
    assert places(checked(tmp_path, ".env", text)) == [("KL002", 6, 8)]


def test_what_a_file_of_variables_leaves_open_is_not_wrong(tmp_path: Path) -> None:
    good = VARIABLES.replace("0.0.0.0", "${HOST}")
    assert checked(tmp_path, ".env", good).mistakes == ()
    alone = "KAFKA_ADVERTISED_LISTENERS=A://kafka:9092\n"
    assert checked(tmp_path, ".env", alone).mistakes == (), "the service may say the rest"


def test_variables_of_others_are_passed_over(tmp_path: Path) -> None:
    found = checked(tmp_path, ".env", "POSTGRES_USER=a\nKAFKA_BOOTSTRAP_SERVERS=kafka:9092\n")
    assert (found.kind, found.unchecked) == ("", ("sets no variables of a broker",))


def test_a_file_of_variables_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(EarshotError, match="line 1: is no assignment"):
        checked(tmp_path, ".env", "not an assignment\n")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [("user-data.yaml", CLOUD_CONFIG, (8, 7)), ("boot.sh", SCRIPT, (6, 1)),
     ("user-data", SCRIPT, (6, 1))],
)  # fmt: skip
def test_properties_in_user_data_are_checked_where_they_stand(
    tmp_path: Path, name: str, text: str, place: tuple[int, int]
) -> None:
    found = checked(tmp_path, name, text)
    assert (found.kind, places(found)) == ("user data", [("KL002", *place)])
    good = checked(tmp_path, name, text.replace("0.0.0.0", "kafka.example.com"))
    assert (good.mistakes, good.unchecked) == ((), ())


def test_what_is_packed_is_checked_without_a_line(tmp_path: Path) -> None:
    packed = base64.b64encode(PROPERTIES.encode()).decode()
    text = "#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: " + packed + "}\n"
    assert places(checked(tmp_path, "user-data.yaml", text)) == [("KL002", 0, 0)]


def test_what_the_instance_computes_is_named_and_not_checked(tmp_path: Path) -> None:
    text = SCRIPT.replace("'END'", "END").replace("//0.0.0.0", "//$(hostname -f)")
    found = checked(tmp_path, "boot.sh", text.replace("node.id=1", "node.id=$ID"))
    assert found.mistakes == ()
    assert found.unchecked == (
        "/etc/server.properties: node.id is not known, the instance computes $ID",
        "/etc/server.properties: the host is not known, the instance computes $(hostname -f)",
    )


def test_what_is_added_to_a_file_is_no_whole_file(tmp_path: Path) -> None:
    found = checked(tmp_path, "boot.sh", SCRIPT.replace("cat >", "cat >>"))
    assert places(found) == [("KL002", 6, 1)]
    assert found.unchecked == ("/etc/server.properties: its earlier content is unknown",)


def test_a_release_that_is_said_counts_here_too(tmp_path: Path) -> None:
    text = SCRIPT.replace("0.0.0.0", "kafka").replace("=broker", "=broker,broker")
    assert checked(tmp_path, "boot.sh", text).mistakes == (), "Kafka 4.2 drops the second"
    assert places(checked(tmp_path, "boot.sh", text, FileOptions(release=(3, 9)))) == [
        ("KL002", 3, 1)
    ]


UNREAD = (
    "sets advertised.listeners in a way that is not read (earshot reads files in a cloud-config "
    "and here-documents in a script)"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\napt-get install kafka\n", "sets up no broker"),
        ("#!/bin/sh\nsed -i s/advertised.listeners=.*/a/ f\n", UNREAD),
    ],
)
def test_user_data_without_a_broker_s_file_is_passed_over(
    tmp_path: Path, text: str, why: str
) -> None:
    found = checked(tmp_path, "boot.sh", text)
    assert (found.kind, found.unchecked) == ("", (why,))


REDPANDA = """\
redpanda:
  kafka_api: [{name: inner, address: 0.0.0.0, port: 9092}]
  advertised_kafka_api:
    - {name: inner, address: HOST, port: 9092}
"""


def test_what_redpanda_refuses_in_its_own_file(tmp_path: Path) -> None:
    found = checked(tmp_path, "redpanda.yaml", REDPANDA.replace("HOST", "0.0.0.0"))
    assert (found.kind, places(found)) == ("Redpanda's settings", [("KL002", 3, 3)])
    (mistake,) = found.mistakes
    assert mistake.finding.observed == (
        "advertised_kafka_api: inner advertises 0.0.0.0:9092; Redpanda does not start"
    )


@pytest.mark.parametrize("host", ["kafka", "192.0.2.1", "localhost"])
def test_what_redpanda_takes_in_its_own_file(tmp_path: Path, host: str) -> None:
    found = checked(tmp_path, "redpanda.yaml", REDPANDA.replace("HOST", host))
    assert (found.kind, found.mistakes, found.unchecked) == ("Redpanda's settings", (), ())


@pytest.mark.parametrize("host", ["'${HOST}'", "''", "[1, 2]"])
def test_what_a_variable_says_in_redpandas_file_is_not_known(tmp_path: Path, host: str) -> None:
    found = checked(tmp_path, "redpanda.yaml", REDPANDA.replace("HOST", host))
    assert found.mistakes == ()
