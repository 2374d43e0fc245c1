"""The containers that the commands of a CI job start.

A command keeps the line that it has in the file, so that a mistake can be shown there.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import yaml

from earshot.sources.docker_run import Started, started_containers
from earshot.sources.pod_variables import Keys
from earshot.sources.shell import Script, read_script
from earshot.yaml_reading.tags import key_text


def started_by(
    scripts: Sequence[tuple[Keys, Mapping[str, str]]],
    documents: Sequence[yaml.Node],
    lines: Sequence[str],
) -> Started:
    """The containers that ``scripts`` of a job start: their places in ``documents``, and variables.

    ``lines`` are those of the file. Each script is a shell of its own. Files beside the YAML file
    are not those of the job.
    """
    commands = [
        command
        for path, env in scripts
        for node in _scalar_at(documents, path)
        for command in read_script(_in_place(node, lines), environment=env).commands
    ]
    return started_containers(Script(tuple(commands)))


def _scalar_at(documents: Sequence[yaml.Node], path: Keys) -> Iterator[yaml.ScalarNode]:
    """The scalar at ``path``, if there is one."""
    node: object = documents
    for step in path:
        entries = node.value if isinstance(node, yaml.Node) else node
        if isinstance(node, yaml.MappingNode):
            pairs = {key_text(key): value for key, value in node.value}
            node = pairs.get(str(step))
        else:
            is_there = isinstance(step, int) and isinstance(entries, list) and step < len(entries)
            node = entries[step] if is_there else None  # type: ignore[index]
    if isinstance(node, yaml.ScalarNode):
        yield node


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
