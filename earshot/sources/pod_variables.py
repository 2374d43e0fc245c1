"""The variables of a pod's container; unknown values are `$(NAME)`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from earshot.listeners.placeholders import is_known
from earshot.sources.pod_scripts import assignments, without_assignments
from earshot.sources.values import as_map, list_of, text_in

Keys = tuple[int | str, ...]
"""A place in a file: the document, counted from 0, then keys and indices."""
NAME = "metadata.name"
"""The field with the pod's hostname."""
MAX_EXPANDED = 4_000
"""Characters of a value with references; longer ones are not expanded."""
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", re.ASCII)
_OF_SERVICE = re.compile(r"[A-Z0-9_]+_(?:SERVICE_(?:HOST|PORT)|PORT)(?:_.*)?", re.ASCII)
"""A variable for a Service, which Kubernetes sets before those of `env`."""
_SET_BY_SHELL = re.compile(r"\b([A-Za-z_][A-Za-z0-9_]*)\+?=", re.ASCII)
_UNSET_BY_SHELL = re.compile(r"\b(?:unset|env -u)((?:\s+-?[A-Za-z_][A-Za-z0-9_]*)+)", re.ASCII)


@dataclass(frozen=True)
class ConfigMap:
    path: Keys
    """Its place; empty if it is in another file."""
    data: Mapping[str, object]

    def place(self, key: str) -> Keys:
        """The place of a value in this file, or nothing."""
        return (*self.path, "data", key) if self.path else ()


class PodVariables:
    """The variables of one container, in the kubelet's order."""

    def __init__(
        self,
        namespace: str,
        maps: Mapping[tuple[str, str], ConfigMap],
        fields: Mapping[str, str] | None = None,
    ) -> None:
        """``fields`` are the known fields of the pod by path (`metadata.name`)."""
        self.values: dict[str, str] = {}
        self.places: dict[str, Keys] = {}
        self.unknown: list[str] = []
        self.at_run_time: set[str] = set()
        self._unset_references: dict[str, tuple[str, ...]] = {}
        self._namespace = namespace
        self._maps = maps
        self._fields = fields or {}

    def read(self, section: Mapping[str, object], path: Keys) -> None:
        for i, entry in enumerate(list_of(section.get("envFrom"))):
            source = as_map(entry)
            config_map = self._config_map(source.get("configMapRef"))
            if config_map is None:
                self.unknown.append("envFrom")
                continue
            prefix = text_in(source, "prefix")
            for key, value in config_map.data.items():
                self._set(prefix + key, value, config_map.place(key) or (*path, "envFrom", i))
        env = section.get("env")
        if env and not isinstance(env, list):
            self.unknown.append("env (no list)")
        for i, entry in enumerate(list_of(env)):
            variable = as_map(entry)
            if name := text_in(variable, "name"):
                self._set_variable(name, variable, (*path, "env", i))
            else:
                self.unknown.append(f"env[{i}] (no name)")

    def expand(self, text: str) -> str:
        """``text`` with `$(NAME)` replaced by the variables so far."""

        def value(match: re.Match[str]) -> str:
            return "$" if match[1] is None else self.values.get(match[1], match[0])

        if len(text) > MAX_EXPANDED:
            return text
        expanded = _REFERENCE.sub(value, text)
        return expanded if len(expanded) <= MAX_EXPANDED else text

    @property
    def early_references(self) -> dict[str, str]:
        """By variable: another one in its value that `env` only sets after it.

        Kubernetes does not replace such a reference.
        """
        return {
            name: reference
            for name, references in self._unset_references.items()
            for reference in references
            if reference in self.places and reference != name
        }

    def forget(self, command: str) -> None:
        """Marks the variables that a command sets or unsets as unknown."""
        names = set(_SET_BY_SHELL.findall(command))
        for unset_names in _UNSET_BY_SHELL.findall(command):
            names |= set(unset_names.split())
        for name in sorted(names):
            self.at_run_time.add(name)
            if name in self.values or name.startswith("KAFKA_"):
                self.values[name] = not_in_file(name)

    def run(self, words: tuple[str, ...]) -> tuple[str, ...]:
        """Applies the shell's assignments in ``words``; returns ``words`` without them."""
        env = {**self.values, "HOSTNAME": self._fields.get(NAME, "")}
        done: set[str] = set()
        for word in words if NAME in self._fields else ():
            for name, value in assignments(word, env).items():
                if value is not None and is_known(value):
                    self.values[name] = value
                    done.add(name)
        self.forget(" ".join(rest := tuple(without_assignments(word, done) for word in words)))
        return rest

    def _set_variable(self, name: str, variable: Mapping[str, object], path: Keys) -> None:
        source = as_map(variable.get("valueFrom"))
        if not source:
            value = variable.get("value")
            if isinstance(value, str):
                self._unset_references[name] = tuple(
                    reference
                    for reference in _REFERENCE.findall(value)
                    if reference
                    and reference not in self.values
                    and not _OF_SERVICE.fullmatch(reference)
                )
                value = self.expand(value)
            self._set(name, value, path)
            return
        path_of_field = text_in(as_map(source.get("fieldRef")), "fieldPath")
        if path_of_field in self._fields:
            self._set(name, self._fields[path_of_field], path)
            return
        if {"fieldRef", "resourceFieldRef"} & set(source):
            self.at_run_time.add(name)
        reference = as_map(source.get("configMapKeyRef"))
        config_map = self._config_map(reference)
        key = text_in(reference, "key")
        if config_map is None or key not in config_map.data:
            self._set(name, not_in_file(name), path)
            return
        self._set(name, config_map.data[key], config_map.place(key) or path)

    def _set(self, name: str, value: object, path: Keys) -> None:
        """Sets one variable: no value is an empty string, a value of another type is unknown."""
        self.values[name] = value if isinstance(value, str) else not_in_file(name) if value else ""
        self.places[name] = path

    def _config_map(self, reference: object) -> ConfigMap | None:
        return self._maps.get((self._namespace, text_in(as_map(reference), "name")))


def not_in_file(name: str) -> str:
    """The value of a variable whose value is not in the file."""
    return f"$({name})"
