"""One file on disk, checked by what it is."""

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
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
PROPERTIES = "broker.id=1\nzookeeper.connect=z:2181\nlisteners=A://:9092\n"


class Checker:
    """Checks texts as files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, text: str, name: str = "compose.yml", variables: dict[str, str] | None = None
    ) -> FileReport:
        (self.folder / name).write_text(text)
        return check(self.folder / name, variables or {})

    def write(self, name: str, text: str) -> None:
        """Writes another file of the folder."""
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text)


@pytest.fixture
def checked(tmp_path: Path) -> Checker:
    return Checker(tmp_path)


def places(report: FileReport) -> list[tuple[str, str, int, int]]:
    """Rule, container, line and column of each mistake."""
    return [
        (mistake.finding.rule, mistake.finding.container, mistake.place.line, mistake.place.column)
        for mistake in report.mistakes
    ]


def rules(report: FileReport) -> list[str]:
    return [mistake.finding.rule for mistake in report.mistakes]


def test_a_compose_file(checked: Checker) -> None:
    report = checked(COMPOSE)
    file = str(checked.folder / "compose.yml")
    assert (report.file, report.kind, report.unchecked) == (file, "Compose file", ())
    assert places(report) == [("KL015", "kafka", 7, 7)]
    assert report.mistakes[0].finding.observed == (
        "ui bootstraps to PLAINTEXT and is sent on to "
        "localhost:9092: it is the client itself, and nothing listens at port 9092"
    )


@pytest.mark.parametrize("end", ["---\n", "---\n---\n", "...\n", "--- \n\n"])
def test_an_empty_document_at_the_end_is_ignored(checked: Checker, end: str) -> None:
    assert places(checked(COMPOSE + end)) == [("KL015", "kafka", 7, 7)]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yml", "---\n" * 25_000 + COMPOSE),
        ("compose.yml", COMPOSE + "---\n" * 50_000),
        ("server.properties", PROPERTIES + "\n" * 200_000),
    ],
    ids=["documents before", "documents after", "empty lines"],
)
def test_many_empty_parts_take_no_quadratic_time(checked: Checker, name: str, text: str) -> None:
    checked(text, name)


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
        ("labels: {}\n  kafka: {image: busybox}", ["kafka"]),
        ("labels: {}\nservices: {web: {image: busybox}}", [""]),
    ],
)
def test_a_key_that_occurs_twice(checked: Checker, body: str, subjects: list[str]) -> None:
    mistakes = places(checked(TWICE.replace("BODY", body)))
    assert [container for rule, container, _, _ in mistakes if rule == "KL014"] == subjects


@pytest.mark.parametrize(
    ("body", "subjects"),
    [
        ("enviroment: {A: 1}", ["kafka"]),
        ("port: ['9093:9093']", ["kafka"]),
        ("container-name: broker", ["kafka"]),
        ("img/image: apache/kafka:4.1.1", ["kafka"]),
        ("labels: {}\n  web: {image: a, environment: [BOOTSTRAP_SERVERS=kafka:9092], port: [a]}",
         ["web"]),
        ("labels: {}\n  web: {image: a, port: [a]}", []),  # of no interest to Kafka's clients
        ("x-enviroment: {A: 1}", []),
        ("labels: {enviroment: 1, port: 2}", []),
        ("mem_swappiness: 1", []),
        # a key of a later Compose, or of another tool
        ("accelerators: 1", []),
        ("{{- range .Values.more }}: 1", []),
    ],
)  # fmt: skip
def test_a_misspelt_key_of_a_service(checked: Checker, body: str, subjects: list[str]) -> None:
    mistakes = places(checked(TWICE.replace("BODY", body)))
    assert [container for rule, container, _, _ in mistakes if rule == "KL014"] == subjects


UI = "provectuslabs/kafka-ui"
REST = "confluentinc/cp-kafka-rest:7.9.0"
UI_SETTING = "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS"


@pytest.mark.parametrize(
    ("image", "setting", "bootstrap", "more", "is_lost"),
    [
        (UI, UI_SETTING, "localhost:9092", "", True),
        ("kafbat/kafka-ui:v1", UI_SETTING, "127.0.0.1:9092", "", True),
        ("obsidiandynamics/kafdrop", "KAFKA_BROKERCONNECT", "localhost:9092", "", True),
        (REST, "KAFKA_REST_BOOTSTRAP_SERVERS", "localhost:9092", "", True),
        (UI, UI_SETTING, "kafka:9092", "", False),
        (UI, UI_SETTING, "localhost:9092,kafka:9092", "", False),
        (UI, UI_SETTING, "localhost:9092", "network_mode: host, ", False),
        (UI, UI_SETTING, "localhost:9092", "network_mode: 'service:app', ", False),
        ("example/all-in-one", "KAFKA_BROKERS", "localhost:9092", "", False),
        (UI, UI_SETTING, "localhost:9092", "command: sh -c 'start', ", False),
    ],
)
def test_a_client_alone_at_its_own_loopback(
    checked: Checker, image: str, setting: str, bootstrap: str, more: str, is_lost: bool
) -> None:
    client = f"{{image: {image}, {more}environment: {{{setting}: '{bootstrap}'}}}}"
    report = checked(f"services: {{ui: {client}, app: {{build: .}}}}")
    assert rules(report) == ["KL015"] * is_lost
    assert bool(report.kind) is is_lost


MSK = "b-1-public.demo.abc123.c5.kafka.eu-central-1.amazonaws.com"


@pytest.mark.parametrize(
    ("bootstrap", "mistakes"),
    [
        (f"{MSK}:9098", [("KL015", "ui", 4, 19)]),
        (f"{MSK}:9198", []),
        (f"{MSK}:9098,elsewhere:9092", []),
    ],
)
def test_a_client_of_msk_is_judged_without_a_broker_in_the_file(
    checked: Checker, bootstrap: str, mistakes: list[tuple[str, str, int, int]]
) -> None:
    service = f"image: app\n    environment: {{KAFKA_BROKERS: '{bootstrap}'}}\n"
    assert places(checked(f"services:\n  ui:\n    {service}")) == mistakes
    checked.write("app.env", f"KAFKA_BROKERS={bootstrap}\n")
    report = checked("services:\n  ui: {image: app, env_file: app.env}\n")
    assert report.kind and rules(report) == [rule for rule, *_ in mistakes]


def test_variables_of_the_environment_outweigh_those_of_a_dotenv(checked: Checker) -> None:
    text = COMPOSE.replace('    ports: ["9092:9092"]\n', "")
    checked.write(".env", "NAME=kafka\n")
    assert places(checked(text)) == []
    variables = {"NAME": "localhost"}
    assert places(checked(text, variables=variables)) == [("KL015", "kafka", 6, 7)]


def test_unknown_values_of_the_file_are_named(checked: Checker) -> None:
    text = COMPOSE.replace("${NAME:-localhost}", "$NAME")
    report = checked(text.replace('["9092:9092"]', '["9092:9092", "$PORTS"]'))
    assert report.mistakes == ()
    assert report.unchecked == (
        "PORTS is not set: values that depend on it are unknown",
        "NAME is not set: values that depend on it are unknown",
        "service kafka: ports could not be read",
    )


def test_files_beside_it_are_read_unless_they_are_pipes(checked: Checker) -> None:
    checked.write("sub/base.yml", COMPOSE)
    extending = "services:\n  kafka: {extends: {file: sub/base.yml, service: kafka}}\n"
    text = extending + "".join(COMPOSE.partition("  ui:")[1:])
    assert places(checked(text)) == [("KL015", "kafka", 2, 3)]
    os.mkfifo(checked.folder / "x.env")
    text = COMPOSE.replace("    ports:", "    env_file: x.env\n    ports:")
    assert checked(text).unchecked == ("service kafka: env_file could not be read",)


NO_BROKER = "no service of it is known to run a Kafka broker"
CLIENT = "services: {ui: {image: ui, environment: {BOOTSTRAP_SERVERS: 'kafka:9092'}}}"
TEMPLATE = "is a template: check what it renders"
YAML_TEMPLATE = f"{TEMPLATE} (`helm template`, `docker compose config`)"


SET = "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092\n"
NO_VARIABLES = "sets variables of a broker, but is not an environment file: line {}"
UNREAD_LINE = NO_VARIABLES.format("1 is no assignment")


@pytest.mark.parametrize(("name", "text", "why"), [
    ("compose.yml", "services: {web: {image: nginx}}", NO_BROKER),
    ("compose.yml", CLIENT, NO_BROKER),
    ("compose.yml", "kafka: {listeners: []}", "is not a Compose file"),
    ("compose.yml", "redpanda: {kafka_api: [{address: 0.0.0.0}]}",
     ("advertises no address (advertised_kafka_api): flags or a Compose file may")),
    ("compose.yml", "- kafka", "is not a Compose file"),
    ("values-prod.yaml", "kafka: {listeners: {}}",
     "has values of a Helm chart: check what it renders (`helm template`)"),
    ("stack.yaml", "AWSTemplateFormatVersion: 2010-09-09\nResources: {kafka: !Ref a}\n",
     "is a CloudFormation template, which is not read"),
    *((name, text, "has tasks of Ansible, which are not read: check the files that they write")
      for name, text in (
          ("kafka.yml", "- hosts: kafka\n  roles: [kafka]\n"),
          ("kafka.yml", "- name: kafka\n  community.docker.docker_container: {name: kafka}\n"),
      )),
    ("compose.yml", "kafka: !Ref a\nx: !GetAtt b.c\n", "is not a Compose file"),
    ("compose.yml", "kafka: !vault |\n  $ANSIBLE_VAULT\n", "is not a Compose file"),
    ("compose.yml", "kafka:\n  <<: !include common.yaml\n", "is not a Compose file"),
    ("compose.yml", "kafka: {e: !!python/name:m.t }", "is not a Compose file"),
    ("compose.yml", "a: {image: build, script: [kafka, !reference [.b, script]]}",
     "no service of it is known to run a Kafka broker"),
    ("compose.yml", "services: {App: {arguments: [!tagged_iterator kafka]}}",
     "no service of it is known to run a Kafka broker"),
    ("compose.yml", "", "is not a Compose file"),
    ("compose.yml", "{% if kafka %}\nservices:\n  kafka: {image: apache/kafka}\n{% endif %}\n",
     YAML_TEMPLATE),
    ("compose.yml",
     "services:\n{{- if .Values.kafka }}\n  kafka: {image: apache/kafka}\n{{- end }}\n",
     YAML_TEMPLATE),
    ("a.conf", "server {\n  listen 80;\n}\n", OTHER),
    ("notes.txt", "kafka: [\n", OTHER),
    ("a.ini", "[kafka]\nhost = k\n", OTHER),
    ("kafka.nomad", f"task {{\n  env {{\n{SET}  }}\n}}\n", UNREAD_LINE),
    *((name, text, "has the image of a broker, but files of its kind are not read")
      for name, text in (
          (".drone.yml", "kind: pipeline\nservices:\n- name: k\n  image: apache/kafka:4.1.1\n"),
          (".woodpecker.yml", "a:\n- {name: k, 'image': 'confluentinc/cp-kafka:7.6.0'}\n"),
          ("Dockerfile", f"FROM 'apache/kafka:4.1.1'\nENV {SET}"),
          ("Containerfile", f"FROM --platform=linux/amd64 apache/kafka:4.1.1 AS k\nENV {SET}"),
          ("kafka.bicep", "resource k {\n  image: 'bitnami/kafka:3.9'\n}\n"),
      )),
    (".drone.yml", "kind: pipeline\nservices:\n- image: kafka-ui\n", "is not a Compose file"),
    *((name, text, "is a job of Nomad, which is not read") for name, text in (
        ("kafka.nomad", f'job "kafka" {{\n  env {{\n{SET}  }}\n}}\n'),
        ("kafka.hcl", "variable x {}\n job kafka{ group k {} }\n"),
      )),
    ("fly.toml", f"app = 'kafka'\n\n[env]\n{SET}", NO_VARIABLES.format("3 is no assignment")),
    ("broker.cfg", f"{SET}KAFKA_HEAP OPTS\n", NO_VARIABLES.format("2 is no assignment")),
    ("settings.py", f"{SET}NAME = '\n", NO_VARIABLES.format("2 has a quote that is not closed")),
    ("k.env.j2", "{% if x %}\nKAFKA_LISTENERS=A://:1\n{% endif %}\n", TEMPLATE),
    ("app.properties", "spring.kafka.bootstrap-servers=k:1\n", "is not a broker configuration"),
    ("client.properties", "bootstrap.servers=kafka:9092\n", "is not a broker configuration"),
])  # fmt: skip
def test_why_a_file_is_not_judged(checked: Checker, name: str, text: str, why: str) -> None:
    report = checked(text, name)
    assert (report.kind, report.mistakes, report.unchecked) == ("", (), (why,))


def test_properties(checked: Checker) -> None:
    report = checked(PROPERTIES, "server.properties")
    assert (report.kind, report.unchecked) == ("properties file", ())
    (mistake,) = report.mistakes
    assert mistake.place == Place(report.file, 3, 1)
    assert mistake.finding.observed == (
        "listeners: A has no protocol: listener.security.protocol.map is not set; "
        "Kafka does not start"
    )
    assert checked(PROPERTIES.replace("A:", "PLAINTEXT:"), "s.properties").mistakes == ()
    latin = "# Br\u00fccke\n".encode("latin-1") + PROPERTIES.encode()
    Path(report.file).write_bytes(latin)
    assert check(Path(report.file), {}).kind == "properties file"


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
def test_a_broker_with_clients_inside_is_judged(checked: Checker, more: str) -> None:
    text = f"{BROKER_KEYS}listeners=PLAINTEXT://:9092\n{SERVERS}{more}\n"
    report = checked(text, "server.properties")
    assert (report.kind, rules(report)) == ("properties file", ["KL002"])


VARIABLES = "# of the service\nexport KAFKA_ADVERTISED_LISTENERS=A://0.0.0.0:9092\n"


@pytest.mark.parametrize(("names", "text", "kind"), [
    (("kafka.conf server.properties.j2 server.properties.example server.cfg server "
      "server.properties.erb server.properties.bak Server.Properties"), PROPERTIES,
     "properties file"),
    (".env.example env.j2 kafka.env.dist kafka k.conf", VARIABLES, "environment file"),
    ("compose.yml.j2 docker-compose.yml.example kafka", COMPOSE, "Compose file"),
])  # fmt: skip
def test_the_kind_of_a_file_of_another_name(
    checked: Checker, names: str, text: str, kind: str
) -> None:
    for name in names.split():
        report = checked(text, name)
        assert report.kind == kind, name
        assert text != PROPERTIES or rules(report) == ["KL002"], name


def test_a_custom_tag_in_a_compose_file_is_an_unknown_value(checked: Checker) -> None:
    text = COMPOSE.replace("services:", "services:\n  tagged: {image: !secret i}", 1)
    plain, tagged = checked(COMPOSE), checked(text)
    assert [mistake.finding for mistake in tagged.mistakes] == [
        mistake.finding for mistake in plain.mistakes
    ]
    tag = "services.tagged.image has a custom tag (!secret)"
    assert f"{tag}: unknown, because another tool replaces it" in tagged.unchecked


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
        (None, "compose.yml: cannot be read (No such file or directory)"),
    ],
)
def test_an_unreadable_file_is_one_clear_error(
    tmp_path: Path, data: bytes | None, message: str
) -> None:
    file = tmp_path / "compose.yml"
    if data is not None:
        file.write_bytes(data)
    assert message in str(raised(EarshotError, check, file, {}))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("blank", ["\n", " ", "\t\n", "{{\n"])
def test_blank_text_is_read_in_seconds(checked: Checker, blank: str) -> None:
    with contextlib.suppress(EarshotError):
        checked("# kafka\n" + blank * (900_000 // len(blank)))


pieces = st.sampled_from(
    [*COMPOSE.splitlines(keepends=True), *PROPERTIES.splitlines(keepends=True), "---\n", "  ", "{",
     "    image: confluentinc/cp-kafka:8.0.0\n", "    <<: *a\n", "  k: &a\n", "!x ", "services:\n"]
)  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(pieces, max_size=20).map("".join) | st.text(max_size=40), st.booleans())
@example("services:\nservices:\n  kafka:\n", True)
@example("!x services:\n    image: confluentinc/cp-kafka:7.6.0\n", True)
@example("!x services:\n" + "    image: confluentinc/cp-kafka:7.6.0\n" * 2, True)
def test_any_text_is_checked_or_refused_in_one_clear_error(
    tmp_path: Path, text: str, is_yaml: bool
) -> None:
    file = tmp_path / ("a.yml" if is_yaml else "a.properties")
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        report = check(file, {})
    except EarshotError as error:
        assert str(error)
        return
    assert bool(report.kind) or (report.unchecked and not report.mistakes)
    for mistake in report.mistakes:
        assert mistake.place.file == str(file) and mistake.place.line >= 1


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
ADVERTISED = "      KAFKA_ADVERTISED_LISTENERS:"


@pytest.mark.parametrize(
    ("env", "dotenv", "more", "variable"),
    [
        ("KAFKA_ADVERTISED_LISTENERS=IN://kafka:19092,OUT://${HOST_IP}:9092", "", "", "HOST_IP"),
        ("", "ADV=${HOST_IP}", f"{ADVERTISED} IN://kafka:19092,OUT://${{ADV}}:9092\n", "HOST_IP"),
        ("", "", f"{ADVERTISED}\n", "KAFKA_ADVERTISED_LISTENERS"),
    ],
)
def test_an_address_with_a_variable_that_is_not_set_is_no_mistake(
    checked: Checker, env: str, dotenv: str, more: str, variable: str
) -> None:
    checked.write("k.env", f"{env}\n")
    checked.write(".env", f"{dotenv}\n")
    report = checked(REACHED + more)
    why = f"{variable} is not set: values that depend on it are unknown"
    assert (places(report), report.unchecked) == ([], (why,))


@pytest.mark.parametrize(
    ("env", "dotenv", "more", "place"),
    [
        ("", "", "KAFKA_SSL_KEY_PASSWORD: ab$Hunter2", "KAFKA_SSL_KEY_PASSWORD is not set"),
        ("", "", "KAFKA_SSL_KEY_PASSWORD: !Hunter2", "KAFKA_SSL_KEY_PASSWORD has a custom tag:"),
        ("KAFKA_SSL_KEY_PASSWORD=ab$Hunter2", "", "A: b", "k.env, line 1 is not set"),
        ("", "PASSWORD=$Hunter2", "KAFKA_SSL_KEY_PASSWORD: ${PASSWORD}", "_PASSWORD is not set"),
    ],
)
def test_a_part_of_a_password_is_not_shown_as_a_name(
    checked: Checker, env: str, dotenv: str, more: str, place: str
) -> None:
    checked.write("k.env", f"{env}\n")
    checked.write(".env", f"{dotenv}\n")
    report = checked(f"{REACHED}      {more}\n")
    assert place in str(report.unchecked) and "Hunter2" not in str(report.unchecked)


@pytest.mark.parametrize("mounted", ["bash-config", "configure"])
def test_a_mounted_start_script_may_set_missing_settings(checked: Checker, mounted: str) -> None:
    text = REACHED.replace("    env_file: k.env\n", "    volumes: [VOLUME]\n")
    text = text.replace("IN://:19092,OUT://:9092", "IN://0.0.0.0:19092,OUT://0.0.0.0:9092")
    script = f"./{mounted}:/etc/confluent/docker/{mounted}"
    assert places(checked(text.replace("VOLUME", script))) == []
    assert places(checked(text.replace("VOLUME", "./data:/var/lib/kafka/data"))) != []


def test_a_variable_in_a_form_that_compose_refuses_is_bad_input(checked: Checker) -> None:
    text = REACHED.replace("    env_file: k.env\n", "")
    why = r"KAFKA_ADVERTISED_LISTENERS: has a form that compose does not know \(at character 27\)"
    with pytest.raises(EarshotError, match=why):
        checked(f"{text}{ADVERTISED} IN://kafka:19092,OUT://${{A:9092\n")


def test_a_property_of_another_tool_leaves_listeners_open(checked: Checker) -> None:
    text = REACHED.replace("    env_file: k.env\n", "")
    address = "IN://kafka:19092,OUT://${kafka.host}:9092"
    report = checked(f"{text}{ADVERTISED} {address}\n")
    where = "services.kafka.environment.KAFKA_ADVERTISED_LISTENERS"
    why = "has a form that compose does not know (at character 31)"
    unknown = f"{where} {why}: unknown, because another tool replaces it"
    assert (places(report), report.unchecked) == ([], (unknown,))
    open_listeners = (f"service kafka: KAFKA_ADVERTISED_LISTENERS is not known: {address}",)
    assert report.open_listeners == open_listeners


@pytest.mark.parametrize("services", ["", "services: {}\n"])
def test_a_file_that_only_includes_others_is_judged_with_them(
    checked: Checker, services: str
) -> None:
    text = f"include:\n  - d/kafka.yml\n{services}"
    report = checked(text)
    why = (
        "includes d/kafka.yml, which is not read here: check it separately, or the output of "
        "`docker compose config`"
    )
    assert (report.kind, report.unchecked) == ("", (why, NO_BROKER))
    checked.write("d/kafka.yml", COMPOSE)
    report = checked(text)
    included = str(checked.folder / "d/kafka.yml")
    assert (report.kind, report.open_listeners) == (f"Compose file, with {included}", ())
    (mistake,) = report.mistakes
    assert (mistake.finding.rule, mistake.place) == ("KL015", Place(included, 7, 7))


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: k, image: IMAGE}]}
"""
JOBS = "on: push\njobs: {a: {services: {k: {image: IMAGE}}, steps: []}}\n"


@pytest.mark.parametrize(("name", "text", "noun"), [
    ("compose.yml", "services: {k: {image: IMAGE}}", "service k"),
    ("ci.yml", JOBS, "job a, service k"),
    ("pod.yaml", POD, "container a/k"),
    ("run.sh", "docker run --name k IMAGE\n", "container k"),
    ("boot.sh", "#!/bin/sh\ndocker run --name k IMAGE\n", "container k"),
    ("k.container", "[Container]\nContainerName=k\nImage=IMAGE\n", "container k"),
    ("main.tf", 'resource "docker_container" "a" {\n  name = "k"\n  image = "IMAGE"\n}\n',
     "container k"),
    ("taskdef.json", '{"containerDefinitions": [{"name": "k", "image": "IMAGE"}]}', "container k"),
])  # fmt: skip
def test_an_unknown_image_of_a_broker_is_named(
    checked: Checker, name: str, text: str, noun: str
) -> None:
    report = checked(text.replace("IMAGE", "example/kafka:1"), name)
    reason = "looks like a broker, but how it reads its variables is unknown"
    assert (report.kind, report.unchecked[0]) == ("", f"{noun}: example/kafka:1 {reason}")


@pytest.mark.parametrize("image", ["debezium/kafka:1.6", "lensesio/fast-data-dev", "spotify/kafka"])
def test_an_unread_file_may_set_the_host_that_an_image_advertises(
    checked: Checker, image: str
) -> None:
    text = f"services: {{k: {{image: '{image}', ports: ['9092:9092'], env_file: k.env}}}}"
    report = checked(text)
    assert report.mistakes == ()
    assert "KAFKA_ADVERTISED_LISTENERS is not known: PLAINTEXT://${ADV" in report.open_listeners[0]
