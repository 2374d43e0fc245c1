"""The extras of the wheel: packages that not every command or component needs."""

from collections.abc import Iterator
from contextlib import contextmanager

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
    """The command that adds ``extra`` to the earshot that is installed: pip keeps what it finds."""
    return f"pip install 'earshot[{extra}]'"


def extra_of(fault: BaseException) -> str:
    """The extra that installs the package that ``fault`` misses; empty for other errors."""
    package = (fault.name or "") if isinstance(fault, ModuleNotFoundError) else ""
    return EXTRAS.get(package.partition(".")[0], "")


@contextmanager
def needed_for(subject: str) -> Iterator[None]:
    """Names the extra if an import within misses its package. Raises EarshotError."""
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
