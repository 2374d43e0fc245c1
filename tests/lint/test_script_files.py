"""Containers that a script starts are checked like those of a Compose file."""

from pathlib import Path

import pytest

from earshot.lint.check import check
from earshot.lint.files import choose

KRAFT = (
    "-e KAFKA_NODE_ID=1 -e KAFKA_PROCESS_ROLES=broker,controller"
    " -e KAFKA_CONTROLLER_LISTENER_NAMES=CONTROLLER"
    " -e KAFKA_CONTROLLER_QUORUM_VOTERS=1@localhost:9093"
    " -e KAFKA_LISTENERS=PLAINTEXT://:9092,CONTROLLER://:9093"
)


def broker(
    advertised: str, options: str = "-p 9092:9092", name: str = "kafka", program: str = "docker"
) -> str:
    """A command that starts a broker."""
    return (
        f"{program} run -d --name {name} {options} {KRAFT} \\\n"
        f"  -e KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://{advertised} apache/kafka:4.1.1\n"
    )


def ui(options: str, bootstrap: str = "kafka:9092", program: str = "docker") -> str:
    """A command that starts a client."""
    setting = f"KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS={bootstrap}"
    return f"{program} run -d {options} -e {setting} kafbat/kafka-ui:v1.3.0\n"


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def rules(folder: Path, text: str, name: str = "start.sh") -> list[tuple[str, str]]:
    report = check(write(folder, name, text), {})
    return [(mistake.finding.rule, mistake.level) for mistake in report.mistakes]


NETWORK = "docker network create net\n"
KL015, KL017 = ("KL015", "error"), ("KL017", "error")
KL015_WARNING = ("KL015", "warning")
PODMANS, DOCKERS = "host.containers.internal", "host.docker.internal"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (broker("localhost:9092"), []),
        (broker("kafka:9092"), [KL017]),
        (broker("localhost:9092", "-p 9093:9092"), [KL017]),
        (broker("localhost:9092", "-p9093:9092"), [KL017]),
        (broker("localhost:9092", "-itdp 9092:9092"), []),
        (broker("localhost:9092", "--publish=9092:9092"), []),
        (broker("kafka:9092", program="sudo podman"), [KL017]),
        (broker("kafka:9092", program="nerdctl"), [KL017]),
        (broker("kafka:9092", program="ID=$(docker") + ")", [KL017]),
        # the host of another command is another machine
        (broker("kafka:9092", program="docker -H tcp://box"), []),
        # variables
        ("PORT=9092\n" + broker("localhost:$PORT", "-p $PORT:9092"), []),
        (broker("localhost:${PORT:-9092}", "-p ${PORT:-9093}:9092"), [KL017]),
        (broker("$HOST:9092"), []),
        # the machine's network
        (broker("localhost:9092", "--net=host") + ui("--network host", "localhost:9092"), []),
        (broker("localhost:9092", "--net=host") + ui("-p 8080:8080", "localhost:9092"), [KL015]),
        # a network that the script creates
        (NETWORK + broker("kafka:9092", "--network net") + ui("--network net"), []),
        (NETWORK + broker("localhost:9092", "--network net") + ui("--network net"), [KL015]),
        (NETWORK + broker("other:9092", "--network net") + ui("--network net"), [KL015]),
        (NETWORK + broker("other:9092", "--network net --network-alias other")
         + ui("--network net"), []),
        (NETWORK + broker("kafka:9092", "") + "docker network connect net kafka\n"
         + ui("--network net"), []),
        # a network of elsewhere may have more names
        (broker("other:9092", "--network net") + ui("--network net"), []),
        (NETWORK + broker("other:9092", "--network net") + ui("--network net")
         + "docker compose up -d\n", []),
        # the default bridge resolves links alone
        (broker("kafka:9092", "") + ui(""), [KL015]),
        (broker("kafka:9092", "") + ui("--link kafka"), []),
        (broker("localhost:9092") + ui("--link kafka:k", "k:9092"), [KL015]),
        (broker("localhost:9092") + ui("--network container:kafka", "localhost:9092"), []),
        (broker("localhost:9092") + "docker run --link kafka debezium/connect:2.7\n", [KL015]),
        # images with their own variables
        ("docker run -p 9092:9092 -e ADVERTISED_HOST=localhost spotify/kafka\n", []),
        ("docker run -p 9093:9092 -e ADVERTISED_HOST=localhost spotify/kafka\n", [KL017]),
        (broker("kafka:9092", "") + ui("--add-host kafka:172.17.0.2"), []),
        # names of the machine that Podman gives to each container, and Docker to none
        (broker(f"{PODMANS}:9092", program="podman") + ui("", f"{PODMANS}:9092", "podman"), []),
        (broker(f"{DOCKERS}:9092", program="podman") + ui("", f"{DOCKERS}:9092", "podman"), []),
        ("podman pod create --name p -p 9092:9092\n"
         + broker(f"{PODMANS}:9092", "--pod p", program="podman")
         + ui("", f"{PODMANS}:9092", "podman"), []),
        (broker(f"{PODMANS}:9092", program="podman")
         + ui("--no-hosts", f"{PODMANS}:9092", "podman"), [KL015_WARNING]),
        (broker(f"{PODMANS}:9092") + ui("", f"{PODMANS}:9092"), [KL015_WARNING]),
        (broker("localhost:9092", program="podman") + ui("", f"{PODMANS}:9092", "podman"),
         [KL015]),
        # tools that the script runs on the machine
        (broker("kafka:9092", "--network net") + "kcat -b kafka:9092 -L\n", [KL015]),
        (broker("localhost:9092") + "kafka-topics.sh --bootstrap-server localhost:9092\n", []),
        (broker("localhost:9092") + "echo kafka:9092\n", []),
        # names that the script gives the machine
        ("sudo sh -c 'echo \"127.0.0.1 db kafka\" >> /etc/hosts'\n" + broker("kafka:9092"), []),
        ("cat >> /etc/hosts <<E\n127.0.0.1\tkafka\nE\n" + broker("kafka:9092")
         + "kcat -b kafka:9092 -L\n", []),
    ],
)  # fmt: skip
def test_containers_of_a_script_are_checked(
    tmp_path: Path, text: str, expected: list[tuple[str, str]]
) -> None:
    assert rules(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("name", "mark"), [("start.bat", "^"), ("start.cmd", "^"), ("start.ps1", "`")]
)
def test_scripts_of_windows_are_checked(tmp_path: Path, name: str, mark: str) -> None:
    text = broker("kafka:9092").replace("\\\n", f"{mark}\n")
    assert rules(tmp_path, text, name) == [KL017]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("apache/kafka:4.1.1 -e KAFKA_NODE_ID=1", [("KL014", "error")]),
        ("confluentinc/cp-kafka -p 9092:9092 --name kafka", [("KL014", "error")]),
        ("bitnami/kafka:3.9 --network net", [("KL014", "error")]),
        ("wurstmeister/kafka -e KAFKA_LISTENERS=PLAINTEXT://:9092 start-kafka.sh",
         [("KL014", "error")]),
        # the arguments of another program, and of the unknown one in another image
        ("--entrypoint sh apache/kafka:4.1.1 -c date", []),
        ("registry.example.org/apache/kafka:4.1.1 --config /own.properties", []),
        ("registry.example.org/broker -e KAFKA_LISTENERS=PLAINTEXT://:9092", []),
    ],
)  # fmt: skip
def test_options_after_the_image_are_the_containers_command(
    tmp_path: Path, words: str, expected: list[tuple[str, str]]
) -> None:
    assert rules(tmp_path, f"docker run -d {words}\n") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker run -e GROUP_ID=1 debezium/connect:2.7", [("KL014", "error")]),
        # Docker sets variables for links on the default bridge
        ("docker run -e GROUP_ID=1 --link kafka debezium/connect:2.7", []),
        ("docker run -e GROUP_ID=1 --net net --link kafka debezium/connect:2.7",
         [("KL014", "error")]),
        ("docker run -e CONNECT_GROUP_ID=1 confluentinc/cp-kafka-connect:7.6.0",
         [("KL014", "error")]),
        ("docker run -e GROUP_ID=1 -e BOOTSTRAP_SERVERS=kafka:9092 debezium/connect:2.7", []),
        # no container that is meant to run
        ("docker create --name files confluentinc/cp-kafka-connect:7.6.0", []),
        ("docker run -e GROUP_ID=1 debezium/connect:2.7 ls", []),
        ("docker run -e GROUP_ID=1 --env-file connect.env debezium/connect:2.7", []),
    ],
)  # fmt: skip
def test_a_lone_client_without_an_address_is_checked(
    tmp_path: Path, text: str, expected: list[tuple[str, str]]
) -> None:
    assert rules(tmp_path, f"{text}\n") == expected


def test_a_value_after_the_image_is_not_shown(tmp_path: Path) -> None:
    text = "docker run apache/kafka:4.1.1 -eKAFKA_PASSWORD=hidden -e KAFKA_NODE_ID=1\n"
    (mistake,) = check(write(tmp_path, "start.sh", text), {}).mistakes
    assert "hidden" not in str(mistake.finding)


def test_a_zookeeper_of_the_script_is_found_by_name_and_link(tmp_path: Path) -> None:
    def text(options: str) -> str:
        return (
            "docker run -d --name zookeeper -p 2181:2181 zookeeper:3.9\n"
            f"docker run -d --name kafka {options} -e KAFKA_ZOOKEEPER_CONNECT=zookeeper:2181 -e "
            "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://localhost:9092 confluentinc/cp-kafka:7.6.0\n"
        )

    assert rules(tmp_path, text("-p 9092:9092 --link zookeeper")) == []
    assert rules(tmp_path, text("-p 9092:9092")) == [("KL016", "error")]
    assert rules(tmp_path, text("--network host")) == [("KL016", "error")]


def test_the_place_is_the_line_of_the_variable(tmp_path: Path) -> None:
    report = check(write(tmp_path, "start.sh", "#!/bin/sh\n" + broker("kafka:9092")), {})
    assert [mistake.place.line for mistake in report.mistakes] == [3]
    assert report.kind == "script"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for i in 1 2; do\n" + broker("kafka:9092", name="kafka$i") + "done\n", "in a loop"),
        ("if a; then\n" + broker("kafka:9092") + "else\n" + broker("localhost:9092") + "fi\n",
         "is started in two ways"),
        ("docker run -d \\\n  # the broker\n  apache/kafka:4.1.1\n", "ends before the image"),
    ],
)  # fmt: skip
def test_what_was_not_read_is_said(tmp_path: Path, text: str, reason: str) -> None:
    report = check(write(tmp_path, "start.sh", text), {})
    assert (report.kind, report.mistakes) == ("", ())
    assert any(reason in text for text in report.unchecked)


@pytest.mark.parametrize(
    "text",
    [
        broker("kafka:9092", "$OPTIONS"),
        # the options may publish 9092:9092, or join a network of the client
        broker("localhost:9092", "-p 29092:9092 $OPTIONS"),
        "docker network create n\n" + broker("kafka:9092", "$OPTIONS") + ui("--network n"),
    ],
)
def test_an_unknown_option_leaves_ports_and_networks_open(tmp_path: Path, text: str) -> None:
    report = check(write(tmp_path, "start.sh", text), {})
    assert [mistake.level for mistake in report.mistakes if mistake.level == "error"] == []
    assert "container kafka: options could not be read" in report.unchecked
    assert report.open_listeners == ()


def test_an_unknown_option_may_set_the_listeners(tmp_path: Path) -> None:
    report = check(write(tmp_path, "start.sh", 'docker run "${args[@]}" apache/kafka:4.1.1\n'), {})
    (reason,) = report.open_listeners
    assert "options could not be read, and may set its listeners" in reason


def test_a_file_of_variables_next_to_the_script_is_read(tmp_path: Path) -> None:
    write(tmp_path, "kafka.env", "KAFKA_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092\n")
    text = f"docker run --name kafka -p 9092:9092 {KRAFT} --env-file %s apache/kafka:4.1.1\n"
    assert rules(tmp_path, text % "kafka.env") == [KL017]
    report = check(write(tmp_path, "start.sh", text % "none.env"), {})
    assert (report.mistakes, len(report.unchecked)) == ((), 1)


COMPOSE = """#!/bin/sh
IP=$(hostname -I)
cat > compose.yml <<EOF
services:
  kafka:
    image: apache/kafka:4.1.1
    ports: ["9092:9092"]
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_LISTENERS: PLAINTEXT://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://{}:9092
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
EOF
docker compose up -d
"""


@pytest.mark.parametrize(
    ("host", "expected"), [("kafka", [KL017]), ("localhost", []), ("$IP", []), ("\\${IP}", [])]
)
def test_a_compose_file_that_a_script_writes_is_checked(
    tmp_path: Path, host: str, expected: list[tuple[str, str]]
) -> None:
    file = write(tmp_path, "start.sh", COMPOSE.format(host))
    report = check(file, {})
    assert [(mistake.finding.rule, mistake.level) for mistake in report.mistakes] == expected
    assert report.kind == "script with a Compose file"
    assert [mistake.place.line for mistake in report.mistakes] == [12] * len(expected)


def echoed(text: str) -> str:
    return "".join(f"echo '{line}' >> docker-compose.yml\n" for line in text.splitlines())


SERVICES = COMPOSE.partition("<<EOF\n")[2].partition("EOF\n")[0]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        (f"newgrp docker << END\n{COMPOSE}END\n", 7),
        (f"sudo bash -s <<'END'\n{COMPOSE}END\n", 7),
        (f"ssh box 'bash -s' <<'END'\n{COMPOSE}END\n", 7),
        (echoed(SERVICES), 13),
        (f"echo '{SERVICES}' > docker-compose.yml\n", 7),
    ],
)
def test_a_compose_file_is_read_however_a_script_writes_it(
    tmp_path: Path, text: str, column: int
) -> None:
    text = text.format("kafka")
    (mistake,) = check(write(tmp_path, "start.sh", text), {}).mistakes
    (line,) = (n for n, line in enumerate(text.splitlines(), 1) if "ADVERTISED" in line)
    place = mistake.place
    assert (mistake.finding.rule, place.line, place.column) == ("KL017", line, column)


def test_a_file_that_a_script_writes_twice_is_two_files(tmp_path: Path) -> None:
    written = f"echo '{SERVICES}' > docker-compose.yml\n"
    text = f"if x; then\n{written}else\n{written}fi\n".format("kafka", "localhost")
    (mistake,) = check(write(tmp_path, "start.sh", text), {}).mistakes
    assert mistake.finding.rule == "KL017"
    assert text.splitlines()[mistake.place.line - 1].endswith("PLAINTEXT://kafka:9092")


def test_a_mistake_in_a_file_that_the_written_one_includes_is_placed_there(tmp_path: Path) -> None:
    included = write(tmp_path, "kafka.yml", "# c\n" * 30 + SERVICES.format("kafka"))
    text = "cat > a.yml <<EOF\ninclude: [kafka.yml]\nservices: {web: {image: a}}\nEOF\n"
    (mistake,) = check(write(tmp_path, "start.sh", text + "# c\n" * 60), {}).mistakes
    assert mistake.place.file == str(included)
    line = included.read_text().splitlines()[mistake.place.line - 1]
    assert line.endswith("PLAINTEXT://kafka:9092")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"bash <<E\n{broker('kafka:9092')}E\n", [KL017]),
        (f"cat <<E\n{broker('kafka:9092')}E\n", []),
        # a comment line ends the command before its image
        ("docker run \\\n -p 9092:9092 \\\n # why\n -e KAFKA_NODE_ID=1 apache/kafka\n", []),
        (broker("localhost:9092").replace("\\\n", "\\\n  # why\n"), [("KL014", "error")]),
        (broker("localhost:9092").replace("\n", " # why\n").replace("\\ # why", "\\"), []),
        (broker("localhost:9092") + "# why\n", []),
    ],
)
def test_here_documents_and_comments_are_read_as_by_a_shell(
    tmp_path: Path, text: str, expected: list[tuple[str, str]]
) -> None:
    assert rules(tmp_path, text) == expected


def recipe(command: str, target: str = "kafka") -> str:
    return f"{target}:\n" + "".join(f"\t{line}\n" for line in f"@{command}".splitlines())


OTHER = (
    "docker run -p 9092:9092 redpandadata/redpanda:v24.1.1 redpanda start"
    " --kafka-addr 0.0.0.0:9092 --advertise-kafka-addr localhost:9092\n"
)


@pytest.mark.parametrize("name", ["Makefile", "justfile", "kafka.mk"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (recipe(broker("localhost:9092")), []),
        (recipe(broker("kafka:9092")), [KL017]),
        (recipe(broker("localhost:9092")) + recipe(ui("--link kafka"), "ui"), [KL015]),
        # two targets that need one port are alternatives, two commands of one target are not
        (recipe(broker("localhost:9092")) + recipe(OTHER, "redpanda"), []),
        (recipe(broker("localhost:9092") + OTHER), [KL017]),
    ],
)
def test_recipes_are_checked_like_scripts(
    tmp_path: Path, name: str, text: str, expected: list[tuple[str, str]]
) -> None:
    assert rules(tmp_path, text, name) == expected


def test_scripts_in_a_folder_are_checked(tmp_path: Path) -> None:
    write(tmp_path, "start.sh", broker("kafka:9092"))
    write(tmp_path, "build.sh", "make\n")
    write(tmp_path, "Makefile", recipe(broker("kafka:9092")))
    assert [file.name for file in choose([tmp_path]).files] == ["Makefile", "start.sh"]
