"""A pack with one advisory rule, which reports the stack's context."""

from context import tell_context
from pulumi_policy import EnforcementLevel, PolicyPack, ResourceValidationPolicy

PolicyPack(
    name="telltale",
    enforcement_level=EnforcementLevel.ADVISORY,
    policies=[
        ResourceValidationPolicy(
            name="context", description="Says what it was told.", validate=tell_context
        )
    ],
)
