"""A provider plugin in Python whose resources are made at once: what any such plugin costs."""

from collections.abc import Callable
from types import MappingProxyType

from pulumi.provider.experimental import provider as protocol

from tests.doubles.plugin.kind import Kind
from tests.doubles.plugin.provider import Double, Result
from tests.doubles.plugin.values import Plain

TOKEN = "bare:index:Thing"


class Thing(Kind[None]):
    shape = MappingProxyType({"text": None})

    def create(self, client: None, inputs: Plain) -> tuple[str, Plain]:
        return "thing", inputs

    def read(self, client: None, id: str, state: Plain) -> Plain:
        return state

    def update(self, client: None, id: str, state: Plain, inputs: Plain) -> Plain:
        return inputs

    def delete(self, client: None, id: str, state: Plain) -> None:
        return


class BareProvider(Double[None]):
    official = "no provider"
    kinds = MappingProxyType({TOKEN: Thing()})
    settings = frozenset({"version"})

    async def get_schema(self, request: protocol.GetSchemaRequest) -> protocol.GetSchemaResponse:
        return protocol.GetSchemaResponse('{"name": "bare", "version": "1.0.0"}')

    def set_up(self, settings: Plain) -> None:
        return

    def run(self, work: Callable[[None], Result]) -> Result:
        return work(None)
