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


def checked(
    folder: Path, name: str, text: str, release: tuple[int, int] | None = None
) -> FileReport:
    (folder / name).write_text(text)
    return check(folder / name, {}, FileOptions(release=release))


def places(report: FileReport) -> list[tuple[str, int, int]]:
    return [
        (mistake.finding.rule, mistake.place.line, mistake.place.column)
        for mistake in report.mistakes
    ]


@pytest.mark.parametrize("name", [".env", ".env.local", "kafka.env"])
def test_a_file_of_variables_of_a_broker(tmp_path: Path, name: str) -> None:
    report = checked(tmp_path, name, VARIABLES)
    assert (report.kind, places(report)) == ("environment file", [("KL002", 7, 1)])
    (mistake,) = report.mistakes
    assert mistake.finding.observed == (
        "advertised.listeners: PLAINTEXT advertises 0.0.0.0:9092; Kafka does not start"
    )


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        # an exported variable is placed at its name
        (VARIABLES.replace("://:9092", "://:").replace("0.0.0.0", "kafka"), [("KL002", 6, 8)]),
        (VARIABLES.replace("0.0.0.0", "${HOST}"), []),
        # the service may set the rest
        ("KAFKA_ADVERTISED_LISTENERS=A://kafka:9092\n", []),
    ],
)
def test_known_variables_are_checked(
    tmp_path: Path, text: str, mistakes: list[tuple[str, int, int]]
) -> None:
    assert places(checked(tmp_path, ".env", text)) == mistakes


def test_another_file_of_variables_is_passed_over_and_an_invalid_one_refused(
    tmp_path: Path,
) -> None:
    report = checked(tmp_path, ".env", "POSTGRES_USER=a\nKAFKA_BOOTSTRAP_SERVERS=kafka:9092\n")
    assert (report.kind, report.unchecked) == ("", ("sets no variables of a broker",))
    with pytest.raises(EarshotError, match="line 1: is no assignment"):
        checked(tmp_path, ".env", "not an assignment\n")


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [("user-data.yaml", CLOUD_CONFIG, (8, 7)), ("boot.sh", SCRIPT, (6, 1)),
     ("user-data", SCRIPT, (6, 1))],
)  # fmt: skip
def test_properties_in_user_data_have_their_place(
    tmp_path: Path, name: str, text: str, place: tuple[int, int]
) -> None:
    report = checked(tmp_path, name, text)
    assert (report.kind, places(report)) == ("user data", [("KL002", *place)])
    good = checked(tmp_path, name, text.replace("0.0.0.0", "kafka.example.com"))
    assert (good.mistakes, good.unchecked) == ((), ())


def test_encoded_properties_are_checked_without_a_line(tmp_path: Path) -> None:
    packed = base64.b64encode(PROPERTIES.encode()).decode()
    text = "#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: " + packed + "}\n"
    assert places(checked(tmp_path, "user-data.yaml", text)) == [("KL002", 0, 0)]


def test_values_that_the_instance_computes_are_named_and_not_checked(tmp_path: Path) -> None:
    text = SCRIPT.replace("'END'", "END").replace("//0.0.0.0", "//$(hostname -f)")
    report = checked(tmp_path, "boot.sh", text.replace("node.id=1", "node.id=$ID"))
    assert report.mistakes == ()
    assert report.unchecked == (
        "/etc/server.properties: node.id is not known, the instance computes $ID",
        "/etc/server.properties: the host is not known, the instance computes $(hostname -f)",
    )


def test_earlier_content_of_an_appended_file_is_unknown(tmp_path: Path) -> None:
    report = checked(tmp_path, "boot.sh", SCRIPT.replace("cat >", "cat >>"))
    assert places(report) == [("KL002", 6, 1)]
    assert report.unchecked == ("/etc/server.properties: its earlier content is unknown",)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('echo "advertised.listeners=A://0.0.0.0:9092" | sudo tee -a s.properties', (2, 7)),
        ("sed -i 's/#advertised.listeners=.*/advertised.listeners=A:\\/\\/0.0.0.0:1/' f", (2, 36)),
    ],
)
def test_a_property_that_a_command_sets_has_its_place(
    tmp_path: Path, line: str, place: tuple[int, int]
) -> None:
    assert places(checked(tmp_path, "boot.sh", f"#!/bin/sh\n{line}\n")) == [("KL002", *place)]


def test_user_data_are_checked_for_the_release_of_the_option(tmp_path: Path) -> None:
    text = SCRIPT.replace("0.0.0.0", "kafka").replace("=broker", "=broker,broker")
    assert checked(tmp_path, "boot.sh", text).mistakes == (), "Kafka 4.2 drops the second"
    assert places(checked(tmp_path, "boot.sh", text, (3, 9))) == [("KL002", 3, 1)]


UNREAD = (
    "sets advertised.listeners in a way that is not read (read are files in a cloud-config, "
    "and here-documents, `echo` and `sed -i` in a script)"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("#!/bin/sh\napt-get install kafka\n", "sets up no broker"),
        ("#!/bin/sh\nsed -i s/advertised.listeners=.*/a/ f\n", UNREAD),
    ],
)
def test_user_data_without_a_broker_s_file_are_passed_over(
    tmp_path: Path, text: str, why: str
) -> None:
    report = checked(tmp_path, "boot.sh", text)
    assert (report.kind, report.unchecked) == ("", (why,))


NO_ADDRESS = "advertises no address (advertised_kafka_api): flags or a Compose file may"


@pytest.mark.parametrize(
    ("host", "mistakes", "unchecked"),
    [
        ("0.0.0.0", [("KL002", 3, 3)], ()),
        *((host, [], ()) for host in ("kafka", "192.0.2.1", "localhost", "[1, 2]")),
        *((host, [], (NO_ADDRESS,)) for host in ("'${HOST}'", "''")),
    ],
)
def test_the_file_of_redpanda(
    tmp_path: Path, host: str, mistakes: list[tuple[str, int, int]], unchecked: tuple[str, ...]
) -> None:
    text = f"""\
redpanda:
  kafka_api: [{{name: inner, address: 0.0.0.0, port: 9092}}]
  advertised_kafka_api:
    - {{name: inner, address: {host}, port: 9092}}
"""
    report = checked(tmp_path, "redpanda.yaml", text)
    assert report.kind == ("" if unchecked else "Redpanda's settings")
    assert (places(report), report.unchecked) == (mistakes, unchecked)
    for mistake in report.mistakes:
        assert mistake.finding.observed == (
            "advertised_kafka_api: inner advertises 0.0.0.0:9092; Redpanda does not start"
        )


def test_the_file_of_redpanda_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    text = "\ufeffredpanda:\n  kafka_api: [{address: 0.0.0.0, port: 9092}]\n"
    assert checked(tmp_path, "redpanda.yaml", text).unchecked != ("is not a Compose file",)
