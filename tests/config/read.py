"""A spec of placement local, as tests hand it on."""

from earshot.config.document import read_spec
from earshot.config.local import LocalSpec


def read_local(document: object, source: str = "test") -> LocalSpec:
    """``document`` read as `earshot:cluster`. Raises SpecError."""
    spec = read_spec(document, source)
    assert isinstance(spec, LocalSpec)
    return spec
