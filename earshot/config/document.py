"""`earshot:cluster` of a stack file, as one frozen model; errors name key, finding, allowance.

`read_spec` is the only way in; what it lets through can be planned for its placement's names.
"""

import json
from collections.abc import Mapping

from pydantic import ValidationError

from earshot.config.cluster import ClusterSpec
from earshot.errors import SpecError
from earshot.listeners.problems import describe, shown
from earshot.placements import PLACEMENTS

Spec = ClusterSpec
"""Of any placement: what `read_spec` gives is the placement's own."""


def read_spec_text(text: str | None, source: str) -> Spec:
    """The same of ``text`` in JSON, as Pulumi hands over what a stack file holds; None for nothing.

    A text that is no JSON is a value of its own: `earshot:cluster: local`. Raises SpecError.
    """
    try:
        return read_spec(json.loads(text) if text is not None else None, source)
    except (ValueError, RecursionError):
        return read_spec(text, source)


def read_spec(value: object, source: str) -> Spec:
    """The cluster that ``value`` (parsed YAML or JSON) describes.

    ``source`` says where it stands ("stacks/Pulumi.local.yaml, earshot:cluster").
    Raises SpecError with every problem found, each with its key.
    """
    if not isinstance(value, Mapping):
        raise SpecError(
            source,
            observed=f"found {shown(value)}",
            allowed="a map of settings with at least `placement`",
            remedy="see the comments in stacks/Pulumi.local.yaml",
        )
    if value.keys() == {"secure"}:
        raise SpecError(
            source,
            observed="is a secret",
            allowed="settings in plain text; passwords are secrets of their own",
            remedy="see the comments in stacks/Pulumi.local.yaml, and docs/security.md",
        )
    placement = value.get("placement")
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        raise SpecError(
            f"{source}: placement",
            observed=f"found {shown(placement)}" if "placement" in value else "is missing",
            allowed=", ".join(PLACEMENTS),
        )
    model: type[ClusterSpec] = PLACEMENTS[placement].module("earshot.config").MODEL
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise SpecError.of(source, describe(error, model, value)) from None
