"""`earshot lint` as it is typed: exit codes, messages, files written; the check is a double."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from earshot.cli import lint
from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.model import FileOptions, FileReport, Mistake, Place
from earshot.rules.evaluate import RULES, rules_at
from earshot.rules.rule import AppliedAt, Severity
from tests.cli.command import Earshot
from tests.lint.samples import finding

RULE_IDS = ", ".join(rule.id for rule in RULES)
RULE_IDS_OF_FILES = ", ".join(rule.id for rule in rules_at(AppliedAt.FILE))
CLEAN = "1 file checked: 0 errors, 0 warnings\n"
LOADING = """
import sys
from earshot.cli import run
for format in sys.argv[1].split():
    assert run(['lint', '.', '--format', format]) == 0
sys.exit(' '.join(set(sys.argv[2].split()) & set(sys.modules)) or None)
"""


def double(file: Path, variables: Mapping[str, str], options: FileOptions) -> FileReport:
    """Takes each line `kafka RULE` for an error of that rule, and `kafka? RULE` for a warning."""
    text = file.read_text()
    if "%" in text:
        raise EarshotError(str(file), observed="is no YAML", remedy="fix it")
    if "kafka" not in text:
        return FileReport(str(file), "", unchecked=("has nothing of Kafka",))
    mistakes = []
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rule = line.partition("#")[0].strip().partition(" ")
        if rule:
            severity = Severity.WARNING if word == "kafka?" else Severity.ERROR
            place = Place(str(file), number, 1)
            mistakes.append(Mistake(finding(rule, severity=severity), place))
    return FileReport(str(file), "Compose file", tuple(mistakes))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lint, "check", double)


@pytest.fixture
def real_check(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "check", check)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def places_in(text: str) -> list[tuple[str, str, int]]:
    """Rule, file and line of the mistakes of a JSON document that are not ignored."""
    return [
        (mistake["rule"], mistake["file"], mistake["line"])
        for file in json.loads(text)["files"]
        for mistake in file["mistakes"]
        if not mistake["ignored"]
    ]


def rules_in(text: str) -> list[str]:
    return [rule for rule, _, _ in places_in(text)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("kafka", 0),
        ("kafka? KL003", 0),
        ("kafka KL003", 1),
        ("kafka KL003 # earshot: ignore=KL003 why", 0),
        ("%", 2),
    ],
)
def test_the_exit_code_of_one_file(text: str, code: int, earshot: Earshot) -> None:
    write("a.yml", text)
    assert earshot("lint a.yml").code == code


@pytest.mark.parametrize("name", ["a.yml", "a.properties", "a.conf", "a.env.j2", "a"])
def test_a_named_file_that_is_not_judged_is_3(name: str, earshot: Earshot) -> None:
    write(name, "rabbit")
    code, output, _ = earshot(f"lint {name}")
    summary = f"nothing to check; 1 not judged: {name} (has nothing of Kafka)"
    assert (code, output.splitlines()[-1]) == (3, summary)
    assert earshot(f"lint -f {name}").code in (2, 3)  # with the check itself


def test_a_mistake_elsewhere_goes_first(earshot: Earshot) -> None:
    write("a.yml", "rabbit")
    write("b.yml", "kafka KL003")
    assert earshot("lint a.yml b.yml").code == 1


def test_unrelated_files_may_be_skipped(earshot: Earshot) -> None:
    write("a.yml", "rabbit")
    output = earshot.output("lint a.yml --skip-unrelated")
    assert output.endswith("nothing to check; 1 passed over\n")


def test_other_files_are_checked_beside_one_that_cannot_be_read(earshot: Earshot) -> None:
    write("a.yml", "kafka %")
    write("b.yml", "kafka KL003")
    code, output, errors = earshot("lint . --format json")
    assert (code, errors) == (2, "error: a.yml: is no YAML\n  fix: fix it\n")
    assert rules_in(output) == ["KL003"]


def test_the_folder_without_files_of_kafka_is_0(earshot: Earshot) -> None:
    assert earshot.output("lint .") == "nothing to check\n"
    write("a.yml", "rabbit")
    write("b.yml", "listeners of others")
    write(".git/c.yml", "kafka")
    assert earshot.output("lint .") == (
        "passed over\n"
        "- has nothing of Kafka (b.yml)\n"
        "- is a hidden folder (.git)\n"
        '- has neither "kafka" nor "listeners" in its first 1 MB (a.yml)\n'
        "\n"
        "nothing to check; 3 passed over\n"
    )


def test_text_is_the_default(earshot: Earshot) -> None:
    write("a.yml", "x\nkafka KL003")
    assert earshot("lint a.yml") == (
        1,
        (
            "a.yml (Compose file)\n"
            "\n"
            "a.yml:2:1: error KL003, container kafka, broker 1, listener EXTERNAL (scope host)\n"
            "  2 | kafka KL003\n"
            "    | ^\n"
            "  observed  advertises 0.0.0.0, which is no address of anybody\n"
            "  expected  a name that the clients can resolve\n"
            "  fix       advertise localhost\n"
            "  source    https://www.rfc-editor.org/rfc/rfc6890\n"
            "\n"
            "1 file checked: 1 error, 0 warnings\n"
        ),
        "",
    )


@pytest.mark.parametrize(
    ("format", "start"),
    [
        ("text", "a.yml (Compose file)\n"),
        ("json", '{\n  "version": 1,'),
        ("sarif", '{\n  "$schema": "https://docs.oasis-open.org/sarif/'),
        ("junit", '<?xml version="1.0"'),
        ("markdown", "# \N{CROSS MARK} earshot lint: 1 file checked: 1 error, 0 warnings\n"),
        ("github", "::error file=a.yml,line=1,col=1,title=KL003 "),
    ],
)
def test_formats(format: str, start: str, earshot: Earshot) -> None:
    write("a.yml", "kafka KL003")
    code, output, _ = earshot(f"lint a.yml --format {format}")
    assert (code, output[: len(start)]) == (1, start)


def test_files_get_the_format_of_their_suffix_unless_one_is_named(earshot: Earshot) -> None:
    write("a.yml", "kafka KL003")
    outputs = "-o o/a.sarif -o o/a.json -o o/a.xml -o o/a.md -o o/a.txt"
    code, output, _ = earshot(f"lint a.yml {outputs}")
    assert (code, output) == (1, Path("o/a.txt").read_text())
    assert output.startswith("a.yml (Compose file)\n")
    assert json.loads(Path("o/a.sarif").read_text())["version"] == "2.1.0"
    assert rules_in(Path("o/a.json").read_text()) == ["KL003"]
    assert ET.parse("o/a.xml").getroot().tag == "testsuites"
    assert Path("o/a.md").read_text().startswith("# ")
    write("a.yml", "kafka")
    assert earshot.output("lint a.yml --format sarif --output a.json") == CLEAN
    assert json.loads(Path("a.json").read_text())["version"] == "2.1.0"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            "a.yml -o x.y",
            """--output x.y: its suffix names no format
  allowed: .txt, .json, .sarif, .xml, .md
  fix: name a --format""",
        ),
        ("a.yml -o d --format json", "--output d: is a folder\n  allowed: a file"),
        ("a.yml --write-baseline d", "--write-baseline d: is a folder\n  allowed: a file"),
        ("a.yml --select KL9", f"--select: there is no rule KL9\n  allowed: {RULE_IDS}"),
        (
            "a.yml --select KL017,KL014 --ignore KL014,KL017",
            "--ignore: has all rules of --select: KL014, KL017\n  allowed: a selected rule remains",
        ),
        *(
            (
                f"a.yml --explain app {option}",
                f"""{option.split()[0]}: found --explain app, which prints a walk and no findings
  allowed: one of the two options""",
            )
            for option in ("--output b.sarif", "--format json", "--fix", "--write-baseline b.json")
        ),
        (
            "a.yml --select KL017,KL011,KL003",
            f"""--select: no file is checked by KL003, KL011
  allowed: {RULE_IDS_OF_FILES}
  fix: for a stack's plan run: earshot plan --check""",
        ),
        ("a.yml --ignore KL003,x", f"--ignore: there is no rule X\n  allowed: {RULE_IDS}"),
        (
            "a.yml --baseline no.json",
            """--baseline no.json: cannot be read (No such file or directory)
  fix: earshot lint PATH --write-baseline no.json""",
        ),
        *(
            (
                f"a.yml --kafka-version {version}",
                f"""--kafka-version {version}: names no release of Kafka
  allowed: Kafka's own number, such as 2.8 or 3.9 (Confluent 7.x is Kafka 3.x)""",
            )
            for version in ("7.5", "4", "new", "3.9-rc1")
        ),
        (
            "--format xml a.yml",
            """earshot lint: argument --format: invalid choice: 'xml' \
(choose from 'text', 'json', 'sarif', 'junit', 'markdown', 'github')
  fix: see earshot lint --help""",
        ),
        ("", "earshot lint: names no file\n  allowed: PATH..., or -f FILE"),
        ("a.yml b.yml", "path b.yml: does not exist\n  allowed: a file or a folder"),
    ],
)
def test_each_bad_option_has_its_message(options: str, error: str, earshot: Earshot) -> None:
    write("a.yml", "kafka KL003")
    Path("d").mkdir()
    assert earshot.refusal(f"lint {options}") == f"error: {error}\n"


@pytest.mark.parametrize("option", [(), ("-f",), ("-o",), ("--baseline",)])
def test_an_empty_path_is_not_the_current_folder(option: tuple[str, ...], earshot: Earshot) -> None:
    error = earshot.refusal("lint", *option, "")
    assert error.startswith("error: earshot lint: found an empty path\n  allowed: the path of ")


@pytest.mark.parametrize("option", ["--explain", "--kafka-version", "--profile"])
def test_an_option_with_an_empty_value_is_not_left_out(option: str, earshot: Earshot) -> None:
    error = earshot.refusal("lint", ".", option, "")
    assert error.startswith("error: earshot lint: found an empty value\n  allowed: a name or a rel")


def test_a_bad_comment_is_an_error_of_its_file(earshot: Earshot) -> None:
    write("a.yml", "kafka KL003 # earshot: ignore=KL9")
    assert earshot("lint a.yml") == (
        2,
        "could not be checked\n- a.yml\n\nnothing to check; 1 could not be checked\n",
        (
            "error: a.yml, line 1, # earshot: ignore=KL9: there is no rule KL9\n"
            f"  allowed: {RULE_IDS}\n"
        ),
    )


def test_mistakes_of_a_baseline_are_ignored(earshot: Earshot) -> None:
    write("a.yml", "kafka KL003\nkafka KL006 # earshot: ignore=KL006 why\nkafka KL017")
    assert earshot("lint a.yml --write-baseline b.json") == (
        0,
        (
            "a.yml (Compose file)\n\n"
            "a.yml:1:1: KL003 ignored: in the baseline\n"
            "a.yml:2:1: KL006 ignored: why\n"
            "a.yml:3:1: KL017 ignored: in the baseline\n\n"
            "1 file checked: 0 errors, 0 warnings, 3 ignored\n"
        ),
        "written: b.json, 2 mistakes\n",
    )
    write("a.yml", "\n\nkafka KL003\nkafka KL014")
    code, output, _ = earshot("lint . --baseline b.json --format json")
    assert (code, rules_in(output)) == (1, ["KL014"])
    # both options bring it up to date: without a mistake that is fixed
    assert earshot("lint a.yml --baseline b.json --write-baseline b.json").code == 0
    rows = json.loads(Path("b.json").read_text())["mistakes"]
    assert [row["rule"] for row in rows] == ["KL003", "KL014"]


def test_a_file_that_cannot_be_checked_stays_an_error_with_a_baseline(earshot: Earshot) -> None:
    write("a.yml", "%")
    assert earshot("lint a.yml --write-baseline b.json").code == 2
    assert earshot("lint a.yml --baseline b.json").code == 2


def test_the_check_gets_the_environment(monkeypatch: pytest.MonkeyPatch, earshot: Earshot) -> None:
    values: dict[str, str] = {}

    def check(file: Path, variables: Mapping[str, str], options: FileOptions) -> FileReport:
        values[str(file)] = variables["EARSHOT_TEST_VARIABLE"]
        return FileReport(str(file), "Compose file")

    monkeypatch.setattr(lint, "check", check)
    monkeypatch.setenv("EARSHOT_TEST_VARIABLE", "x")
    write("a.yml", "kafka")
    assert earshot("lint a.yml").code == 0
    assert values == {"a.yml": "x"}


BASE = """\
services:
  kafka:
    image: registry.example.com/kafka
    environment:
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_LISTENERS: PLAINTEXT://:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092
  app: {image: app, environment: {KAFKA_BROKERS: "kafka:9092"}}
"""


@pytest.mark.usefixtures("real_check")
def test_files_that_are_merged(earshot: Earshot) -> None:
    write("base.yml", BASE)
    write(
        "deploy/local.yml",
        "services:\n"
        "  kafka:\n"
        "    ports: ['9093:9092']\n"
        "    environment:\n"
        "      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9093\n",
    )
    code, output, _ = earshot("lint base.yml deploy/local.yml --format json")
    assert (code, places_in(output)) == (3, [])
    code, output, _ = earshot("lint -f base.yml -f deploy/local.yml --format json")
    assert (code, places_in(output)) == (1, [("KL015", "deploy/local.yml", 5)])


def of_image(image: str) -> str:
    return BASE.replace("registry.example.com/kafka", image)


OWN_PROFILE = BASE.replace("{image: app,", "{image: app, profiles: [app],").replace(
    "PLAINTEXT://kafka:9092", "PLAINTEXT://localhost:9092"
)


@pytest.mark.usefixtures("real_check")
@pytest.mark.parametrize(
    ("text", "options", "rules"),
    [
        # the release counts if the image has none
        (of_image("confluentinc/cp-kafka"), "", ["KL014"]),
        (of_image("confluentinc/cp-kafka"), "--kafka-version 3.9", []),
        (of_image("confluentinc/cp-kafka:latest"), "--kafka-version 4.1.1", ["KL014"]),
        (of_image("apache/kafka:${TAG}"), "", []),
        (of_image("apache/kafka:${TAG}"), "--kafka-version 3.9", []),
        (of_image("apache/kafka:${TAG}"), "--kafka-version 4.0", ["KL014"]),
        (of_image("apache/kafka:3.9.0"), "--kafka-version 4.0", []),
        # profiles that run
        (OWN_PROFILE, "", ["KL015"]),
        (OWN_PROFILE, "--profile app", ["KL015"]),
        (OWN_PROFILE, "--profile other --profile app", ["KL015"]),
        (OWN_PROFILE, "--profile *", ["KL015"]),
        (OWN_PROFILE, "--profile other", []),
    ],
)
def test_releases_and_profiles(text: str, options: str, rules: list[str], earshot: Earshot) -> None:
    write("a.yml", text)
    code, output, _ = earshot(f"lint a.yml --format json {options}")
    assert (code, rules_in(output)) == (int(bool(rules)), rules)


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ("", ["KL002", "KL017", "KL014"]),
        ("--select KL017,KL014", ["KL017", "KL014"]),
        ("--select KL017 --select kl014", ["KL017", "KL014"]),
        ("--ignore KL017", ["KL002", "KL014"]),
        ("--select KL017,KL014 --ignore KL014", ["KL017"]),
        ("--select KL018", []),
    ],
)
def test_which_rules_count(options: str, rules: list[str], earshot: Earshot) -> None:
    write("a.yml", "kafka KL002\nkafka KL017\nkafka KL014")
    code, output, _ = earshot(f"lint a.yml --format json {options}")
    assert (code, rules_in(output)) == (int(bool(rules)), rules)


FIXED = """\
services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
      KAFKA_LISTENERS: PLAINTEXT://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092  # for ui
  ui: {image: ui, environment: {KAFKA_BROKERS: "kafka:9092"}}
"""
MISTAKEN = FIXED.replace("PLAINTEXT://kafka:9092", "PLAINTEXT://localhost:9092")
DIFF = """\
--- a.yml
+++ a.yml (fixed)
@@ -10 +10 @@
-      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092  # for ui
+      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092  # for ui
"""


@pytest.mark.usefixtures("real_check")
class TestFix:
    def test_it_is_written_and_shown(self, earshot: Earshot) -> None:
        write("a.yml", MISTAKEN)
        Path("a.yml").chmod(0o640)
        summary = (0, f"{DIFF}\n{CLEAN}", "fixed: a.yml, 1 mistake\n")
        assert earshot("lint --fix a.yml") == summary
        status = Path("a.yml").stat()
        assert (Path("a.yml").read_text(), status.st_mode & 0o777) == (FIXED, 0o640)
        # a file without a mistake is not written again
        assert earshot("lint a.yml --fix").code == 0
        unchanged = Path("a.yml").stat()
        assert (unchanged.st_ino, unchanged.st_mtime_ns) == (status.st_ino, status.st_mtime_ns)

    @pytest.mark.parametrize("options", ["--diff", "--diff --fix"])
    def test_a_diff_writes_nothing(self, options: str, earshot: Earshot) -> None:
        write("a.yml", MISTAKEN)
        code, output, errors = earshot(f"lint a.yml {options} --format json")
        assert (code, errors) == (1, f"can be fixed: a.yml, 1 mistake\n{DIFF}\n")
        assert rules_in(output) == ["KL015"]
        assert Path("a.yml").read_text() == MISTAKEN

    @pytest.mark.parametrize("option", ["--ignore KL015", "--select KL014", "--profile p", ""])
    def test_a_mistake_that_does_not_count_is_not_fixed(
        self, option: str, earshot: Earshot
    ) -> None:
        text = MISTAKEN.replace("{image: ui,", "{image: ui, profiles: [other],")
        text = text if option else text.replace("# for ui", "# earshot: ignore=KL015 known")
        write("a.yml", text)
        assert earshot(f"lint a.yml --fix {option}").code == 0
        assert Path("a.yml").read_text() == text

    def test_before_anything_is_written_options_are_read(self, earshot: Earshot) -> None:
        write("a.yml", MISTAKEN)
        for options in (
            *("--baseline gone.json", "--select KL999", "--kafka-version x"),
            *("b.yml", "-f a.yml", "--nope", "--format xml"),
        ):
            assert earshot.refusal(f"lint a.yml --fix {options}").startswith("error: ")
        assert Path("a.yml").read_text() == MISTAKEN

    def test_an_unreadable_file_is_reported_once(self, earshot: Earshot) -> None:
        write("a.yml", "a: [kafka")
        code, _, errors = earshot("lint . --fix")
        assert (code, errors.count("a.yml")) == (2, 1)

    def test_other_files_are_fixed_beside_one_that_is_not(self, earshot: Earshot) -> None:
        write("docker-compose.override.yml", "services: {kafka: {restart: always}}")
        write("docker-compose.yml", MISTAKEN)
        write("kafka.yml", "a: [kafka")
        write("server.properties", "listeners=PLAINTEXT://:9092")
        write("z.yml", MISTAKEN)
        code, _, errors = earshot("lint . --fix")
        assert code == 2
        assert errors.startswith(
            "not fixed: docker-compose.yml: docker-compose.override.yml is merged into it; "
            "fix each by hand\nfixed: z.yml, 1 mistake\nerror: "
        )
        assert Path("docker-compose.yml").read_text() == MISTAKEN
        assert "PLAINTEXT://kafka" in Path("z.yml").read_text()

    def test_a_link_stays_a_link(self, earshot: Earshot) -> None:
        write("real/a.yml", MISTAKEN)
        Path("b.yml").symlink_to("real/a.yml")
        assert earshot("lint b.yml --fix").code == 0
        assert Path("b.yml").is_symlink() and Path("real/a.yml").read_text() == FIXED


def test_help_teaches_with_examples(earshot: Earshot) -> None:
    assert "Name the mistakes in Compose files" in earshot.output("--help")
    text = earshot.output("lint --help")
    assert "earshot lint docker-compose.yml" in text
    assert "# earshot: ignore=KL017 until=2027-01-31 a proxy publishes it" in text


@pytest.mark.parametrize(("formats", "modules"), [
    ("text", ("typer rich pydantic dns jinja2 asyncio ssl "
              "earshot.checks.remedies earshot.sources.kubernetes")),
    ("text json sarif junit markdown github",
     "pyspark py4j confluent_kafka pulumi jinja2 docker boto3"),
])  # fmt: skip
def test_nothing_heavy_is_loaded(formats: str, modules: str) -> None:
    write("a.yml", FIXED)
    command = [sys.executable, "-c", LOADING, formats, modules]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (completed.stderr, completed.stdout[: len(CLEAN)]) == ("", CLEAN)


@pytest.mark.parametrize(
    "options",
    [
        "--format json -o a.yml",
        "--write-baseline a.yml",
        "-o link.json",
        "--baseline known.json -o known.json",
    ],
)
def test_an_input_is_not_overwritten(options: str, earshot: Earshot) -> None:
    write("a.yml", "kafka KL017\n")
    Path("link.json").symlink_to("a.yml")
    assert earshot("lint a.yml --write-baseline known.json").code == 0
    assert earshot.refusal(f"lint a.yml {options}") == (
        f"error: output {options.split()[-1]}: is a file that is read\n  allowed: another file\n"
    )
    assert Path("a.yml").read_text() == "kafka KL017\n"


@pytest.mark.parametrize("option", ["--write-baseline", "--format=json --output"])
def test_another_file_is_replaced_only_by_force_and_an_earlier_report_without_it(
    option: str, earshot: Earshot
) -> None:
    write("a.yml", "kafka\n")
    Path("other.properties").write_text("a=1\n")
    line = f"lint a.yml {option} other.properties"
    error = "error: output other.properties: exists, and is not a "
    assert error in earshot.refusal(line)
    assert Path("other.properties").read_text() == "a=1\n"
    for force in ("--force", "--force", ""):
        assert earshot(f"{line} {force}").code == 0
    assert Path("other.properties").read_text().startswith("{")


def test_a_dash_is_stdout(earshot: Earshot) -> None:
    write("a.yml", "kafka\n")
    assert json.loads(earshot.output("lint a.yml --output - --format json"))
    assert not Path("-").exists()


def test_a_file_that_cannot_be_written_leaves_the_findings_on_stdout(earshot: Earshot) -> None:
    write("a.yml", "kafka KL003")
    write("file", "")
    code, output, errors = earshot("lint a.yml -o file/a.json")
    assert code == 2 and "KL003" in output and "cannot be written" in errors
