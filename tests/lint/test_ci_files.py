"""Services of workflows, development containers and Podman's units are checked as containers."""

from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.files import choose

KRAFT = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
FileOptions = list[tuple[str, int, str]]


def lines(advertised: str, indent: int, form: str = "{}: {}") -> str:
    """The broker's variables, one each line."""
    listed = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    return "\n".join(" " * indent + form.format(*item) for item in listed.items())


def told(folder: Path, name: str, text: str) -> tuple[str, FileOptions]:
    """The kind of a file with this text, and its mistakes."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    linted = check(file, {})
    return linted.kind, [(it.finding.rule, it.place.line, it.level) for it in linted.mistakes]


def github(advertised: str, *, job: str = "", step: str = "", ports: str = "9092:9092") -> str:
    return f"""on: push
jobs:
  test:
    runs-on: ubuntu-latest
{job}    services:
      kafka:
        image: apache/kafka:4.1.1
        ports: ["{ports}"]
        env:
{lines(advertised, 10)}
    steps:
      - run: make test
{step}"""


IN_CONTAINER = "    container: python:3.13\n    env: {KAFKA_BROKERS: 'kafka:9092'}\n"
ON_MACHINE = "        env: {KAFKA_BROKERS: 'localhost:9092'}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (github("localhost:9092", step=ON_MACHINE), []),
        (github("kafka:9092", job=IN_CONTAINER, ports="9999:9999"), []),
        # a published port serves no client where the steps are in a container
        (github("kafka:9092", job=IN_CONTAINER), []),
        # steps on the machine are sent to a name that they do not have
        (github("kafka:9092", step=ON_MACHINE), [("KL015", 18, "error"), ("KL017", 18, "error")]),
        # steps in a container are sent to themselves
        (github("localhost:9092", job=IN_CONTAINER), [("KL015", 20, "error")]),
        # and the machine has no such name
        (
            github("localhost:9092", step=ON_MACHINE.replace("localhost", "kafka")),
            [("KL015", 21, "error")],
        ),
        (github("localhost:9092", ports="9192:9092"), [("KL017", 18, "error")]),
    ],
)
def test_a_github_workflow(tmp_path: Path, text: str, said: FileOptions) -> None:
    kind, found = told(tmp_path, ".github/workflows/test.yml", text)
    assert kind == "GitHub workflow"
    assert [(rule, level) for rule, _, level in found] == [(it[0], it[2]) for it in said]


def test_a_mistake_in_a_workflow_stands_at_its_variable(tmp_path: Path) -> None:
    text = github("kafka:9092", step=ON_MACHINE)
    _, found = told(tmp_path, "test.yml", text)
    wanted = next(i for i, it in enumerate(text.splitlines(), 1) if "ADVERTISED" in it)
    assert {line for _, line, _ in found} == {wanted}


def test_a_step_that_works_inside_another_container_is_no_client(tmp_path: Path) -> None:
    inside = "      - run: docker exec kafka kafka-topics.sh --bootstrap-server kafka:9092 --list\n"
    assert told(tmp_path, "test.yml", github("localhost:9092", step=inside))[1] == []


def test_what_an_expression_gives_is_not_known(tmp_path: Path) -> None:
    text = github("${{ matrix.host }}:9092", step=ON_MACHINE)
    assert told(tmp_path, "test.yml", text)[1] == []


ZOOKEEPER_JOB = """on: push
jobs:
  test:
    runs-on: ubuntu-latest
    services:
      {service}
      kafka:
        image: confluentinc/cp-kafka:7.6.0
        ports: ["9092:9092"]
        env:
          KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
          KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092
    steps:
      - run: make test
"""


@pytest.mark.parametrize(
    ("service", "rules"),
    [
        ("cache: {image: 'redis:7'}", ["KL016"]),
        ("zookeeper: {image: 'zookeeper:3.9'}", []),
        ("zk: {image: 'zookeeper:3.9', options: --network-alias zookeeper}", []),
        ("zk: {image: 'zookeeper:3.9'}", ["KL016"]),
        ("zookeeper: {image: 'example/own-zookeeper-image:1'}", []),
    ],
)
def test_only_services_of_the_job_are_on_its_network(
    tmp_path: Path, service: str, rules: list[str]
) -> None:
    _, found = told(tmp_path, "test.yml", ZOOKEEPER_JOB.format(service=service))
    assert [rule for rule, _, _ in found] == rules


def test_a_workflow_without_a_broker_is_not_judged(tmp_path: Path) -> None:
    text = "on: push\njobs:\n  a:\n    services:\n      db: {image: 'postgres:17'}\n    steps: []\n"
    assert told(tmp_path, "test.yml", text) == ("", [])


@pytest.mark.parametrize(
    ("image", "address", "rules"),
    [
        ("confluentinc/cp-schema-registry:7.6.0", "localhost:9092", ["KL015"]),
        ("confluentinc/cp-schema-registry:7.6.0", "kafka:9092", []),
        ("example/registry-and-broker", "localhost:9092", []),
    ],
)
def test_a_client_alone_in_its_job(
    tmp_path: Path, image: str, address: str, rules: list[str]
) -> None:
    key = "SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS"
    service = f"{{image: '{image}', env: {{{key}: '{address}'}}}}"
    text = f"on: push\njobs:\n  a:\n    services:\n      registry: {service}\n    steps: []\n"
    _, found = told(tmp_path, "test.yml", text)
    assert [rule for rule, _, _ in found] == rules
    service = f"{{name: '{image}', variables: {{{key}: '{address}'}}}}"
    text = f"test:\n  script: [make]\n  services:\n    - {service}\n"
    assert told(tmp_path, ".gitlab-ci.yml", text) == ("", [])


def gitlab(advertised: str, bootstrap: str, alias: str = "      alias: kafka\n") -> str:
    return f"""stages: [test]
test:
  image: python:3.13
  variables:
    KAFKA_BROKERS: {bootstrap}
  services:
    - name: apache/kafka:4.1.1
{alias}      variables:
{lines(advertised, 8)}
  script:
    - make test
"""


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (gitlab("kafka:9092", "kafka:9092"), []),
        (gitlab("apache-kafka:9092", "apache-kafka:9092", ""), []),
        (gitlab("localhost:9092", "kafka:9092"), ["KL015"]),
        (gitlab("kafka:9092", "kafka:9092", ""), ["KL015"]),
        (gitlab("kafka:9092", "localhost:9092"), ["KL015"]),
    ],
)
def test_gitlab_ci(tmp_path: Path, text: str, rules: list[str]) -> None:
    kind, found = told(tmp_path, ".gitlab-ci.yml", text)
    assert kind == "GitLab CI"
    assert [rule for rule, _, _ in found] == rules


def test_a_job_in_a_container_that_names_no_broker_is_not_judged_in_silence(
    tmp_path: Path,
) -> None:
    boxed = github("localhost:9092", job="    container: python:3.13\n")
    for name, text in (("a.yml", boxed), (".gitlab-ci.yml", gitlab("localhost:9092", "''"))):
        (tmp_path / name).write_text(text)
        (unchecked,) = check(tmp_path / name, {}).unchecked
        assert "names no broker" in unchecked and "localhost, which is that container" in unchecked
    for text in (github("localhost:9092"), github("kafka:9092", job=IN_CONTAINER)):
        (tmp_path / "a.yml").write_text(text)
        assert not check(tmp_path / "a.yml", {}).unchecked


def test_services_of_all_jobs_in_gitlab_ci(tmp_path: Path) -> None:
    text = f"""default:
  services: [{{name: 'apache/kafka:4.1.1', alias: kafka}}]
variables:
{lines("localhost:9092", 2)}
  KAFKA_BROKERS: kafka:9092
test:
  script: [make test]
"""
    assert told(tmp_path, ".gitlab-ci.yml", text)[1] == [("KL015", 10, "error")]


UNIT = """[Unit]
Description=Kafka

[Container]
Image=docker.io/apache/kafka:4.1.1
ContainerName=kafka
Network=events.network
{ports}
{variables}
"""
CLIENT = """[Container]
Image=registry.example.com/app:1
Network=events.network
Environment=KAFKA_BROKERS={}
"""


def unit(advertised: str, ports: str = "") -> str:
    return UNIT.format(ports=ports, variables=lines(advertised, 0, "Environment={}={}"))


@pytest.mark.parametrize(
    ("text", "client", "of_broker", "of_client"),
    [
        (unit("kafka:9092"), "kafka:9092", [], []),
        (unit("localhost:9092"), "kafka:9092", ["KL015"], []),
        (unit("kafka:9092"), "broker:9092", [], ["KL015"]),  # the unit's name is none
        (unit("kafka:9092", "PublishPort=9092:9092"), "kafka:9092", ["KL017"], []),
        (unit("localhost:9092", "PublishPort=127.0.0.1:9092:9092"), "", [], []),
    ],
)
def test_units_of_podman(
    tmp_path: Path, text: str, client: str, of_broker: list[str], of_client: list[str]
) -> None:
    (tmp_path / "app.container").write_text(CLIENT.format(client))
    kind, found = told(tmp_path, "broker.container", text)
    assert (kind, [rule for rule, _, _ in found]) == ("Podman unit", of_broker)
    linted = check(tmp_path / "app.container", {})
    assert [item.finding.rule for item in linted.mistakes] == of_client


def test_containers_of_a_pod_share_its_ports(tmp_path: Path) -> None:
    (tmp_path / "events.pod").write_text("[Pod]\nPodName=events\nPublishPort=9092:9092\n")
    inside = unit("localhost:9092").replace("Network=events.network", "Pod=events.pod")
    (tmp_path / "app.container").write_text(
        CLIENT.format("localhost:9092").replace("Network=events.network", "Pod=events.pod")
    )
    assert told(tmp_path, "broker.container", inside) == ("Podman unit", [])
    assert check(tmp_path / "app.container", {}).mistakes == ()


def test_a_unit_of_another_program_is_not_judged(tmp_path: Path) -> None:
    assert told(tmp_path, "db.container", "[Container]\nImage=postgres:17\n") == ("", [])


COMPOSE = f"""services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
{lines("localhost:9092", 6)}
"""
APP = "services:\n  app: {image: 'app:1', environment: {KAFKA_BROKERS: 'kafka:9092'}}\n"


def test_a_development_container_with_its_compose_files(tmp_path: Path) -> None:
    (tmp_path / "docker-compose.yml").write_text(COMPOSE)
    (tmp_path / ".devcontainer").mkdir()
    (tmp_path / ".devcontainer" / "app.yml").write_text(APP)
    text = '{ // the app\n  "dockerComposeFile": ["../docker-compose.yml", "app.yml"],\n}'
    kind, found = told(tmp_path, ".devcontainer/devcontainer.json", text)
    assert kind == "development container, with docker-compose.yml, app.yml"
    assert [rule for rule, _, _ in found] == ["KL015"]


@pytest.mark.parametrize("text", ['{"image": "python:3.13"}', "{", "[]", "[" * 100_000])
def test_a_development_container_without_a_broker_is_not_judged(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, "devcontainer.json", text) == ("", [])


@pytest.mark.parametrize("name", [r"a\u0000", r"a\ud800"])
def test_a_development_container_with_a_name_that_no_file_has(tmp_path: Path, name: str) -> None:
    with pytest.raises(EarshotError, match="no file has such a name"):
        told(tmp_path, "devcontainer.json", f'{{"dockerComposeFile": "{name}"}}')


def test_folders_are_searched_for_them(tmp_path: Path) -> None:
    told(tmp_path, ".github/workflows/test.yml", github("localhost:9092"))
    told(tmp_path, ".devcontainer/devcontainer.json", "{}")
    told(tmp_path, "units/broker.container", unit("kafka:9092"))
    told(tmp_path, ".gitlab-ci.yml", gitlab("kafka:9092", "kafka:9092"))
    found = {item.name for item in choose([tmp_path]).files}
    assert found == {"test.yml", "devcontainer.json", "broker.container", ".gitlab-ci.yml"}
