"""The inputs of components about the lookup of names; as annotations, Pulumi reads the schema."""

from typing import NotRequired, TypedDict


class NameArgs(TypedDict):
    """How advertised names are looked up."""

    resolvers: NotRequired[dict[str, list[str]]]
    """DNS servers (`ip` or `ip:port`) by scope, or `system` for this machine's own lookup."""
    timeout: NotRequired[float]
    """Seconds for all lookups. Default: 5."""
    retry: NotRequired[float]
    """Seconds for which a name that does not resolve is looked up again. Default: 0."""
    waived: NotRequired[dict[str, str]]
    """Names that need not resolve, each with the reason."""
