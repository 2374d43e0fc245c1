"""The containers of an ECS task, from the JSON of `aws.ecs.TaskDefinition`.

Secrets and files in S3 are unknown. Source: the ECS API reference, ContainerDefinition.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from earshot.listeners.images import spellings
from earshot.sources.compose import Service
from earshot.topology.container import Container


@dataclass(frozen=True)
class TaskContainer:
    """One container of a task; ``path`` is its place, ``variables`` the place of each variable."""

    service: Service
    path: str
    variables: Mapping[str, str]

    def place(self, names: Iterable[str]) -> str:
        """The place of the first of ``names``: broker properties, variables, keys."""
        for name in names:
            for variable in sorted(spellings(name) & set(self.variables)):
                return self.variables[variable]
            if name == "image":
                return f"{self.path}.image"
        return self.path


def read_task(text: str) -> tuple[TaskContainer, ...]:
    """The containers in ``text``, without malformed ones. Raises ValueError for invalid JSON.

    The second container of one name is called `NAME#2`.
    """
    try:
        listed = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    found: dict[str, TaskContainer] = {}
    for i, item in enumerate(listed if isinstance(listed, list) else ()):
        if not isinstance(item, Mapping):
            continue
        own = str(item.get("name") or i)
        number = sum(name.partition("#")[0] == own for name in found) + 1
        name = own if number == 1 else f"{own}#{number}"
        found[name] = _container(name, item, f"containerDefinitions[{i}]")
    return tuple(found.values())


def _container(name: str, item: Mapping[str, object], path: str) -> TaskContainer:
    env: dict[str, str] = {}
    places: dict[str, str] = {}
    for key, what in (("environment", "value"), ("secrets", "valueFrom")):
        for i, entry in enumerate(_maps(item.get(key))):
            variable, value = str(entry.get("name") or ""), entry.get(what)
            known = key == "environment" and isinstance(value, str)
            env[variable] = str(value) if known else f"${{{variable}}}"
            places[variable] = f"{path}.{key}[{i}]"
    container = Container(
        name,
        image=str(item.get("image") or ""),
        env=env,
        mounts=tuple(str(it.get("containerPath") or "") for it in _maps(item.get("mountPoints"))),
        unknown=("variables",) if item.get("environmentFiles") else (),
    )
    words = tuple(
        str(word)
        for key in ("entryPoint", "command")
        if isinstance(listed := item.get(key), list)
        for word in listed
    )
    return TaskContainer(Service(name, container, words), path, places)


def _maps(value: object) -> Iterator[Mapping[str, object]]:
    return (
        item if isinstance(item, Mapping) else {}
        for item in (value if isinstance(value, list) else ())
    )
