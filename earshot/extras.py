"""The extras of the wheel: packages that not every command or component needs."""

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from earshot.errors import EarshotError

EXTRAS = {
    "boto3": "aws",
    "botocore": "aws",
    "cryptography": "deploy",
    "docker": "docker",
    "grpc": "deploy",
    "pulumi": "deploy",
    "pulumi_aws": "aws",
    "pulumi_docker": "docker",
    "pulumi_policy": "deploy",
    "pyspark": "spark",
}
"""By import name, the extra that installs the package."""


def installing(extra: str) -> str:
    """The command that adds ``extra`` to the installed earshot."""
    return f"pip install 'earshot[{extra}]'"


def extra_of(fault: BaseException) -> str:
    """The extra that installs the package that ``fault`` misses; empty for other errors."""
    package = (fault.name or "") if isinstance(fault, ModuleNotFoundError) else ""
    return EXTRAS.get(package.partition(".")[0], "")


def folder_of(package: str, subject: str, otherwise: str = "") -> Path:
    """The folder of ``package``, without the slow import.

    Raises EarshotError with the extra, and the alternative ``otherwise``, if it is not installed.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EarshotError(
            subject,
            observed=f"needs the package {package}, which is not installed",
            remedy=installing(EXTRAS[package]) + otherwise,
        )
    return Path(spec.submodule_search_locations[0])


@contextmanager
def needed_for(subject: str) -> Iterator[None]:
    """A context in which an import without its package raises EarshotError with the extra."""
    try:
        yield
    except ModuleNotFoundError as fault:
        if not (extra := extra_of(fault)):
            raise
        raise EarshotError(
            subject,
            observed=f"needs the package {fault.name}, which is not installed",
            remedy=installing(extra),
        ) from None
