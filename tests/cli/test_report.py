"""`earshot report`: reports that are shown again, merged and written in other formats."""

from pathlib import Path

import pytest

from earshot.project import Project
from earshot.report.json import json as as_json
from earshot.report.json import read_report
from tests.cli.command import Earshot
from tests.report import samples

PASSED = as_json(samples.all_pass())


def save(project: Project, text: str) -> Path:
    """The file of the stack's report, with this text."""
    file = project.report_file("local")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("name", "code"), [("all_pass", 0), ("dead_broker", 1), ("inconclusive", 3)]
)
def test_the_exit_code_is_the_verdict(
    name: str, code: int, project: Project, earshot: Earshot
) -> None:
    save(project, as_json(samples.ALL[name]()))
    result = earshot("report --stack local")
    assert (result.code, result.out[:8]) == (code, "earshot ")


def test_reports_of_hostile_size_are_one_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, earshot: Earshot
) -> None:
    monkeypatch.setattr("earshot.cli.report.MAX_CELLS", 10)
    file = save(project, PASSED)
    assert "have 12 cells" in earshot.refusal(f"report {file} {file}")
    text = '{"kind": "doctor", "run": "r", "cluster": "c", "started": 0, "seconds": 0, '
    file.write_text(text + '"cells": [' + "{}," * 60_000 + "{}]}")
    assert len(earshot.refusal(f"report {file}")) < 4000


def test_a_report_is_not_overwritten_by_itself(project: Project, earshot: Earshot) -> None:
    file = save(project, PASSED)
    for words in ("--stack local", str(file)):
        assert earshot.refusal(f"report {words} -o {file}") == (
            f"error: output {file}: is a file that is read\n  allowed: another file\n"
        )
    assert file.read_text() == PASSED


@pytest.mark.parametrize("name", ["server.properties", "README.md"])
def test_a_file_that_is_no_report_is_replaced_only_by_force(
    name: str, project: Project, earshot: Earshot
) -> None:
    save(project, PASSED)
    (project.root / name).write_text("listeners=A://:1\n")
    line = f"report --stack local --format json -o {name}"
    assert earshot.refusal(line) == (
        f"error: output {name}: exists, and is not a report of earshot\n"
        "  allowed: a new file, or a report of earshot\n"
        "  fix: name another file, or add --force to replace this one\n"
    )
    assert Path(name).read_text() == "listeners=A://:1\n"
    assert earshot(f"{line} --force").code == 0
    assert Path(name).read_text() == PASSED


def test_an_earlier_report_is_replaced(project: Project, earshot: Earshot) -> None:
    save(project, PASSED)
    Path("r.json").write_text(as_json(samples.dead_broker()))
    assert earshot("report --stack local -o r.json").code == 0
    assert Path("r.json").read_text() == PASSED


def test_a_dash_is_stdout_in_the_format_of_the_option(project: Project, earshot: Earshot) -> None:
    save(project, PASSED)
    assert earshot("report --stack local -o -").out.startswith("earshot ")
    assert earshot("report --stack local -o - --format json -o r.json").out == PASSED
    assert Path("r.json").read_text() == PASSED
    assert not Path("-").exists()


def test_several_files_become_one(project: Project, earshot: Earshot) -> None:
    file = save(project, PASSED)
    cells = samples.healthy_cells("container")
    Path("two.json").write_text(as_json(samples.report(cells, vantages=[])))
    output = earshot.output(f"report {file} two.json --format json")
    report = read_report(output, "stdout")
    assert {cell.vantage for cell in report.cells} == {"host", "container"}


def test_the_format_is_that_of_the_option_or_of_the_suffix(
    project: Project, earshot: Earshot
) -> None:
    save(project, as_json(samples.drift()))
    code, output, _ = earshot("report -s local -o a/junit.xml -o page.html")
    assert (code, output[:21]) == (1, "earshot doctor: FAIL,")
    assert Path("a/junit.xml").read_text().startswith("<?xml")
    assert Path("page.html").read_text().startswith("<!doctype html>")
    assert earshot("report -s local -o report.txt -f json").code == 1
    assert read_report(Path("report.txt").read_text(), "file").cells


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("line", "observed"),
    [
        ("report", "neither --stack nor a file"),
        ("report -s local", "has no report yet"),
        ("report nowhere.json", "cannot be read (No such file or directory)"),
        ("report Pulumi.yaml", "is not JSON"),
        ("report s3://bucket", "s3://bucket: is no object's URL"),
        ("report -s local -o x.y", "its suffix names no format"),
        ("report -s local -o stacks -f json", "is a folder"),
    ],
)
def test_each_fault_has_its_message(line: str, observed: str, earshot: Earshot) -> None:
    assert observed in earshot.refusal(line)


def test_a_file_that_cannot_be_written(project: Project, earshot: Earshot) -> None:
    save(project, as_json(samples.drift()))
    code, _, errors = earshot("report -s local -o Pulumi.yaml/report.json")
    assert code == 2 and "cannot be written" in errors
