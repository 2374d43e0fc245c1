"""The containers of an ECS task, from its `containerDefinitions`.

Secrets and files in S3 are unknown. Source: the ECS API reference, ContainerDefinition.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from earshot.listeners.images import spellings
from earshot.sources.service import Service
from earshot.sources.values import as_map, list_of
from earshot.sources.workloads import free_name
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
    """The containers in ``text``, the JSON of the list. Raises ValueError for invalid JSON."""
    try:
        return task_containers(json.loads(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def task_containers(definitions: object) -> tuple[TaskContainer, ...]:
    """The containers in a list of definitions, without malformed ones.

    The second container of one name is called `NAME#2`.
    """
    used_names: set[str] = set()
    return tuple(
        _container(
            free_name(str(definition.get("name") or i), used_names),
            definition,
            f"containerDefinitions[{i}]",
        )
        for i, definition in enumerate(list_of(definitions))
        if isinstance(definition, Mapping)
    )


def _container(name: str, definition: Mapping[str, object], path: str) -> TaskContainer:
    env: dict[str, str] = {}
    places: dict[str, str] = {}
    unknown = ["environmentFiles"] if definition.get("environmentFiles") else []
    is_open = False
    for key, value_key in (("environment", "value"), ("secrets", "valueFrom")):
        entries = list_of(definition.get(key))
        # null where Terraform computes it
        is_open |= None in entries or definition.get(key, entries) is None
        for i, entry in enumerate(map(as_map, entries)):
            variable, value = str(entry.get("name") or ""), entry.get(value_key)
            is_text = key == "environment" and isinstance(value, str)
            env[variable] = str(value) if is_text else f"${{{variable}}}"
            places[variable] = f"{path}.{key}[{i}]"
    container = Container(
        name,
        image=str(definition.get("image") or ""),
        env=env,
        mounts=tuple(
            str(mount.get("containerPath") or "")
            for mount in map(as_map, list_of(definition.get("mountPoints")))
        ),
        unknown=(*unknown, *(["variables"] if is_open else [])),
    )
    words = (*list_of(definition.get("entryPoint")), *list_of(definition.get("command")))
    return TaskContainer(Service(name, container, tuple(map(str, words))), path, places)
