"""A provider plugin for tests: ``thing:index:Thing``, whose ``echo`` is its word twice."""

import sys

from pulumi.provider.experimental.property_value import PropertyValue
from pulumi.provider.experimental.provider import (
    ConfigureRequest,
    ConfigureResponse,
    CreateRequest,
    CreateResponse,
    DeleteRequest,
    Provider,
)
from pulumi.provider.experimental.server import main


class ThingProvider(Provider):
    """Keeps nothing outside the state."""

    async def configure(self, request: ConfigureRequest) -> ConfigureResponse:
        return ConfigureResponse()

    async def create(self, request: CreateRequest) -> CreateResponse:
        word = request.properties["word"].value
        echo = PropertyValue(f"{word} {word}")
        return CreateResponse(resource_id="1", properties={**request.properties, "echo": echo})

    async def delete(self, request: DeleteRequest) -> None:
        return None


main(sys.argv[1:], "1.0.0", ThingProvider())
