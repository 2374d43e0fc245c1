"""The Pulumi project on disk: where its stack files and the state of its stacks lie."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from earshot.errors import EarshotError
from earshot.spec.document import Spec, read_spec

PROJECT_FILE = "Pulumi.yaml"
CLUSTER_KEY = "earshot:cluster"
_STACK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
LARGEST = 100_000
"""Values that a YAML file may hold once every alias stands for what it repeats."""


@dataclass(frozen=True)
class Project:
    """One checkout with a `Pulumi.yaml`; nothing is read before it is asked for."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project that ``start`` (default: the current folder) lies in. Raises EarshotError."""
        folder = (start or Path.cwd()).absolute()
        for candidate in (folder, *folder.parents):
            if (candidate / PROJECT_FILE).is_file():
                return cls(candidate)
        raise EarshotError(
            f"folder {folder}",
            observed=f"neither it nor a folder above it holds a {PROJECT_FILE}",
            remedy="change into the project's folder, or name a --contract or --bootstrap instead",
        )

    @property
    def stack_folder(self) -> Path:
        """Where stack files lie: `stackConfigDir` of Pulumi.yaml, or beside it."""
        document = _read_yaml(self.root / PROJECT_FILE, PROJECT_FILE)
        named = document.get("stackConfigDir", ".") if isinstance(document, Mapping) else None
        if not isinstance(named, str):
            raise EarshotError(
                f"{PROJECT_FILE}: stackConfigDir",
                observed=f"found {named!r}" if named is not None else "the file holds no settings",
                allowed="a folder, as text",
            )
        return self.root / named

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that have a file, sorted."""
        files = self.stack_folder.glob("Pulumi.*.yaml")
        return tuple(sorted(path.name[len("Pulumi.") : -len(".yaml")] for path in files))

    def stack_file(self, stack: str) -> Path:
        """Where the file of ``stack`` belongs, whether or not it exists."""
        return self.stack_folder / f"Pulumi.{stack_name(stack)}.yaml"

    def read_cluster(self, stack: str) -> Spec:
        """The cluster that the file of ``stack`` describes.

        Raises EarshotError for a file that is missing or holds no `earshot:cluster`, and
        SpecError with every problem of a cluster that is described wrongly.
        """
        path = self.stack_file(stack)
        shown = self._shown(path)
        if not path.exists():
            raise EarshotError(
                f"stack {stack_name(stack)}",
                observed=f"{shown} does not exist",
                allowed=f"stacks with a file: {', '.join(self.stacks) or 'none yet'}",
                remedy=f"copy one of them to {shown}, or name another --stack",
            )
        document = _read_yaml(path, shown)
        config = document.get("config") if isinstance(document, Mapping) else None
        if isinstance(config, Mapping) and CLUSTER_KEY in config:
            return read_spec(config[CLUSTER_KEY], f"{shown}, {CLUSTER_KEY}")
        raise EarshotError(
            shown,
            observed=_missing(document, config),
            allowed=f"a map with `config:`, and in it `{CLUSTER_KEY}:`",
            remedy=self._example(stack_name(stack)),
        )

    def state_dir(self, stack: str) -> Path:
        """Where earshot keeps what belongs to ``stack`` on this machine; never under git."""
        return self.root / ".earshot" / "stacks" / stack_name(stack)

    def contract_file(self, stack: str) -> Path:
        """The contract as the last update wrote it."""
        return self.state_dir(stack) / "contract.json"

    def report_file(self, stack: str) -> Path:
        """The report of the last validation, as JSON."""
        return self.state_dir(stack) / "report.json"

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def _example(self, stack: str) -> str:
        others = [name for name in self.stacks if name != stack]
        files = [self._shown(self.stack_file(name)) for name in others]
        return f"see {', '.join(files)} for an example" if files else ""


def stack_name(stack: str) -> str:
    """The bare name of ``stack``, which may be written `organization/project/stack`.

    Raises EarshotError for what Pulumi would not take as a stack's name.
    """
    parts = stack.split("/")
    if len(parts) > 3 or not all(map(_STACK.fullmatch, parts)):
        raise EarshotError(
            f"stack {stack!r}" if len(stack) <= 120 else f"stack {stack[:100]!r}...",
            observed="is no stack's name",
            allowed="up to 100 letters, digits, hyphens, underscores and dots, beginning with a "
            "letter or digit; also organization/project/stack",
        )
    return parts[-1]


class _Loader(yaml.SafeLoader):
    """YAML as Pulumi reads it: a key that stands twice in one map is an error, and so are
    aliases that repeat so much that nobody could print it."""

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _size(node, {}) > LARGEST:
            raise yaml.MarkedYAMLError(
                problem=f"its aliases (*name) repeat more than {LARGEST:,} values",
                problem_mark=node.start_mark,
            )
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {key.value!r} stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _size(node: yaml.Node, sizes: dict[int, float]) -> float:
    """Values in ``node``, those of an alias counted wherever it stands; none within itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in sizes:
        sizes[id(node)] = 0
        pairs = isinstance(node, yaml.MappingNode)
        below = [part for pair in node.value for part in pair] if pairs else node.value
        sizes[id(node)] = 1 + sum(_size(part, sizes) for part in below)
    return sizes[id(node)]


def _read_yaml(path: Path, shown: str) -> object:
    try:
        text = path.read_bytes().decode("utf-8")
        return yaml.load(text, _Loader)  # a SafeLoader
    except OSError as reason:
        raise EarshotError(shown, observed=f"cannot be read ({reason.strerror})") from None
    except UnicodeDecodeError as reason:
        observed = f"is no UTF-8 text (byte 0x{reason.object[reason.start]:02x} at {reason.start})"
        raise EarshotError(shown, observed=observed, allowed="a YAML file") from None
    except RecursionError:
        raise EarshotError(shown, observed="is nested too deeply", allowed="a YAML file") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise EarshotError(
            shown,
            observed=f"is no YAML; {where}{error.problem or error.context}",
            remedy="mend that line (indent with blanks, never with tabs)",
        ) from None
    except (yaml.YAMLError, ValueError) as error:
        # a control character has no line of its own; a date such as 2024-99-99 is a ValueError
        message = str(error).splitlines()[0].partition("; use sys.")[0]
        raise EarshotError(
            shown, observed=f"is no YAML ({message})", allowed="a YAML file"
        ) from None


def _missing(document: object, config: object) -> str:
    if document is None:
        return "is empty"
    if not isinstance(document, Mapping):
        return f"holds {_kind(document)} instead of a map"
    if "config" not in document:
        return "has no `config:`"
    if not isinstance(config, Mapping):
        return f"`config:` holds {_kind(config)} instead of a map"
    keys = ", ".join(map(str, config)) or "nothing"
    return f"`config:` holds {keys}, and no `{CLUSTER_KEY}`"


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
