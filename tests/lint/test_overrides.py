"""Files that `docker compose` takes together; their verdicts are in `test_check`."""

from pathlib import Path

import pytest

from earshot.lint.check import check
from earshot.lint.compose_files import check_together
from earshot.lint.files import base_of, choose, overlays_of
from earshot.lint.model import NO_OPTIONS

BASE = """
services:
  kafka:
    image: confluentinc/cp-kafka:7.5.0
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
"""
PORTS = 'services:\n  kafka:\n    ports: ["9092:9092"]\n'
DEFAULT = ("docker-compose.yml", "docker-compose.override.yml")


def written(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_text(PORTS if "override" in name else BASE)
    return [folder / name for name in names]


@pytest.mark.parametrize(("names", "together"), [
    (DEFAULT, DEFAULT),
    (("compose.yaml", "docker-compose.override.yaml"),
     ("compose.yaml", "docker-compose.override.yaml")),
    ((*DEFAULT, "compose.override.yml"), ("docker-compose.yml", "compose.override.yml")),
    ((*DEFAULT, "compose.yml"), ("compose.yml", "docker-compose.override.yml")),
])  # fmt: skip
def test_the_first_base_takes_the_first_override(
    names: tuple[str, ...], together: tuple[str, str], tmp_path: Path
) -> None:
    base, above = (tmp_path / name for name in together)
    for file in written(tmp_path, *names):
        assert overlays_of(file) == ((above,) if file == base else ())
        assert base_of(file) == (base if file == above else None)


@pytest.mark.parametrize("named_file", ["", *DEFAULT])
def test_both_are_checked_under_the_name_of_the_first(named_file: str, tmp_path: Path) -> None:
    base, above = written(tmp_path, *DEFAULT)
    chosen = choose([tmp_path / named_file])
    assert chosen.files == (base,)
    reported = "is merged into docker-compose.yml by `docker compose`, and checked with it"
    if named_file != base.name:
        reports = [(report.file, report.unchecked) for report in chosen.passed_over]
        assert reports == [(str(above), (reported,))]
    linted = check(base, {})
    assert linted.kind == f"Compose file, with {above}"
    (mistake,) = linted.mistakes
    assert (mistake.finding.rule, mistake.place.file) == ("KL017", str(above))
    assert mistake.place.line == 3


@pytest.mark.parametrize(("env", "together"), [
    ("COMPOSE_FILE=app.yml:kafka.override.yml", ("app.yml", "kafka.override.yml")),
    ("COMPOSE_PATH_SEPARATOR=;\nCOMPOSE_FILE=app.yml;./docker-compose.override.yml",
     ("app.yml", "docker-compose.override.yml")),
    ("COMPOSE_FILE=app.yml", ("app.yml",)),
    ("COMPOSE_FILE=app.yml:nowhere.yml", DEFAULT),
    ("COMPOSE_FILE=../app.yml:kafka.override.yml", DEFAULT),
    ("no assignment", DEFAULT),
    ("COMPOSE_FILE=", DEFAULT),
])  # fmt: skip
def test_a_variable_may_name_them(env: str, together: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(env)
    base, *above = (tmp_path / name for name in together)
    for file in written(tmp_path, *DEFAULT, "app.yml", "kafka.override.yml"):
        assert overlays_of(file) == (tuple(above) if file == base else ())
        assert base_of(file) == (base if file in above else None)


def test_what_a_variable_names_is_checked_together(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COMPOSE_FILE=app.yml:ports.override.yml\n")
    base, above, kafka = written(tmp_path, "app.yml", "ports.override.yml", "kafka.yml")
    assert choose([tmp_path]).files == (base, kafka)
    assert [mistake.place.file for mistake in check(base, {}).mistakes] == [str(above)]
    assert check(kafka, {}).mistakes == ()


def test_an_override_alone_is_a_file_of_its_own(tmp_path: Path) -> None:
    (above,) = written(tmp_path, "compose.override.yml")
    assert choose([above]).files == (above,)


def test_a_base_without_the_word_is_checked_for_the_sake_of_its_override(tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text("services: {app: {image: app}}")
    (tmp_path / "compose.override.yml").write_text(BASE + '    ports: ["9092:9092"]\n')
    assert choose([tmp_path]).files == (tmp_path / "compose.yml",)
    assert [mistake.finding.rule for mistake in check(tmp_path / "compose.yml", {}).mistakes] == [
        "KL017"
    ]


@pytest.mark.parametrize("text", ["", "services: 5", "just a text"])
def test_an_override_of_another_form_leaves_the_base_as_it_is(text: str, tmp_path: Path) -> None:
    (tmp_path / "compose.yml").write_text(BASE + '    ports: ["9092:9092"]\n')
    (tmp_path / "compose.override.yml").write_text(text)
    report = check(tmp_path / "compose.yml", {})
    assert [mistake.finding.rule for mistake in report.mistakes] == ["KL017"]
    why = "is no Compose file: it is not read, although `docker compose` merges it into this file"
    assert report.unchecked == (f"compose.override.yml {why}",)


def test_networks_alone_are_merged_and_included(tmp_path: Path) -> None:
    broker = BASE + '    ports: ["9092:9092"]\n    networks: [shared]\n'
    networks = "networks: {shared: {}}"
    (tmp_path / "compose.yml").write_text(broker)
    (tmp_path / "compose.override.yml").write_text(networks)
    (tmp_path / "networks.yml").write_text(networks)
    (tmp_path / "including.yml").write_text(f"include: [networks.yml]\n{broker}")
    files = [tmp_path / "compose.yml", tmp_path / "networks.yml"]
    for report in (
        check(tmp_path / "compose.yml", {}),
        check(tmp_path / "including.yml", {}),
        check_together(files, {}, NO_OPTIONS),
    ):
        assert [mistake.finding.rule for mistake in report.mistakes] == ["KL017"]
        assert report.unchecked == ()


UNPUBLISHED = BASE.replace("//kafka:9092", "//10.1.2.3:9092")


@pytest.mark.parametrize(
    ("sibling", "rules"),
    [
        (PORTS, []),
        ("services: {kafka: {ports: !override ['9092:9092']}}", []),
        ("services: {kafka: {network_mode: host}}", []),
        ("services: {kafka: {image: 'mirror.test/kafka:7', ports: ['9092:9092']}}", []),
        ("services: {b: {extends: {file: app.yml, service: kafka}, ports: ['9092:9092']}}", []),
        ("services: {kafka: {restart: always}}", ["KL017"]),
        ("services: {kafka: {ports: !reset []}}", ["KL017"]),
        ("services: {kafka-ui: {ports: ['8080:8080']}}", ["KL017"]),
        ("services: [kafka, ports]", ["KL017"]),
        ("kafka: {{ ports", ["KL017"]),
        # a whole file with a broker of its own
        (UNPUBLISHED + "    ports: ['9092:9092']", ["KL017"]),
    ],
)
def test_ports_of_a_file_that_may_be_merged(sibling: str, rules: list[str], tmp_path: Path) -> None:
    file = tmp_path / "app.yml"
    file.write_text(UNPUBLISHED)
    (tmp_path / "app.prod.yml").write_text(sibling)
    assert [mistake.finding.rule for mistake in check(file, {}).mistakes] == rules
    together = check_together([file], {}, NO_OPTIONS)  # `-f` names all files
    assert [mistake.finding.rule for mistake in together.mistakes] == ["KL017"]


BROKER = BASE.replace("kafka:9092", "localhost:9092")
CLIENT = """services:
  app:
    image: app
    environment: {KAFKA_BOOTSTRAP_SERVERS: "kafka:9092"}
"""


@pytest.mark.parametrize(("documents", "expected"), [
    ((BROKER, CLIENT), [("KL015", 7)]),
    ((CLIENT, BROKER), [("KL015", 12)]),
    (("# a comment\n", BROKER, "volumes: {}\n", CLIENT), [("KL015", 9)]),
    # the last value counts, and the last document that sets it has the mistake
    ((BROKER, CLIENT, BASE.replace("kafka:9092", "other:9092")), [("KL015", 20)]),
    ((BROKER, CLIENT, BASE), []),
    ((BASE, PORTS), [("KL017", 11)]),
    ((BROKER, "# no content\n"), []),
    (("volumes: {}\nservices: {web: {image: a}}\n",
      "services:\n  kafka: {image: 'apache/kafka:4.1.1', hostname: a, hostname: b}\n"),
     [("KL014", 5)]),
])  # fmt: skip
def test_the_documents_of_a_file_are_merged_in_their_order(
    documents: tuple[str, ...], expected: list[tuple[str, int]], tmp_path: Path
) -> None:
    file = tmp_path / "docker-compose.yml"
    file.write_text("---\n".join(documents))
    report = check(file, {})
    found = [(mistake.finding.rule, mistake.place.line) for mistake in report.mistakes]
    assert (report.kind, found) == ("Compose file", expected)
