"""The provider that constructs the package's components and serves their schema."""

from typing import Any

from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult
from pulumi.provider.experimental.component import ComponentProvider
from pulumi.provider.server import ComponentInitError

from earshot import __version__
from earshot.errors import EarshotError
from earshot_pulumi.package.cluster import AwsCluster
from earshot_pulumi.package.network import AwsNetwork

PACKAGE = "earshot"
COMPONENTS = (AwsCluster, AwsNetwork)


class PackageProvider(ComponentProvider):
    """As `component_provider_host` makes it, but errors in inputs show without a stack trace."""

    def __init__(self) -> None:
        super().__init__(list(COMPONENTS), PACKAGE, None, __version__)

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: Any = None
    ) -> ConstructResult:
        """Raises InputPropertiesError, which the engine shows as the user's own mistake."""
        try:
            return super().construct(name, resource_type, inputs, options)
        except ComponentInitError as error:
            if isinstance(error.inner, EarshotError):
                # without a list, Pulumi's own code for the answer fails
                raise InputPropertiesError(str(error.inner), []) from None
            raise
