"""`earshot:cluster` of a stack file, as one frozen model; errors name key, finding, allowance.

`read_spec` is the only way in; what it lets through can be planned for its placement's names.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import ValidationError

from earshot.errors import SpecError
from earshot.listeners.problems import describe, shown
from earshot.spec.aws import AwsSpec
from earshot.spec.docker import DockerSpec
from earshot.spec.local import LocalSpec

Spec = LocalSpec | DockerSpec | AwsSpec

_MODELS: dict[str, type[LocalSpec] | type[DockerSpec] | type[AwsSpec]] = {
    "local": LocalSpec,
    "docker": DockerSpec,
    "aws": AwsSpec,
}
PLACEMENTS = tuple(_MODELS)


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
    placement = value.get("placement")
    if not isinstance(placement, str) or placement not in _MODELS:
        raise SpecError(
            f"{source}: placement",
            observed=f"found {shown(placement)}" if "placement" in value else "is missing",
            allowed=", ".join(PLACEMENTS),
        )
    model = _MODELS[placement]
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise SpecError.of(source, describe(error, model, value)) from None
