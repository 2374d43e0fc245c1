"""The Python that runs a program, a pack or a plugin: each request names one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pulumi.runtime.proto.language_pb2 import ProgramInfo


@dataclass(frozen=True)
class Interpreter:
    """A Python executable and, where the project names one, its virtual environment."""

    executable: str
    environment: Path | None = None

    @classmethod
    def of(cls, info: ProgramInfo) -> Interpreter:
        """The Python of the ``virtualenv`` option in the YAML file of the program, or python3.

        A relative path counts from the directory of that file.
        """
        option = info.options.fields["virtualenv"].string_value if info.HasField("options") else ""
        if not option:
            return cls("python3")
        folder = Path(os.path.normpath(Path(info.root_directory) / option))
        return cls(str(folder / "bin" / "python"), folder)

    def problem(self) -> str | None:
        """Why this interpreter cannot be used, or None."""
        if self.environment is None or os.access(self.executable, os.X_OK):
            return None
        return (
            f"the virtual environment {self.environment} has no bin/python.\n"
            "Create it with `make setup` (or `pulumi install`, in a project without a Makefile)."
        )

    def is_running(self) -> bool:
        """True if this process runs in that environment."""
        return (
            self.environment is not None
            and self.environment.resolve() == Path(sys.prefix).resolve()
        )

    def activated(self, environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` as it is after activating the virtual environment."""
        result = dict(environment)
        if self.environment is not None:
            result["VIRTUAL_ENV"] = str(self.environment)
            folder = str(self.environment / "bin")
            result["PATH"] = os.pathsep.join(filter(None, [folder, result.get("PATH", "")]))
            result.pop("PYTHONHOME", None)
        return result
