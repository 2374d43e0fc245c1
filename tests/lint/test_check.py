"""One file on disk, checked by what it is."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.model import FileReport, Place
from tests.raised import raised

COMPOSE = """\
services:
  kafka:
    image: confluentinc/cp-kafka:7.6.0
    ports: ["9092:9092"]
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://${NAME:-localhost}:9092
  ui:
    image: example/ui
    environment:
      - BOOTSTRAP_SERVERS=kafka:9092
"""
OTHER = "contains no properties, variables, services or resources of a broker"
TEMPLATE = "is a template: check what it renders"
PROPERTIES = "broker.id=1\nzookeeper.connect=z:2181\nlisteners=A://:9092\n"


def checked(
    folder: Path, text: str, name: str = "compose.yml", variables: dict[str, str] | None = None
) -> FileReport:
    file = folder / name
    file.write_text(text)
    return check(file, variables or {})


def said(linted: FileReport) -> list[tuple[str, str, int, int]]:
    """Rule, container, line and column of each mistake."""
    return [
        (item.finding.rule, item.finding.container, item.place.line, item.place.column)
        for item in linted.mistakes
    ]


def test_a_compose_file(tmp_path: Path) -> None:
    found = checked(tmp_path, COMPOSE)
    assert (found.file, found.kind, found.unchecked) == (
        str(tmp_path / "compose.yml"),
        "Compose file",
        (),
    )
    assert said(found) == [("KL015", "kafka", 7, 7)]
    assert found.mistakes[0].finding.observed == (
        "ui bootstraps to PLAINTEXT and is sent on to "
        "localhost:9092: it is the client itself, and nothing listens at port 9092"
    )


TWICE = """x-a: &a {A: 1}
x-b: &b {A: 2}
services:
  kafka:
    image: apache/kafka:4.1.1
    ports: ["9092:9092"]
    BODY
"""


@pytest.mark.parametrize(
    ("body", "subjects"),
    [
        ("environment: {KAFKA_HEAP_OPTS: -Xmx1G, KAFKA_HEAP_OPTS: -Xmx2G}", ["kafka"]),
        ("restart: always\n    restart: unless-stopped", ["kafka"]),
        ("labels: {}\n  web: {image: a, image: b}", ["web"]),
        ("labels: {}\n  web: {image: a}\n  web: {image: b}", ["web"]),
        ("labels: {a: 1, b: 2, b: 3, a: 4}", ["kafka"]),
        ("labels: {<<: *a, <<: *b}", []),
        ("labels: {A: 1}\n  web: {image: a, labels: {A: 1}}", []),
        ("environment: [KAFKA_HEAP_OPTS=-Xmx1G, KAFKA_HEAP_OPTS=-Xmx2G]", []),
    ],
)
def test_a_key_that_occurs_twice(tmp_path: Path, body: str, subjects: list[str]) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(TWICE.replace("BODY", body))
    found = [(item.finding.rule, item.finding.container) for item in check(file, {}).mistakes]
    refused = [container for rule, container in found if rule == "KL014"]
    assert refused == subjects


UI_ALONE = "services: {ui: {image: provectuslabs/kafka-ui, ENV}, app: {build: .}}"
UI_SETTING = "environment: {KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS: 'HOST:9092'}"


@pytest.mark.parametrize(
    ("image", "env", "is_lost"),
    [
        ("provectuslabs/kafka-ui", UI_SETTING.replace("HOST", "localhost"), True),
        ("kafbat/kafka-ui:v1", UI_SETTING.replace("HOST", "127.0.0.1"), True),
        ("obsidiandynamics/kafdrop", "environment: {KAFKA_BROKERCONNECT: 'localhost:9092'}", True),
        (
            "confluentinc/cp-kafka-rest:7.9.0",
            "environment: {KAFKA_REST_BOOTSTRAP_SERVERS: 'localhost:9092'}",
            True,
        ),
        ("provectuslabs/kafka-ui", UI_SETTING.replace("HOST", "kafka"), False),
        ("provectuslabs/kafka-ui", UI_SETTING.replace("HOST", "localhost:9092,kafka"), False),
        (
            "provectuslabs/kafka-ui",
            "network_mode: host, " + UI_SETTING.replace("HOST", "localhost"),
            False,
        ),
        (
            "provectuslabs/kafka-ui",
            "network_mode: 'service:app', " + UI_SETTING.replace("HOST", "localhost"),
            False,
        ),
        ("example/all-in-one", "environment: {KAFKA_BROKERS: 'localhost:9092'}", False),
        (
            "provectuslabs/kafka-ui",
            "command: sh -c 'start', " + UI_SETTING.replace("HOST", "localhost"),
            False,
        ),
    ],
)
def test_a_client_alone_at_its_own_loopback(
    tmp_path: Path, image: str, env: str, is_lost: bool
) -> None:
    file = tmp_path / "compose.yaml"
    file.write_text(UI_ALONE.replace("provectuslabs/kafka-ui", image).replace("ENV", env))
    linted = check(file, {})
    assert [item.finding.rule for item in linted.mistakes] == ["KL015"] * is_lost
    assert bool(linted.kind) is is_lost


def test_a_client_of_msk_is_judged_without_a_broker_in_the_file(tmp_path: Path) -> None:
    host = "b-1-public.demo.abc123.c5.kafka.eu-central-1.amazonaws.com"
    text = "services:\n  ui:\n    image: app\n    environment: {{KAFKA_BROKERS: '{}'}}\n"
    assert said(checked(tmp_path, text.format(f"{host}:9098"))) == [("KL015", "ui", 4, 19)]
    assert said(checked(tmp_path, text.format(f"{host}:9198"))) == []
    assert said(checked(tmp_path, text.format(f"{host}:9098,elsewhere:9092"))) == []


def test_variables_of_the_caller_come_before_those_of_a_dotenv_beside_the_file(
    tmp_path: Path,
) -> None:
    published = COMPOSE.replace('    ports: ["9092:9092"]\n', "")
    (tmp_path / ".env").write_text("NAME=kafka\n")
    assert said(checked(tmp_path, published)) == []
    assert said(checked(tmp_path, published, variables={"NAME": "localhost"})) == [
        ("KL015", "kafka", 6, 7)
    ]


def test_what_the_file_leaves_open_is_named(tmp_path: Path) -> None:
    text = COMPOSE.replace("${NAME:-localhost}", "$NAME").replace(
        '["9092:9092"]', '["9092:9092", "$PORTS"]'
    )
    found = checked(tmp_path, text)
    assert found.mistakes == ()
    assert found.unchecked == (
        "PORTS is not set: values that depend on it are unknown",
        "NAME is not set: values that depend on it are unknown",
        "service kafka: ports could not be read",
    )


def test_files_beside_it_are_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "base.yml").write_text(COMPOSE)
    text = "services:\n  kafka: {extends: {file: sub/base.yml, service: kafka}}\n" + "".join(
        COMPOSE.partition("  ui:")[1:]
    )
    assert said(checked(tmp_path, text)) == [("KL015", "kafka", 2, 3)]


def test_a_pipe_beside_it_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.env")
    text = COMPOSE.replace("    ports:", "    env_file: x.env\n    ports:")
    assert checked(tmp_path, text).unchecked == ("service kafka: env_file could not be read",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("services: {web: {image: nginx}}", "no service of it is known to run a Kafka broker"),
        (
            "services: {ui: {image: ui, environment: {BOOTSTRAP_SERVERS: 'kafka:9092'}}}",
            "no service of it is known to run a Kafka broker",
        ),
        ("kafka: {listeners: []}", "is not a Compose file"),
        (
            "redpanda: {kafka_api: [{address: 0.0.0.0}]}",
            ("advertises no address (advertised_kafka_api): flags or a Compose file may"),
        ),
        ("- kafka", "is not a Compose file"),
        ("", "is not a Compose file"),
        (
            "{% if kafka %}\nservices:\n  kafka: {image: apache/kafka}\n{% endif %}\n",
            "is a template: check what it renders (`helm template`, `docker compose config`)",
        ),
        (
            "services:\n{{- if .Values.kafka }}\n  kafka: {image: apache/kafka}\n{{- end }}\n",
            "is a template: check what it renders (`helm template`, `docker compose config`)",
        ),
    ],
)
def test_what_is_passed_over(tmp_path: Path, text: str, why: str) -> None:
    found = checked(tmp_path, text)
    assert (found.kind, found.mistakes, found.unchecked) == ("", (), (why,))


def test_properties(tmp_path: Path) -> None:
    found = checked(tmp_path, PROPERTIES, "server.properties")
    assert (found.kind, found.unchecked) == ("properties file", ())
    (mistake,) = found.mistakes
    assert mistake.place == Place(str(tmp_path / "server.properties"), 3, 1)
    assert mistake.finding.observed == (
        "listeners: A has no protocol: listener.security.protocol.map is not set; "
        "Kafka does not start"
    )
    assert checked(tmp_path, PROPERTIES.replace("A:", "PLAINTEXT:"), "s.properties").mistakes == ()


def test_properties_of_a_client(tmp_path: Path) -> None:
    found = checked(tmp_path, "bootstrap.servers=kafka:9092\n", "client.properties")
    assert (found.kind, found.unchecked) == ("", ("is not a broker configuration",))


BROKER_KEYS = "process.roles=broker\nnode.id=1\n"
SERVERS = "advertised.listeners=PLAINTEXT://0.0.0.0:9092\n"


@pytest.mark.parametrize(
    "more",
    [
        "controller.quorum.bootstrap.servers=c:9093",
        "confluent.metrics.reporter.bootstrap.servers=k:9092",
        "confluent.license.bootstrap.servers=k:9092",
        "cruise.control.metrics.reporter.bootstrap.servers=k:9092",
        "group.id=g",
    ],
)
def test_a_broker_with_clients_inside_is_judged(tmp_path: Path, more: str) -> None:
    text = f"{BROKER_KEYS}listeners=PLAINTEXT://:9092\n{SERVERS}{more}\n"
    found = checked(tmp_path, text, "server.properties")
    assert found.kind == "properties file"
    assert [item.finding.rule for item in found.mistakes] == ["KL002"]


@pytest.mark.parametrize(
    "name",
    ["kafka.conf", "server.properties.j2", "server.properties.example", "server.cfg", "server",
     "server.properties.erb", "server.properties.bak", "Server.Properties"],
)  # fmt: skip
def test_properties_of_another_name(tmp_path: Path, name: str) -> None:
    found = checked(tmp_path, PROPERTIES, name)
    assert (found.kind, [item.finding.rule for item in found.mistakes]) == (
        "properties file",
        ["KL002"],
    )


@pytest.mark.parametrize("name", [".env.example", "env.j2", "kafka.env.dist", "kafka", "k.conf"])
def test_variables_of_another_name(tmp_path: Path, name: str) -> None:
    text = "# of the service\nexport KAFKA_ADVERTISED_LISTENERS=A://0.0.0.0:9092\n"
    assert checked(tmp_path, text, name).kind == "environment file"


@pytest.mark.parametrize("name", ["compose.yml.j2", "docker-compose.yml.example", "kafka"])
def test_a_compose_file_of_another_name(tmp_path: Path, name: str) -> None:
    assert checked(tmp_path, COMPOSE, name).kind == "Compose file"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.conf", "server {\n  listen 80;\n}\n", OTHER),
        ("notes.txt", "kafka: [\n", OTHER),
        ("a.ini", "[kafka]\nhost = k\n", OTHER),
        ("k.env.j2", "{% if x %}\nKAFKA_LISTENERS=A://:1\n{% endif %}\n", TEMPLATE),
        ("app.properties", "spring.kafka.bootstrap-servers=k:1\n", "is not a broker configuration"),
    ],
)
def test_what_is_not_judged_says_why(tmp_path: Path, name: str, text: str, why: str) -> None:
    found = checked(tmp_path, text, name)
    assert (found.kind, found.mistakes, found.unchecked) == ("", (), (why,))


@pytest.mark.parametrize("name", ["server.properties", "a.env", "kafka.conf", "a.yml"])
def test_binary_data_is_refused(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    for data in (b"listeners=A\x00", bytes(range(256)), b"\xff\xfel\x00=\x00"):
        file.write_bytes(data)
        error = raised(EarshotError, check, file, {})
        assert "text" in str(error) or "YAML" in str(error)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"services: [", "is no YAML"),
        (b"\xff", "is no UTF-8 text"),
        (b"services: {kafka: [image]}", "services.kafka: found a list"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(tmp_path: Path, data: bytes, message: str) -> None:
    file = tmp_path / "compose.yml"
    file.write_bytes(data)
    assert message in str(raised(EarshotError, check, file, {}))


def test_a_file_that_is_gone_is_one_clear_error(tmp_path: Path) -> None:
    assert str(raised(EarshotError, check, tmp_path / "gone.yml", {})) == (
        f"file {tmp_path / 'gone.yml'}: cannot be read (No such file or directory)"
    )


@pytest.mark.parametrize("blank", ["\n", " ", "\t\n", "{{\n"])
def test_much_of_nothing_takes_no_long_time(tmp_path: Path, blank: str) -> None:
    began = time.process_time()
    try:
        checked(tmp_path, "# kafka\n" + blank * (900_000 // len(blank)))
    except EarshotError as error:
        assert error.observed
    assert time.process_time() - began < 20


pieces = st.sampled_from(
    [*COMPOSE.splitlines(keepends=True), *PROPERTIES.splitlines(keepends=True), "---\n", "  ", "{",
     "    image: confluentinc/cp-kafka:8.0.0\n", "    <<: *a\n", "  k: &a\n", "!x ", "services:\n"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pieces, max_size=20).map("".join) | st.text(max_size=40), st.booleans())
def test_any_text_is_checked_or_refused_in_one_clear_error(
    tmp_path: Path, text: str, is_yaml: bool
) -> None:
    file = tmp_path / ("a.yml" if is_yaml else "a.properties")
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        found = check(file, {})
    except EarshotError as error:
        assert str(error)
        return
    assert bool(found.kind) or (found.unchecked and not found.mistakes)
    for item in found.mistakes:
        assert item.place.file == str(file) and item.place.line >= 1


REACHED = """\
services:
  kafka:
    image: confluentinc/cp-kafka:7.6.0
    ports: ["9092:9092"]
    env_file: k.env
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_LISTENERS: IN://:19092,OUT://:9092
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: IN:PLAINTEXT,OUT:PLAINTEXT
      KAFKA_INTER_BROKER_LISTENER_NAME: IN
"""
OPEN = "HOST_IP is not set: values that depend on it are unknown"


@pytest.mark.parametrize(
    ("env", "dotenv", "more"),
    [
        ("KAFKA_ADVERTISED_LISTENERS=IN://kafka:19092,OUT://${HOST_IP}:9092", "", ""),
        ("", "ADV=${HOST_IP}", "IN://kafka:19092,OUT://${ADV}:9092"),
    ],
)
def test_an_address_that_a_file_of_variables_leaves_open_is_not_blamed(
    tmp_path: Path, env: str, dotenv: str, more: str
) -> None:
    (tmp_path / "k.env").write_text(env + "\n")
    (tmp_path / ".env").write_text(dotenv + "\n")
    text = REACHED + (f"      KAFKA_ADVERTISED_LISTENERS: {more}\n" if more else "")
    found = checked(tmp_path, text)
    assert (said(found), found.unchecked) == ([], (OPEN,))


def test_a_variable_that_is_handed_through_is_not_taken_for_absent(tmp_path: Path) -> None:
    (tmp_path / "k.env").write_text("")
    found = checked(tmp_path, REACHED + "      KAFKA_ADVERTISED_LISTENERS:\n")
    open_end = "KAFKA_ADVERTISED_LISTENERS is not set: values that depend on it are unknown"
    assert (said(found), found.unchecked) == ([], (open_end,))


@pytest.mark.parametrize("mounted", ["bash-config", "configure"])
def test_a_start_script_of_one_s_own_may_set_what_is_missing(tmp_path: Path, mounted: str) -> None:
    text = REACHED.replace("    env_file: k.env\n", "    volumes: [VOLUME]\n")
    text = text.replace("IN://:19092,OUT://:9092", "IN://0.0.0.0:19092,OUT://0.0.0.0:9092")
    script = f"./{mounted}:/etc/confluent/docker/{mounted}"
    assert said(checked(tmp_path, text.replace("VOLUME", script))) == []
    assert said(checked(tmp_path, text.replace("VOLUME", "./data:/var/lib/kafka/data"))) != []


def test_a_variable_in_a_form_that_compose_refuses_is_bad_input(tmp_path: Path) -> None:
    text = REACHED.replace("    env_file: k.env\n", "")
    address = "IN://kafka:19092,OUT://${A:9092"
    why = r"KAFKA_ADVERTISED_LISTENERS: has a form that compose does not know \(at character 27\)"
    with pytest.raises(EarshotError, match=why):
        checked(tmp_path, f"{text}      KAFKA_ADVERTISED_LISTENERS: {address}\n")


def test_a_property_of_another_tool_leaves_listeners_open(tmp_path: Path) -> None:
    text = REACHED.replace("    env_file: k.env\n", "")
    address = "IN://kafka:19092,OUT://${kafka.host}:9092"
    found = checked(tmp_path, f"{text}      KAFKA_ADVERTISED_LISTENERS: {address}\n")
    where = "services.kafka.environment.KAFKA_ADVERTISED_LISTENERS"
    why = "has a form that compose does not know (at character 31)"
    assert (said(found), found.unchecked) == (
        [],
        (f"{where} {why}: unknown, because another tool replaces it",),
    )
    open_ends = (f"service kafka: KAFKA_ADVERTISED_LISTENERS is not known: {address}",)
    assert found.open_listeners == open_ends


@pytest.mark.parametrize("end", ["---\n", "---\n---\n", "...\n", "--- \n\n"])
def test_an_empty_document_at_the_end_is_none(tmp_path: Path, end: str) -> None:
    assert said(checked(tmp_path, COMPOSE + end)) == [("KL015", "kafka", 7, 7)]


@pytest.mark.parametrize("services", ["", "services: {}\n"])
def test_a_file_that_only_includes_others_that_are_not_there(tmp_path: Path, services: str) -> None:
    found = checked(tmp_path, f"include:\n  - kafka.yml\n{services}")
    why = (
        "includes kafka.yml, which is not read here: check it separately, or the output of "
        "`docker compose config`"
    )
    none = "no service of it is known to run a Kafka broker"
    assert (found.kind, found.unchecked) == ("", (why, none))


@pytest.mark.parametrize("services", ["", "services: {}\n"])
def test_a_file_that_only_includes_others_is_judged_with_them(
    tmp_path: Path, services: str
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/kafka.yml").write_text(COMPOSE)
    found = checked(tmp_path, f"include:\n  - d/kafka.yml\n{services}")
    other = str(tmp_path / "d/kafka.yml")
    assert (found.kind, found.open_listeners) == (f"Compose file, with {other}", ())
    (one,) = found.mistakes
    assert (one.finding.rule, one.place.file, one.place.line) == ("KL015", other, 7)


def test_properties_with_a_letter_of_latin_1_are_checked(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("# Brücke\n".encode("latin-1") + PROPERTIES.encode())
    assert check(file, {}).kind == "properties file"
