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


def lines(advertised: str, indent: int, form: str = "{}: {}") -> str:
    """The broker's variables, one each line."""
    variables = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    return "\n".join(" " * indent + form.format(*item) for item in variables.items())


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def checked(folder: Path, name: str, text: str) -> tuple[str, list[str]]:
    """The kind of a file with this text, and the rules that it breaks."""
    report = check(write(folder, name, text), {})
    levels = {mistake.level for mistake in report.mistakes if mistake.finding.rule != "KL016"}
    assert levels <= {"error"}
    return report.kind, [mistake.finding.rule for mistake in report.mistakes]


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


OTHER_CONTAINER = """      - run: |
          docker run --network $NET edenhill/kcat:1.7.1 \\
            -b kafka:9092 -L
"""
INSIDE = "      - run: docker exec kafka kafka-topics.sh --bootstrap-server kafka:9092 --list\n"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (github("localhost:9092", step=ON_MACHINE), []),
        (github("kafka:9092", job=IN_CONTAINER, ports="9999:9999"), []),
        # a published port serves no client if the steps are in a container
        (github("kafka:9092", job=IN_CONTAINER), []),
        # steps on the machine are sent to a name that the machine does not resolve
        (github("kafka:9092", step=ON_MACHINE), ["KL015", "KL017"]),
        # steps in a container are sent to themselves
        (github("localhost:9092", job=IN_CONTAINER), ["KL015"]),
        (github("localhost:9092", step=ON_MACHINE.replace("localhost", "kafka")), ["KL015"]),
        (github("localhost:9092", ports="9192:9092"), ["KL017"]),
        # a step that works inside another container is no client
        (github("localhost:9092", step=INSIDE), []),
        (github("kafka:9092", ports="9999:9999", step=OTHER_CONTAINER), []),
        # an expression is not known
        (github("${{ matrix.host }}:9092", step=ON_MACHINE), []),
    ],
)
def test_a_github_workflow(tmp_path: Path, text: str, rules: list[str]) -> None:
    assert checked(tmp_path, ".github/workflows/test.yml", text) == ("GitHub workflow", rules)


def run(advertised: str, options: str = "-p 9092:9092", mark: str = "|") -> str:
    """A step that starts a broker; one word of the variables a line."""
    end = "" if mark == ">" else " \\"
    variables = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    words = [f"-e {name}={value}{end}" for name, value in variables.items()]
    command = [f"docker run -d --name kafka {options}{end}", *words, "apache/kafka:4.1.1"]
    return f"      - run: {mark}\n" + "".join(f"          {line}\n" for line in command)


def steps(*texts: str, job: str = "") -> str:
    return f"on: push\njobs:\n  test:\n{job}    steps:\n{''.join(texts)}"


HOSTS = """      - run: echo "127.0.0.1 kafka" | sudo tee -a /etc/hosts\n"""
NET = "      - run: docker network create net\n"
CLIENT_ON_NET = """      - run: >
          docker run --network net -e KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS=kafka:9092
          kafbat/kafka-ui:v1.3.0
"""
ENV = "    env: {PORT: 9093}\n"
MAKE = "      - run: make test\n"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (steps(run("localhost:9092"), MAKE, ON_MACHINE), []),
        (steps(run("kafka:9092"), MAKE, ON_MACHINE), ["KL015", "KL017"]),
        (steps(run("kafka:9092", mark=">"), MAKE, ON_MACHINE), ["KL015", "KL017"]),
        # a step may give the machine names
        (steps(HOSTS, run("kafka:9092"), MAKE, ON_MACHINE), []),
        (steps(HOSTS.replace("127.0.0.1", "$IP"), run("kafka:9092"), MAKE, ON_MACHINE), []),
        (steps(HOSTS.replace("kafka", "db"), run("kafka:9092"), MAKE, ON_MACHINE),
         ["KL015", "KL017"]),
        (steps(run("localhost:9092", "-p $PORT:9092"), job=ENV), ["KL017"]),
        (steps(run("localhost:9092", "-p ${{ matrix.port }}:9092"), job=ENV), []),
        (steps(run("localhost:9092", "--network host"), MAKE, ON_MACHINE), []),
        # a network of another step
        (steps(NET, run("localhost:9092", "--network net"), CLIENT_ON_NET), ["KL015"]),
        (steps(NET, run("kafka:9092", "--network net"), CLIENT_ON_NET), []),
        # other containers of the network
        (steps(NET, run("missing:9092", "--network net"), CLIENT_ON_NET,
               "      - run: docker compose up -d\n"), []),
        # the network may be that of the job's container
        (steps(run("kafka:9092", "--network ${{ job.container.network }}"), job=IN_CONTAINER), []),
        (steps(run("localhost:9092"), job=IN_CONTAINER), ["KL015"]),
    ],
)  # fmt: skip
def test_containers_that_steps_start(tmp_path: Path, text: str, rules: list[str]) -> None:
    assert checked(tmp_path, ".github/workflows/test.yml", text) == ("GitHub workflow", rules)


@pytest.mark.parametrize("mark", ["|", ">"])
def test_a_mistake_in_a_step_is_placed_at_its_line(tmp_path: Path, mark: str) -> None:
    text = steps(MAKE, run("localhost:9093", mark=mark))
    (mistake,) = check(write(tmp_path, "test.yml", text), {}).mistakes
    (line,) = (n for n, line in enumerate(text.splitlines(), 1) if "ADVERTISED" in line)
    assert (mistake.place.line, mistake.place.column) == (line, 14)


@pytest.mark.parametrize(("port", "found"), [(9092, []), (9093, [("KL017", 12, 17)])])
@pytest.mark.parametrize("others", [(), (MAKE, run("localhost:9092"))])
def test_a_compose_file_that_a_step_writes_is_checked(
    tmp_path: Path, port: int, found: list[tuple[str, int, int]], others: tuple[str, ...]
) -> None:
    step = f"""      - run: |
          cat > compose.yml <<EOF
          services:
            kafka:
              image: wurstmeister/kafka
              ports: ["{port}:9092"]
              environment:
                KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092
                KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
                KAFKA_LISTENERS: PLAINTEXT://:9092
          EOF
"""
    report = check(write(tmp_path, "test.yml", steps(step, *others)), {})
    places = [(each.finding.rule, each.place.line, each.place.column) for each in report.mistakes]
    assert (report.kind, places) == ("GitHub workflow", found)


def test_a_container_that_is_started_in_a_loop_is_named(tmp_path: Path) -> None:
    loop = "      - run: for i in 1 2; do docker run -p 909$i:9092 apache/kafka:4.1.1; done\n"
    report = check(write(tmp_path, "test.yml", steps(loop)), {})
    assert report.kind == "" and "job test, line 5: apache/kafka:4.1.1 is started in a loop" in (
        report.unchecked
    )


IN_SCRIPT = f"""test:
  services: [docker:dind]
  script:
{run("HOST:9092", "--network net", "X").replace("      - run: X", "    - >").replace(chr(92), "")}
    - docker run --network net edenhill/kcat:1.7.1 -b kafka:9092 -L
    - kafka-topics.sh --bootstrap-server docker:9092 --list
"""


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (IN_SCRIPT.replace("HOST", "kafka"), []),
        (IN_SCRIPT.replace("HOST", "localhost"), ["KL015"]),
        # a list within the list, as of an alias
        (IN_SCRIPT.replace("HOST", "localhost").replace("    - docker run", "    - - docker run"),
         ["KL015"]),
        (IN_SCRIPT.replace("HOST", "localhost").replace("  services: [docker:dind]\n", ""),
         ["KL015"]),
    ],
)  # fmt: skip
def test_containers_that_a_script_of_gitlab_starts(
    tmp_path: Path, text: str, rules: list[str]
) -> None:
    assert checked(tmp_path, ".gitlab-ci.yml", text) == ("GitLab CI", rules)


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
        ("cache: {image: 'redis:7'}", [("KL016", "error")]),
        ("zookeeper: {image: 'zookeeper:3.9'}", []),
        ("zk: {image: 'zookeeper:3.9', options: --network-alias zookeeper}", []),
        ("zk: {image: 'zookeeper:3.9'}", [("KL016", "error")]),
        (
            "zookeeper: {image: 'zookeeper:3.9', options: '--init -p 9092:2181'}",
            [("KL017", "error")],
        ),
        ("zookeeper: {image: 'example/own-zookeeper-image:1'}", []),
    ],
)
def test_only_services_of_the_job_are_on_its_network(
    tmp_path: Path, service: str, rules: list[tuple[str, str]]
) -> None:
    file = write(tmp_path, "test.yml", ZOOKEEPER_JOB.format(service=service))
    mistakes = check(file, {}).mistakes
    assert [(mistake.finding.rule, mistake.level) for mistake in mistakes] == rules


@pytest.mark.parametrize(("name", "text"), [
    ("test.yml", "on: push\njobs: {a: {services: {db: {image: 'postgres:17'}}, steps: []}}\n"),
    ("db.container", "[Container]\nImage=postgres:17\n"),
    *(("devcontainer.json", text) for text in ('{"image": "python:3.13"}', "{", "[]",
                                               "[" * 100_000)),
], ids=str.__len__)  # fmt: skip
def test_a_file_without_a_broker_is_not_judged(tmp_path: Path, name: str, text: str) -> None:
    assert checked(tmp_path, name, text) == ("", [])


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
    variables = f"{{SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS: '{address}'}}"
    service = f"{{image: '{image}', env: {variables}}}"
    text = f"on: push\njobs:\n  a:\n    services:\n      registry: {service}\n    steps: []\n"
    assert checked(tmp_path, "test.yml", text)[1] == rules
    service = f"{{name: '{image}', variables: {variables}}}"
    text = f"test:\n  script: [make]\n  services:\n    - {service}\n"
    assert checked(tmp_path, ".gitlab-ci.yml", text) == ("", [])


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


JOBS_IN_COMMON = f"""default:
  services: [{{name: 'apache/kafka:4.1.1', alias: kafka}}]
variables:
{lines("localhost:9092", 2)}
  KAFKA_BROKERS: kafka:9092
test:
  script: [make test]
"""


REFERENCE = "    - !reference [.setup, script]\n"


@pytest.mark.parametrize(("text", "rules"), [
    (gitlab("kafka:9092", "kafka:9092"), []),
    (gitlab("apache-kafka:9092", "apache-kafka:9092", ""), []),
    (gitlab("localhost:9092", "kafka:9092"), ["KL015"]),
    (gitlab("kafka:9092", "kafka:9092", ""), ["KL015"]),
    (gitlab("kafka:9092", "localhost:9092"), ["KL015"]),
    (JOBS_IN_COMMON, ["KL015"]),
    (gitlab("localhost:9092", "kafka:9092") + REFERENCE, ["KL015"]),
    (gitlab("kafka:9092", "kafka:9092") + REFERENCE, []),
    # the referenced service may be the advertised one
    (gitlab("db:9092", "kafka:9092").replace("  services:\n",
                                             "  services:\n    - !reference [.db, services]\n"),
     []),
    # a variable and all variables of another job
    (gitlab("localhost:9092", "kafka:9092").replace("PLAINTEXT://l", "!reference [.a, l]  # "), []),
    (gitlab("localhost:9092", "kafka:9092").partition("      variables:\n")[0] +
     "      variables: !reference [.kafka, variables]\n  script: [make]\n", []),
])  # fmt: skip
def test_gitlab_ci(tmp_path: Path, text: str, rules: list[str]) -> None:
    assert checked(tmp_path, ".gitlab-ci.yml", text) == ("GitLab CI", rules)


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("test.yml", github("kafka:9092", step=ON_MACHINE), 2),
        (".gitlab-ci.yml", JOBS_IN_COMMON, 1),
    ],
)
def test_a_mistake_is_placed_at_its_variable(
    tmp_path: Path, name: str, text: str, count: int
) -> None:
    report = check(write(tmp_path, name, text), {})
    places = [number for number, line in enumerate(text.splitlines(), 1) if "ADVERTISED" in line]
    assert [mistake.place.line for mistake in report.mistakes] == places * count


def test_a_job_in_a_container_without_a_bootstrap_is_reported_as_unchecked(tmp_path: Path) -> None:
    boxed = github("localhost:9092", job="    container: python:3.13\n")
    for name, text in (("a.yml", boxed), (".gitlab-ci.yml", gitlab("localhost:9092", "''"))):
        (unchecked,) = check(write(tmp_path, name, text), {}).unchecked
        assert "names no broker" in unchecked and "localhost, which is that container" in unchecked
    for text in (github("localhost:9092"), github("kafka:9092", job=IN_CONTAINER)):
        assert not check(write(tmp_path, "a.yml", text), {}).unchecked


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


MACHINE = "host.containers.internal"


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
        (unit("kafka:9092", "PodmanArgs=--publish 9092:9092"), "kafka:9092", ["KL017"], []),
        # Podman gives its name of the machine to each container
        (unit(f"{MACHINE}:9092", "PublishPort=9092:9092"), f"{MACHINE}:9092", [], []),
        (
            unit("", "PodmanArgs=-e KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092"),
            "kafka:9092",
            ["KL015"],
            [],
        ),
    ],
)
def test_units_of_podman(
    tmp_path: Path, text: str, client: str, of_broker: list[str], of_client: list[str]
) -> None:
    app = write(tmp_path, "app.container", CLIENT.format(client))
    assert checked(tmp_path, "broker.container", text) == ("Podman unit", of_broker)
    assert [mistake.finding.rule for mistake in check(app, {}).mistakes] == of_client


def test_containers_of_a_pod_share_its_ports(tmp_path: Path) -> None:
    write(tmp_path, "events.pod", "[Pod]\nPodName=events\nPublishPort=9092:9092\n")
    broker, client = (
        text.replace("Network=events.network", "Pod=events.pod")
        for text in (unit("localhost:9092"), CLIENT.format("localhost:9092"))
    )
    app = write(tmp_path, "app.container", client)
    assert checked(tmp_path, "broker.container", broker) == ("Podman unit", [])
    assert check(app, {}).mistakes == ()
    write(tmp_path, "events.pod", "[Pod]\nPodName=events\nPublishPort=9093:9092\n")
    assert checked(tmp_path, "broker.container", broker) == ("Podman unit", ["KL017"])


LOOPBACK = "[Container]\nEnvironment=KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092\n"
NAMED = LOOPBACK.replace("localhost", "kafka")


@pytest.mark.parametrize(("drop_ins", "expected"), [
    ({"a-b.container.d/10.conf": LOOPBACK}, [("a-b.container.d/10.conf", "KL015")]),
    ({"a-.container.d/10.conf": LOOPBACK}, [("a-.container.d/10.conf", "KL015")]),
    # the names of the files decide the order, not their folders
    ({"a-b.container.d/10.conf": LOOPBACK, "container.d/20.conf": NAMED}, []),
    ({"a-b.container.d/9.conf": NAMED, "a-b.container.d/10.conf": LOOPBACK}, []),
    # one with the same name in the unit's own folder hides that of the group
    ({"a-b.container.d/10.conf": "", "a-.container.d/10.conf": LOOPBACK}, []),
    ({"a-b.container.d/10.txt": LOOPBACK, "b.container.d/10.conf": LOOPBACK}, []),
    ({"a-b.container.d/10.conf": LOOPBACK.partition("\n")[2]}, []),  # in no section
    # an empty value removes all variables: the image advertises localhost
    ({"a-b.container.d/1.conf": "[Container]\nEnvironment=\n"}, [("a-b.container", "KL015")]),
    ({"a-b.container.d/1.conf": "[Container]\nPublishPort=9092:9092\n"},
     [("a-b.container.d/1.conf", "KL017")]),
])  # fmt: skip
@pytest.mark.parametrize("by_folder", [False, True])
def test_drop_ins_are_merged_into_their_unit(
    tmp_path: Path, drop_ins: dict[str, str], expected: list[tuple[str, str]], by_folder: bool
) -> None:
    file = write(tmp_path, "a-b.container", unit("kafka:9092"))
    write(tmp_path, "app.container", CLIENT.format("kafka:9092"))
    for name, text in drop_ins.items():
        write(tmp_path, name, text)
    chosen = choose([tmp_path if by_folder else file])
    (report,) = (check(file, {}) for file in chosen.files if file.name == "a-b.container")
    assert report.kind.startswith("Podman unit")
    if len(drop_ins) == 1 and expected:
        assert report.kind == f"Podman unit, with {Path(*drop_ins).name}"
    assert [
        (str(Path(mistake.place.file).relative_to(tmp_path)), mistake.finding.rule)
        for mistake in report.mistakes
    ] == expected


def test_a_drop_in_that_is_named_is_checked_with_its_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    units = [write(tmp_path, f"kafka-{number}.container", unit("kafka:9092")) for number in (1, 2)]
    drop_in = write(tmp_path, "kafka-.container.d/10.conf", LOOPBACK)
    monkeypatch.chdir(drop_in.parent)
    for path in (drop_in, Path("10.conf")):
        chosen = choose([path])
        assert sorted(chosen.named) == units
        (passed_over,) = chosen.passed_over
        assert passed_over.unchecked == (
            "is merged into kafka-1.container, kafka-2.container by Podman, and checked with them",
        )
    for file in units:
        file.unlink()
    assert choose([drop_in]).files == (drop_in,)
    assert check(drop_in, {}).unchecked == (
        "is a drop-in of a Podman unit that is not next to its folder",
    )


COMPOSE = f"""services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
{lines("localhost:9092", 6)}
"""
APP = "services:\n  app: {image: 'app:1', environment: {KAFKA_BROKERS: 'kafka:9092'}}\n"


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_development_container_with_its_compose_files(tmp_path: Path, mark: str) -> None:
    write(tmp_path, "docker-compose.yml", COMPOSE)
    write(tmp_path, ".devcontainer/app.yml", APP)
    text = mark + '{ // the app\n  "dockerComposeFile": ["../docker-compose.yml", "app.yml"],\n}'
    kind, rules = checked(tmp_path, ".devcontainer/devcontainer.json", text)
    assert kind == "development container, with docker-compose.yml, app.yml"
    assert rules == ["KL015"]


@pytest.mark.parametrize("name", [r"a\u0000", r"a\ud800"])
def test_a_development_container_with_an_impossible_file_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(EarshotError, match="no file has such a name"):
        checked(tmp_path, "devcontainer.json", f'{{"dockerComposeFile": "{name}"}}')


def test_folders_are_searched_for_these_files(tmp_path: Path) -> None:
    texts = {
        ".github/workflows/test.yml": github("localhost:9092"),
        ".devcontainer/devcontainer.json": "{}",
        "units/broker.container": unit("kafka:9092"),
        ".gitlab-ci.yml": gitlab("kafka:9092", "kafka:9092"),
    }
    files = {write(tmp_path, name, text) for name, text in texts.items()}
    assert set(choose([tmp_path]).files) == files
