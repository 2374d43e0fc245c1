"""`earshot lint` as it is typed: exit codes, messages, files written; the check is a double."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

import pytest

from earshot.cli import lint, run
from earshot.errors import EarshotError
from earshot.lint.check import check
from earshot.lint.model import FileOptions, FileReport, Mistake, Place
from earshot.rules.evaluate import RULES, rules_at
from earshot.rules.registry import AppliedAt, Severity
from tests.lint.samples import finding

KNOWN = ", ".join(rule.id for rule in RULES)
OF_FILES = ", ".join(rule.id for rule in rules_at(AppliedAt.FILE))
CLEAN = "1 file checked: 0 errors, 0 warnings\n"


def double(file: Path, variables: Mapping[str, str], said: FileOptions) -> FileReport:
    """Takes each line `kafka RULE` for an error of that rule, and `kafka? RULE` for a warning."""
    text = file.read_text()
    if "%" in text:
        raise EarshotError(str(file), observed="is no YAML", remedy="fix it")
    if "kafka" not in text:
        return FileReport(str(file), "", unchecked=("has nothing of Kafka",))
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        word, _, rule = line.partition("#")[0].strip().partition(" ")
        if rule:
            severity = Severity.WARNING if word == "kafka?" else Severity.ERROR
            place = Place(str(file), number, 1)
            found.append(Mistake(finding(rule, severity=severity), place))
    return FileReport(str(file), "Compose file", tuple(found))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(lint, "check", double)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def rules_in(text: str) -> list[str]:
    """The rules of mistakes that count, of a JSON document."""
    document = json.loads(text)
    mistakes = [item for file in document["files"] for item in file["mistakes"]]
    return [item["rule"] for item in mistakes if not item["ignored"]]


class TestExitCodes:
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
    def test_of_one_file(self, text: str, code: int) -> None:
        write("a.yml", text)
        assert run(["lint", "a.yml"]) == code

    @pytest.mark.parametrize("name", ["a.yml", "a.properties", "a.conf", "a.env.j2", "a"])
    def test_a_named_file_that_is_not_judged_is_3(
        self, name: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write(name, "rabbit")
        assert run(["lint", name]) == 3
        assert capsys.readouterr().out.splitlines()[-1] == (
            f"nothing to check; 1 not judged: {name} (has nothing of Kafka)"
        )
        assert run(["lint", "-f", name]) in (2, 3)  # with the check itself

    def test_a_mistake_elsewhere_goes_first(self) -> None:
        write("a.yml", "rabbit")
        write("b.yml", "kafka KL003")
        assert run(["lint", "a.yml", "b.yml"]) == 1

    def test_unrelated_files_may_be_skipped(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "rabbit")
        assert run(["lint", "a.yml", "--skip-unrelated"]) == 0
        assert capsys.readouterr().out.endswith("nothing to check; 1 passed over\n")

    def test_the_others_are_checked_beside_one_that_cannot_be_read(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", "kafka %")
        write("b.yml", "kafka KL003")
        assert run(["lint", ".", "--format", "json"]) == 2
        captured = capsys.readouterr()
        assert captured.err == "error: a.yml: is no YAML\n  fix: fix it\n"
        assert rules_in(captured.out) == ["KL003"]

    def test_without_a_path_it_is_wrong_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["lint"]) == 2
        assert capsys.readouterr().err == (
            "error: earshot lint: names no file\n  allowed: PATH..., or -f FILE\n"
        )

    def test_a_path_that_does_not_exist(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "kafka KL003")
        assert run(["lint", "a.yml", "b.yml"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == (
            "error: path b.yml: does not exist\n  allowed: a file or a folder\n"
        )

    def test_nothing_to_check_is_0_and_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["lint", "."]) == 0
        assert capsys.readouterr().out == "nothing to check\n"

    def test_what_was_passed_over_is_said(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "rabbit")
        write("b.yml", "listeners of others")
        write(".git/c.yml", "kafka")
        assert run(["lint", "."]) == 0
        assert capsys.readouterr().out == (
            "passed over\n"
            "- has nothing of Kafka (b.yml)\n"
            "- is a hidden folder (.git)\n"
            '- has neither "kafka" nor "listeners" in its first 1 MB (a.yml)\n'
            "\n"
            "nothing to check; 3 passed over\n"
        )


class TestOutput:
    def test_text_is_the_default(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "x\nkafka KL003")
        assert run(["lint", "a.yml"]) == 1
        captured = capsys.readouterr()
        assert captured.err == ""
        assert captured.out == (
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
        )

    @pytest.mark.parametrize(
        ("format", "begin"),
        [
            ("text", "a.yml (Compose file)\n"),
            ("json", '{\n  "version": 1,'),
            ("sarif", '{\n  "$schema": "https://docs.oasis-open.org/sarif/'),
            ("junit", '<?xml version="1.0"'),
            ("markdown", "# \N{CROSS MARK} earshot lint: 1 file checked: 1 error, 0 warnings\n"),
            ("github", "::error file=a.yml,line=1,col=1,title=KL003 "),
        ],
    )
    def test_formats(self, format: str, begin: str, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "kafka KL003")
        assert run(["lint", "a.yml", "--format", format]) == 1
        assert capsys.readouterr().out.startswith(begin)

    def test_files_get_the_format_of_their_suffix_and_stdout_the_text(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", "kafka KL003")
        names = ["o/a.sarif", "o/a.json", "o/a.xml", "o/a.md", "o/a.txt"]
        assert run(["lint", "a.yml", *(part for name in names for part in ("-o", name))]) == 1
        out = capsys.readouterr().out
        assert out.startswith("a.yml (Compose file)\n") and out == Path("o/a.txt").read_text()
        assert json.loads(Path("o/a.sarif").read_text())["version"] == "2.1.0"
        assert rules_in(Path("o/a.json").read_text()) == ["KL003"]
        assert ET.parse("o/a.xml").getroot().tag == "testsuites"
        assert Path("o/a.md").read_text().startswith("# ")

    def test_format_goes_before_suffix(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "kafka")
        assert run(["lint", "a.yml", "--format", "sarif", "--output", "a.json"]) == 0
        assert capsys.readouterr().out == CLEAN
        assert json.loads(Path("a.json").read_text())["version"] == "2.1.0"

    @pytest.mark.parametrize(
        ("arguments", "error"),
        [
            (
                ["-o", "x.y"],
                """--output x.y: its suffix names no format
  allowed: .txt, .json, .sarif, .xml, .md
  fix: name a --format""",
            ),
            (["-o", "d", "--format", "json"], "--output d: is a folder\n  allowed: a file"),
            (["--write-baseline", "d"], "--write-baseline d: is a folder\n  allowed: a file"),
            (["--select", "KL9"], f"--select: there is no rule KL9\n  allowed: {KNOWN}"),
            (
                ["--select", "KL017,KL011,KL003"],
                f"""--select: no file is checked by KL003, KL011
  allowed: {OF_FILES}
  fix: for a stack's plan run: earshot plan --check""",
            ),
            (["--ignore", "KL003,x"], f"--ignore: there is no rule X\n  allowed: {KNOWN}"),
            (
                ["--baseline", "no.json"],
                """--baseline no.json: cannot be read (No such file or directory)
  fix: earshot lint PATH --write-baseline no.json""",
            ),
        ],
    )
    def test_each_bad_option_has_its_message(
        self, arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", "kafka KL003")
        Path("d").mkdir()
        assert run(["lint", "a.yml", *arguments]) == 2
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", f"error: {error}\n")

    def test_a_bad_comment_is_told_of_its_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "kafka KL003 # earshot: ignore=KL9")
        assert run(["lint", "a.yml"]) == 2
        captured = capsys.readouterr()
        assert captured.err == (
            "error: a.yml, line 1, # earshot: ignore=KL9: there is no rule KL9\n"
            f"  allowed: {KNOWN}\n"
        )
        assert captured.out == (
            "could not be checked\n- a.yml\n\nnothing to check; 1 could not be checked\n"
        )

    def test_a_reader_that_goes_away_is_no_fault(self) -> None:
        Path("a.txt").write_text("x")
        child = subprocess.Popen(
            [sys.executable, "-m", "earshot", "lint", "."],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        errors = child.stderr.read()
        child.stderr.close()
        assert child.wait(60) == 0
        assert errors == b""


class TestRules:
    @pytest.mark.parametrize(
        ("arguments", "left"),
        [
            ([], ["KL002", "KL017", "KL014"]),
            (["--select", "KL017,KL014"], ["KL017", "KL014"]),
            (["--select", "KL017", "--select", "kl014"], ["KL017", "KL014"]),
            (["--ignore", "KL017"], ["KL002", "KL014"]),
            (["--select", "KL017,KL014", "--ignore", "KL014"], ["KL017"]),
            (["--select", "KL018"], []),
        ],
    )
    def test_which_count(
        self, arguments: list[str], left: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", "kafka KL002\nkafka KL017\nkafka KL014")
        assert run(["lint", "a.yml", "--format", "json", *arguments]) == int(bool(left))
        assert rules_in(capsys.readouterr().out) == left


class TestBaseline:
    def test_what_is_recorded_is_ignored(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "kafka KL003\nkafka KL006 # earshot: ignore=KL006 why")
        assert run(["lint", "a.yml", "--write-baseline", "b.json"]) == 0
        captured = capsys.readouterr()
        assert captured.err == "written: b.json, 1 mistake\n"
        assert captured.out == (
            "a.yml (Compose file)\n\n"
            "a.yml:1:1: KL003 ignored: in the baseline\n"
            "a.yml:2:1: KL006 ignored: why\n\n"
            "1 file checked: 0 errors, 0 warnings, 2 ignored\n"
        )
        write("a.yml", "\n\nkafka KL003\nkafka KL014")
        assert run(["lint", ".", "--baseline", "b.json", "--format", "json"]) == 1
        assert rules_in(capsys.readouterr().out) == ["KL014"]

    def test_one_is_brought_up_to_date_by_both_options(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", "kafka KL003\nkafka KL006")
        assert run(["lint", "a.yml", "--write-baseline", "b.json"]) == 0
        write("a.yml", "kafka KL006\nkafka KL014")
        both = ["--baseline", "b.json", "--write-baseline", "b.json"]
        assert run(["lint", "a.yml", *both]) == 0
        recorded = json.loads(Path("b.json").read_text())["mistakes"]
        assert [item["rule"] for item in recorded] == ["KL006", "KL014"]

    def test_a_file_that_cannot_be_checked_stays_an_error(self) -> None:
        write("a.yml", "%")
        assert run(["lint", "a.yml", "--write-baseline", "b.json"]) == 2
        assert run(["lint", "a.yml", "--baseline", "b.json"]) == 2


def test_the_check_gets_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, str] = {}

    def check(file: Path, variables: Mapping[str, str], said: FileOptions) -> FileReport:
        found[str(file)] = variables["EARSHOT_TEST_VARIABLE"]
        return FileReport(str(file), "Compose file")

    monkeypatch.setattr(lint, "check", check)
    monkeypatch.setenv("EARSHOT_TEST_VARIABLE", "x")
    write("a.yml", "kafka")
    assert run(["lint", "a.yml"]) == 0
    assert found == {"a.yml": "x"}


class TestWhatIsSaid:
    """With the check itself."""

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

    @pytest.fixture(autouse=True)
    def checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lint, "check", check)

    def places(self, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, int]]:
        document = json.loads(capsys.readouterr().out)
        return [
            (item["rule"], item["file"], item["line"])
            for file in document["files"]
            for item in file["mistakes"]
        ]

    @pytest.mark.parametrize(
        ("image", "version", "rules"),
        [
            ("confluentinc/cp-kafka", "", ["KL014"]),
            ("confluentinc/cp-kafka", "3.9", []),
            ("confluentinc/cp-kafka:latest", "4.1.1", ["KL014"]),
            ("apache/kafka:${TAG}", "", []),
            ("apache/kafka:${TAG}", "3.9", []),
            ("apache/kafka:${TAG}", "4.0", ["KL014"]),
            ("apache/kafka:3.9.0", "4.0", []),
        ],
    )
    def test_a_release_where_the_image_shows_none(
        self, image: str, version: str, rules: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", self.BASE.replace("registry.example.com/kafka", image))
        option = ["--kafka-version", version] if version else []
        assert run(["lint", "a.yml", "--format", "json", *option]) == int(bool(rules))
        assert [rule for rule, _, _ in self.places(capsys)] == rules

    @pytest.mark.parametrize("version", ["7.5", "4", "new", "3.9-rc1"])
    def test_what_is_no_release(self, version: str, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", self.BASE)
        assert run(["lint", "a.yml", "--kafka-version", version]) == 2
        assert capsys.readouterr().err == (
            f"error: --kafka-version {version}: names no release of Kafka\n"
            "  allowed: Kafka's own number, such as 2.8 or 3.9 (Confluent 7.x is Kafka 3.x)\n"
        )

    def test_files_that_are_laid_over_each_other(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("base.yml", self.BASE)
        write(
            "deploy/local.yml",
            "services:\n"
            "  kafka:\n"
            "    ports: ['9093:9092']\n"
            "    environment:\n"
            "      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9093\n",
        )
        assert run(["lint", "base.yml", "deploy/local.yml", "--format", "json"]) == 3
        assert self.places(capsys) == []
        together = ["lint", "-f", "base.yml", "-f", "deploy/local.yml", "--format", "json"]
        assert run(together) == 1
        assert self.places(capsys) == [("KL015", "deploy/local.yml", 5)]

    def test_profiles_that_run(self, capsys: pytest.CaptureFixture[str]) -> None:
        app = self.BASE.replace("{image: app,", "{image: app, profiles: [app],")
        write("a.yml", app.replace("PLAINTEXT://kafka:9092", "PLAINTEXT://localhost:9092"))
        command = ["lint", "a.yml", "--format", "json"]
        for profiles, rules in (
            ([], ["KL015"]),
            (["app"], ["KL015"]),
            (["other", "app"], ["KL015"]),
            (["*"], ["KL015"]),
            (["other"], []),
        ):
            options = [word for name in profiles for word in ("--profile", name)]
            assert run([*command, *options]) == int(bool(rules))
            assert [rule for rule, _, _ in self.places(capsys)] == rules


class TestFix:
    """With the check itself."""

    TEXT = """\
services:
  kafka:
    image: apache/kafka:4.1.1
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
      KAFKA_LISTENERS: PLAINTEXT://:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092  # for ui
  ui: {image: ui, environment: {KAFKA_BROKERS: "kafka:9092"}}
"""
    DIFF = """\
--- a.yml
+++ a.yml (fixed)
@@ -10 +10 @@
-      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:9092  # for ui
+      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka:9092  # for ui
"""

    @pytest.fixture(autouse=True)
    def checked(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lint, "check", check)

    def test_it_is_written_and_shown(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", self.TEXT)
        Path("a.yml").chmod(0o640)
        assert run(["lint", "--fix", "a.yml"]) == 0
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == (
            f"{self.DIFF}\n{CLEAN}",
            "fixed: a.yml, 1 mistake\n",
        )
        fixed = self.TEXT.replace("PLAINTEXT://localhost:9092", "PLAINTEXT://kafka:9092")
        assert Path("a.yml").read_text() == fixed
        assert Path("a.yml").stat().st_mode & 0o777 == 0o640

    def test_a_diff_writes_nothing(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", self.TEXT)
        assert run(["lint", "a.yml", "--diff", "--format", "json"]) == 1
        captured = capsys.readouterr()
        assert captured.err == f"can be fixed: a.yml, 1 mistake\n{self.DIFF}\n"
        assert rules_in(captured.out) == ["KL015"]
        assert Path("a.yml").read_text() == self.TEXT

    @pytest.mark.parametrize(
        "options", [["--ignore", "KL015"], ["--select", "KL014"], ["--profile", "p"], []]
    )
    def test_what_does_not_count_is_left(
        self, options: list[str], capsys: pytest.CaptureFixture[str]
    ) -> None:
        text = self.TEXT.replace("{image: ui,", "{image: ui, profiles: [other],")
        text = text if options else text.replace("# for ui", "# earshot: ignore=KL015 known")
        write("a.yml", text)
        assert run(["lint", "a.yml", "--fix", *options]) == 0
        assert Path("a.yml").read_text() == text

    def test_before_anything_is_written_options_are_read(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("a.yml", self.TEXT)
        for options in (
            ["--baseline", "gone.json"],
            ["--select", "KL999"],
            ["--kafka-version", "x"],
            ["b.yml"],
            ["-f", "a.yml"],
            ["--nope"],
            ["--format", "xml"],
        ):
            assert run(["lint", "a.yml", "--fix", *options]) == 2, options
            assert capsys.readouterr().err.startswith("error: ")
        assert Path("a.yml").read_text() == self.TEXT

    def test_what_cannot_be_read_is_told_once(self, capsys: pytest.CaptureFixture[str]) -> None:
        write("a.yml", "a: [kafka")
        assert run(["lint", ".", "--fix"]) == 2
        assert capsys.readouterr().err.count("a.yml") == 1

    def test_what_is_not_fixed_keeps_no_other_file_from_it(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        write("docker-compose.override.yml", "services: {kafka: {restart: always}}")
        write("docker-compose.yml", self.TEXT)
        write("kafka.yml", "a: [kafka")
        write("server.properties", "listeners=PLAINTEXT://:9092")
        write("z.yml", self.TEXT)
        assert run(["lint", ".", "--fix"]) == 2
        assert capsys.readouterr().err.startswith(
            "not fixed: docker-compose.yml: docker-compose.override.yml is merged into it; "
            "fix each by hand\nfixed: z.yml, 1 mistake\nerror: "
        )
        assert Path("docker-compose.yml").read_text() == self.TEXT
        assert "PLAINTEXT://kafka" in Path("z.yml").read_text()

    def test_a_file_without_a_mistake_is_not_written_again(self) -> None:
        write("a.yml", self.TEXT.replace("PLAINTEXT://localhost:9092", "PLAINTEXT://kafka:9092"))
        before = Path("a.yml").stat()
        assert run(["lint", "a.yml", "--fix"]) == 0
        after = Path("a.yml").stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)

    def test_a_link_stays_a_link(self) -> None:
        write("real/a.yml", self.TEXT)
        Path("b.yml").symlink_to("real/a.yml")
        assert run(["lint", "b.yml", "--fix"]) == 0
        assert Path("b.yml").is_symlink() and "PLAINTEXT://kafka" in Path("real/a.yml").read_text()


def test_a_wrong_option_is_told_as_other_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "--format", "xml", "a.yml"]) == 2
    assert capsys.readouterr().err == (
        "error: earshot lint: argument --format: invalid choice: 'xml' "
        "(choose from 'text', 'json', 'sarif', 'junit', 'markdown', 'github')\n"
        "  fix: see earshot lint --help\n"
    )


def test_the_help_of_all_commands_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    assert "Name the mistakes in Compose files" in capsys.readouterr().out


def test_a_file_is_checked_without_the_libraries_of_other_commands() -> None:
    program = (
        "import sys\n"
        "from earshot.cli import run\n"
        "assert run(['lint', '.']) == 0\n"
        "slow = {'typer', 'rich', 'pydantic', 'dns', 'jinja2', 'asyncio', 'ssl'}\n"
        "slow |= {'earshot.checks.remedies', 'earshot.sources.kubernetes'}\n"
        "sys.exit(' '.join(slow & set(sys.modules)) or None)\n"
    )
    write("a.yml", TestFix.TEXT.replace("localhost:9092", "kafka:9092"))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", CLEAN)


def test_help_teaches_with_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lint", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "earshot lint docker-compose.yml" in shown
    assert "# earshot: ignore=KL017 until=2027-01-31 a proxy publishes it" in shown


def test_nothing_heavy_is_loaded() -> None:
    program = (
        "import sys\n"
        "from earshot.cli import run\n"
        "for format in ('text', 'json', 'sarif', 'junit', 'markdown', 'github'):\n"
        "    assert run(['lint', '.', '--format', format]) == 0\n"
        "heavy = {'pyspark', 'py4j', 'confluent_kafka', 'pulumi', 'jinja2', 'docker', 'boto3'}\n"
        "sys.exit(' '.join(heavy & set(sys.modules)) or None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    "options",
    [["--format", "json", "-o", "a.yml"], ["--write-baseline", "a.yml"], ["-o", "link.json"]],
)
def test_a_file_that_is_checked_is_not_written_over(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.yml", "kafka KL017\n")
    Path("link.json").symlink_to("a.yml")
    assert run(["lint", "a.yml", *options]) == 2
    out, error = capsys.readouterr()
    assert (out, error) == (
        "",
        f"error: output {options[-1]}: is a file that is read\n  allowed: another file\n",
    )
    assert Path("a.yml").read_text() == "kafka KL017\n"


def test_a_baseline_is_not_written_over_by_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yml", "kafka KL017\n")
    assert run(["lint", "a.yml", "--write-baseline", "known.json"]) == 0
    capsys.readouterr()
    assert run(["lint", "a.yml", "--baseline", "known.json", "-o", "known.json"]) == 2
    assert capsys.readouterr().err == (
        "error: output known.json: is a file that is read\n  allowed: another file\n"
    )


def test_an_earlier_report_is_written_over(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yml", "kafka KL017\n")
    for _ in (1, 2):
        assert run(["lint", "a.yml", "-o", "a.json"]) == 1
        assert "KL017" in Path("a.json").read_text()
        write("a.yml", "kafka KL017\nother\n")


@pytest.mark.parametrize("option", ["--write-baseline", "--format=json --output"])
def test_a_file_of_others_is_replaced_by_force_alone(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write("a.yml", "kafka\n")
    Path("other.properties").write_text("a=1\n")
    command = ["lint", "a.yml", *option.split(), "other.properties"]
    assert run(command) == 2
    assert "error: output other.properties: exists, and is not a " in capsys.readouterr().err
    assert Path("other.properties").read_text() == "a=1\n"
    for _ in (1, 2):
        assert run([*command, "--force"]) == 0
    assert Path("other.properties").read_text().startswith("{")


def test_a_baseline_is_replaced_by_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yml", "kafka\n")
    for _ in (1, 2):
        assert run(["lint", "a.yml", "--write-baseline", "known.json"]) == 0


def test_a_dash_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    write("a.yml", "kafka\n")
    assert run(["lint", "a.yml", "--output", "-", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert not Path("-").exists()


def test_a_file_that_cannot_be_written_leaves_the_findings_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write("a.yml", "kafka KL003")
    write("file", "")
    assert run(["lint", "a.yml", "-o", "file/a.json"]) == 2
    captured = capsys.readouterr()
    assert "KL003" in captured.out and "cannot be written" in captured.err
