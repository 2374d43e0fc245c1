"""The Pulumi project on disk: its stack files, and the folders with the state of its stacks."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from earshot.errors import EarshotError
from earshot.files import umask
from earshot.files.reading import content_of, read_bytes
from earshot.files.stack_files import PRIVATE, current_folder, own_or_templates, stack_name
from earshot.listeners.security import FOLDER, VALIDATOR_FILE
from earshot.yaml_reading.document import read_yaml

if TYPE_CHECKING:
    from earshot.config.document import Spec

PROJECT_FILE = "Pulumi.yaml"
CLUSTER_KEY = "earshot:cluster"
POLICIES = Path("policies/config")
"""The folder with the configuration of gate and policy pack, a file per stack or template."""


@dataclass(frozen=True)
class Project:
    """One checkout with a `Pulumi.yaml`; files are read on demand."""

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project of the folder ``start`` (default: the current one). Raises EarshotError."""
        folder = (start or current_folder()).absolute()
        if (project := cls._above(folder)) is not None:
            return project
        observed = f"neither it nor a folder above it holds a {PROJECT_FILE}"
        remedy = "change into the project's folder, or name a --contract or --bootstrap instead"
        raise EarshotError(f"folder {folder}", observed=observed, remedy=remedy)

    @classmethod
    def of_program(cls) -> Project:
        """The project of a running program, or else the current folder.

        A program of the Automation API needs no Pulumi.yaml. Raises EarshotError for another user's
        project.
        """
        folder = current_folder().absolute()
        return cls._above(folder) or cls(folder)

    @classmethod
    def _above(cls, folder: Path) -> Project | None:
        for candidate in (folder, *folder.parents):
            if (candidate / PROJECT_FILE).is_file():
                _refuse_strangers(candidate / PROJECT_FILE)
                return cls(candidate)
        return None

    @property
    def has_file(self) -> bool:
        """True if the project has a Pulumi.yaml."""
        return (self.root / PROJECT_FILE).is_file()

    @property
    def stack_folder(self) -> Path:
        """The folder of stack files: `stackConfigDir` in Pulumi.yaml, or the project's folder."""
        document = _read_yaml(self.root / PROJECT_FILE, PROJECT_FILE)
        folder_name = document.get("stackConfigDir", ".") if isinstance(document, Mapping) else None
        if not isinstance(folder_name, str):
            raise EarshotError(
                f"{PROJECT_FILE}: stackConfigDir",
                observed=f"found {folder_name!r}"
                if folder_name is not None
                else "the file holds no settings",
                allowed="a folder, as text",
            )
        return self.root / folder_name

    @property
    def stacks(self) -> tuple[str, ...]:
        """The stacks that have a file, sorted."""
        files = self.stack_folder.glob("Pulumi.*.yaml")
        return tuple(sorted(path.name[len("Pulumi.") : -len(".yaml")] for path in files))

    def stack_file(self, stack: str) -> Path:
        """The path of the file of ``stack``, which may not exist."""
        return self.stack_folder / f"Pulumi.{stack_name(stack)}.yaml"

    def shown_file(self, stack: str) -> str:
        """The name of the stack's file in messages."""
        return self._shown(self.stack_file(stack))

    def read_cluster(self, stack: str) -> Spec:
        """The cluster that the file of ``stack`` describes, with the files that it extends.

        Raises EarshotError for a missing file or one without `earshot:cluster`, and SpecError with
        every problem of an invalid cluster.
        """
        from earshot.config.document import read_spec  # slow to import, with all placements
        from earshot.config.passwords import KEY as PASSWORDS
        from earshot.config.passwords import check_encrypted, check_names

        config, shown = self._config(stack), self.shown_file(stack)
        spec = read_spec(config[CLUSTER_KEY], f"{shown}, {CLUSTER_KEY}", self)
        check_names(map(str, config), shown)
        if PASSWORDS in config:
            check_encrypted(config[PASSWORDS], spec, f"{shown}, {PASSWORDS}")
        return spec

    def cluster(self, stack: str) -> object:
        """The value of `earshot:cluster` in the file of ``stack``. Raises EarshotError."""
        return self._config(stack)[CLUSTER_KEY]

    def _config(self, stack: str) -> Mapping[str, object]:
        """`config` of the stack's file, with `earshot:cluster`. Raises EarshotError."""
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
            return config
        names = [name for name in self.stacks if name != stack_name(stack)]
        others = [self.shown_file(name) for name in names]
        raise EarshotError(
            shown,
            observed=_missing(document, config),
            allowed=f"a map with `config:`, and in it `{CLUSTER_KEY}:`",
            remedy=f"see {', '.join(others)} for an example" if others else "",
        )

    def state_dir(self, stack: str) -> Path:
        """The folder of earshot's files for ``stack`` on this machine, which git ignores."""
        return self.root / PRIVATE / "stacks" / stack_name(stack)

    def here(self, path: Path) -> Path:
        """The path in this checkout for ``path`` in a state.

        States contain absolute paths. After a checkout was copied or moved, its state still has the
        old ones, which this function maps to the new folder.
        """
        parts = path.parts
        if path.is_relative_to(self.root) or PRIVATE not in parts:
            return path
        last = len(parts) - 1 - parts[::-1].index(PRIVATE)
        return self.root.joinpath(*parts[last:])

    def policy_document(self, stack: str) -> tuple[dict[str, object], str]:
        """The policy pack's configuration for ``stack``, or its template's, and the file's name.

        The document is empty without a file. Raises EarshotError for a file without a JSON object.
        """
        path = own_or_templates(stack_name(stack), self.root / POLICIES, "{}.json")
        if path is None:
            return {}, str(POLICIES)
        shown = self._shown(path)
        try:
            document = json.loads(read_bytes(path), object_pairs_hook=_each_key_once)
            if not isinstance(document, dict):
                raise ValueError(f"it is a {type(document).__name__}")
        except (OSError, ValueError, RecursionError) as reason:
            raise EarshotError(
                shown,
                observed=f"cannot be read as a configuration of the pack ({reason})",
                allowed="a JSON object, with the resolvers in `names`",
            ) from None
        return document, shown

    def contract_file(self, stack: str) -> Path:
        """The file with the contract of the last update."""
        return self.state_dir(stack) / "contract.json"

    def credentials_file(self, stack: str) -> Path:
        """The file with the validator's client properties, if the stack has created it."""
        return self.state_dir(stack) / "kafka" / FOLDER / VALIDATOR_FILE

    def report_file(self, stack: str) -> Path:
        """The JSON file with the report of the last validation."""
        return self.state_dir(stack) / "report.json"

    def _shown(self, path: Path) -> str:
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)


def _refuse_strangers(file: Path) -> None:
    """Raises EarshotError if another user has put ``file`` into a folder such as /tmp.

    That user would choose the brokers that get a login, and the engine that gets keys.
    """
    owner, mode = file.stat().st_uid, file.parent.stat().st_mode
    is_shared = mode & stat.S_ISVTX and mode & umask.OTHERS_WRITE
    if is_shared and owner not in (os.geteuid(), 0):
        raise EarshotError(
            str(file),
            observed=f"belongs to another user (uid {owner}), as every user can write "
            f"{file.parent}",
            allowed="a project of this user",
            remedy="change into the project's folder, or into one that is not below "
            f"{file.parent}; or name a --contract or --bootstrap instead",
        )


def _read_yaml(path: Path, file_name: str) -> object:
    try:
        text = content_of(path, file_name).decode("utf-8")
    except UnicodeDecodeError as reason:
        observed = f"is no UTF-8 text (byte 0x{reason.object[reason.start]:02x} at {reason.start})"
        raise EarshotError(file_name, observed=observed, allowed="a YAML file") from None
    return read_yaml(text, file_name)


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


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The JSON object of ``pairs``. Raises ValueError for a key that occurs twice."""
    document = dict(pairs)
    if len(document) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        raise ValueError(f"it has the key {', '.join(repeated)} more than once")
    return document
