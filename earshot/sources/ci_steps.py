"""The containers that the commands of a CI job start.

A command keeps the line that it has in the file, so that a mistake can be shown there.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import yaml

from earshot.sources.docker_run import StartedContainers, started_containers
from earshot.sources.pod_variables import Keys
from earshot.sources.shell import Script, read_script
from earshot.yaml_reading.nodes import entry_at


def scripts_of(
    scripts: Sequence[tuple[Keys, Mapping[str, str]]],
    documents: Sequence[yaml.Node],
    lines: Sequence[str],
) -> Sequence[Script]:
    """The ``scripts`` of a job, each a shell of its own: their places in ``documents``, and
    variables. ``lines`` are those of the file."""
    return [
        read_script(_in_place(entry[1], lines), environment=env)
        for path, env in scripts
        if (entry := entry_at(documents, path)) and isinstance(entry[1], yaml.ScalarNode)
    ]


def started_by(scripts: Sequence[Script]) -> StartedContainers:
    """The containers that ``scripts`` of a job start. Files beside the YAML file are not those of
    the job."""
    return started_containers(Script(tuple(each for one in scripts for each in one.commands)))


def _in_place(node: yaml.ScalarNode, lines: Sequence[str]) -> str:
    """The value of a scalar, each of its lines at its number in the file."""
    first = node.start_mark.line
    if node.style not in ("|", ">"):
        return "\n" * first + str(node.value).replace("\\\n", " ").replace("\n", "; ")
    rest = lines[first + 1 :]
    indent = next((len(line) - len(line.lstrip()) for line in rest if line.strip()), 0)
    block = takewhile(lambda line: not line[:indent].strip(), rest)
    body = [line[indent:] for line in block]
    if node.style == ">":
        pairs = zip(body, [*body[1:], ""], strict=True)
        body = [f"{line} \\" if _is_folded(line, following) else line for line, following in pairs]
    return "\n" * (first + 1) + "\n".join(body)


def _is_folded(line: str, following: str) -> bool:
    """Whether YAML joins two lines of a folded text."""
    return not (line[:1] in ("", " ") or following[:1] in ("", " ") or line.endswith("\\"))
