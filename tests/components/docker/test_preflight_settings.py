"""What a container is asked of settings: the script runs here, with a stand-in for its Java."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from earshot_pulumi.docker import preflight, throwaway

CLIENT: Any = None
JAVA = """\
#!/bin/sh
for last; do :; done
! grep -q refused "$last" ||
    echo "org.apache.kafka.common.config.ConfigException: $(cat "$last")" >&2
"""


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables that an image itself has; what is asked of it runs on this machine."""
    (tmp_path / "libs").mkdir()
    (tmp_path / "java").write_text(JAVA)
    (tmp_path / "java").chmod(0o755)
    own = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TMPDIR": str(tmp_path)}

    def ask(
        _client: object, _image: str, command: list[str], environment: Mapping[str, str]
    ) -> str:
        *words, script = command
        script = script.replace("/opt/kafka/", f"{tmp_path}/")
        return subprocess.run(
            [*words, script],
            env=own | dict(environment),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    monkeypatch.setattr(throwaway, "ask", ask)
    return own


def test_each_node_s_refusal_is_told_by_its_id(image: dict[str, str]) -> None:
    settings = {1: "a=1\n", 2: "refused=2\n", 10: "refused=10\n", 101: "b=1\n", 3: "c=1\n"}
    assert preflight.refusals(CLIENT, "i", settings) == {2: "refused=2", 10: "refused=10"}


@pytest.mark.parametrize("there", [["storage.jsa"], ["kafka.jsa"], ["kafka.jsa", "storage.jsa"]])
def test_java_starts_with_the_archive_of_classes_that_the_image_has(
    image: dict[str, str], tmp_path: Path, there: list[str]
) -> None:
    for name in there:
        (tmp_path / name).touch()
    assert f"-XX:SharedArchiveFile={tmp_path / there[-1]} " in started_with(tmp_path)


def test_where_an_image_has_none_its_java_gets_no_option_that_old_ones_do_not_know(
    image: dict[str, str], tmp_path: Path
) -> None:
    words = started_with(tmp_path).split()
    assert [it for it in words if it.startswith("-X")] == [
        "-Xmx96m",
        "-XX:+UseSerialGC",
        "-XX:TieredStopAtLevel=1",
    ]


def started_with(folder: Path) -> str:
    """The words that Java gets."""
    (folder / "java").write_text(f'#!/bin/sh\necho "$@" >{folder}/words\n')
    assert preflight.refusals(CLIENT, "i", {1: "a=1\n"}) == {}
    return (folder / "words").read_text()


def test_the_image_s_own_variables_are_no_settings(image: dict[str, str]) -> None:
    image |= {"NODE_ID": "refused", "NODE_VERSION": "refused", "NODE_9": "refused"}
    assert preflight.refusals(CLIENT, "i", {1: "a=1\n"}) == {}
