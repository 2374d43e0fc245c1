"""Loads pulumi_aws by the resource: a use of `aws.ec2.Vpc` loads that file, and not 180 others.

The packages `pulumi_aws.ec2`, `s3` and so on load all their files at the first use, which takes
most of the start of a program. This module finds the file of a class by its name. If no file has
the class, the whole package is loaded as usual.
"""

import importlib.util
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGES = ("ebs", "ec2", "iam", "lb", "route53", "s3", "ssm", "vpc")
"""The packages whose resources earshot uses."""
_SHARED = ("_inputs", "_enums")
"""Files whose names the package exports in addition to its resources."""


class _OnDemand(ModuleType):
    """A package of pulumi_aws that loads a file when one of its names is used."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            for file in self._files(name):
                module = import_module(f"{self.__name__}.{file}")
                if file == name and name not in module.__all__:
                    return module
                # a function hides the file with its name, as in the whole package
                vars(self).update(
                    {attribute: getattr(module, attribute) for attribute in module.__all__}
                )
                if name in vars(self):
                    return vars(self)[name]
            self._load_all()
            if name in vars(self):
                return vars(self)[name]
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # an import of a file sets the file: a function of its name takes precedence
        if isinstance(value, ModuleType) and name in getattr(value, "__all__", ()):
            value = getattr(value, name)
        super().__setattr__(name, value)

    def _files(self, name: str) -> Iterator[str]:
        """The existing files of the package that may define ``name``."""
        word = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        for file in dict.fromkeys(
            (name, word, re.sub("_(args(_dict)?|result|output)$", "", word), *_SHARED)
        ):
            if (Path(self.__path__[0]) / f"{file}.py").is_file():
                yield file

    def _load_all(self) -> None:
        self.__class__ = ModuleType  # type: ignore[assignment]  # as without this module
        assert self.__spec__ is not None and self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)


def load_on_demand() -> None:
    """Makes packages of pulumi_aws load their modules on first use, unless already imported."""
    package_spec = importlib.util.find_spec("pulumi_aws")
    if package_spec is None or not package_spec.submodule_search_locations:
        return
    for package in PACKAGES:
        name = f"pulumi_aws.{package}"
        folder = Path(package_spec.submodule_search_locations[0]) / package
        if name in sys.modules or not folder.is_dir():
            continue
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None
        module = _OnDemand(name)
        module.__spec__, module.__loader__ = spec, spec.loader
        module.__file__, module.__package__ = spec.origin, name
        module.__path__ = [str(folder)]
        sys.modules[name] = module
