"""The base class of custom resources that only earshot's components create.

They are not in the schema. Their properties have Python names in states.
"""

from collections.abc import Mapping

import pulumi

from earshot import __version__
from earshot_pulumi.provider.kind import Outputs, Properties
from earshot_pulumi.provider.resource import output_names, type_token

DYNAMIC = "pulumi-python:dynamic/earshot"
"""Package and module of types in states of earlier releases, which used dynamic providers."""


class InternalResource(pulumi.CustomResource):
    """A custom resource; `registry.kinds` has its kind by the name of its class.

    Its annotations are the outputs that programs read.
    """

    FORMER_NAMES: tuple[str, ...] = ()
    """Names of its type as a dynamic resource; the default is the class's name."""

    def __init__(self, name: str, props: Properties, opts: pulumi.ResourceOptions) -> None:
        kind = type(self).__name__
        former_types = [f"{DYNAMIC}:{type_name}" for type_name in self.FORMER_NAMES or (kind,)]
        aliases = [pulumi.Alias(type_=type_name) for type_name in former_types]
        for alias in opts.aliases or ():  # the former types also had a former parent
            if isinstance(alias, pulumi.Alias) and alias.parent is pulumi.ROOT_STACK_RESOURCE:
                aliases += [
                    pulumi.Alias(type_=type_name, parent=alias.parent) for type_name in former_types
                ]
        options = pulumi.ResourceOptions(version=__version__, aliases=[*aliases])
        options = pulumi.ResourceOptions.merge(options, opts)
        outputs = dict.fromkeys(output_names(type(self)))
        super().__init__(type_token(kind), name, {**outputs, **props}, options)


def types_of(name: str) -> tuple[str, ...]:
    """The types that resources of the class ``name`` may have in a state."""
    return type_token(name), f"{DYNAMIC}:{name}"


def outputs_of(state_resources: Mapping[str, Outputs], *types: str) -> dict[str, Outputs]:
    """The outputs of a state's resources of these ``types``, by name; earlier types win.

    ``state_resources`` maps URNs to resources.
    """
    return {
        urn.rpartition("::")[2]: resource["outputs"]
        for type in reversed(types)
        for urn, resource in state_resources.items()
        if resource["type"] == type
    }
