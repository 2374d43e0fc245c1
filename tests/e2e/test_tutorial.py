"""Every command of docs/tutorial.md, in its order, on a stack with free ports."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from earshot.project import Project
from tests.e2e.ports import free_ports
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.combination, pytest.mark.timeout(900)]
PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```(sh|yaml|)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def stack() -> Iterator[str]:
    """A stack of this checkout, from the template, with ports that are free."""
    name = f"local-tutorial-e2e-{os.getpid()}"
    file = Project(ROOT).stack_file(name)
    text = Project(ROOT).stack_file("local").read_text()
    for port in ("19092", "29092", "9092"):
        text = re.sub(rf"port: {port}\b", f"port: {free_ports(3)[0]}", text)
    file.write_text(text)
    yield name
    clean_command = ["make", "clean", f"STACK={name}"]
    subprocess.run(clean_command, cwd=ROOT, check=True, capture_output=True, timeout=300)
    file.unlink()


def test_every_command_does_what_the_page_says(stack: str, tmp_path: Path) -> None:
    replacements = {
        "local-tutorial": stack,
        "compose.yml": str(tmp_path / "compose.yml"),
        "19192": str(free_ports(3)[0]),
    }
    blocks = BLOCK.findall(PAGE.read_text())
    (compose,) = (text for kind, text in blocks if kind == "yaml")
    (tmp_path / "compose.yml").write_text(compose)
    output = ""
    shell = 'eval "$(make -s env)"; exec 2>&1; '
    for command in (line for kind, text in blocks if kind == "sh" for line in text.splitlines()):
        must_fail = command.endswith("# fails")
        for word, replacement in replacements.items():
            command = command.replace(word, replacement)
        completed = subprocess.run(
            ["bash", "-c", shell + command], cwd=ROOT, capture_output=True, text=True, timeout=600
        )
        output += completed.stdout
        assert (completed.returncode != 0) == must_fail, (
            f"{command}\n{completed.stdout}{completed.stderr}"
        )
    for kind, text in blocks:
        if kind == "":
            output = output.replace(stack, "local-tutorial")
            for line in text.splitlines():
                page_words = re.sub(r"[\d.]+ ms", "", line).split()
                assert all(word in output for word in page_words), line
