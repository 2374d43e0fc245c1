"""The id of a stack's cluster on AWS: generated once, then stored in an SSM parameter.

The parameter's name is unique to the stack in an account and region, so no second stack can use it.
If the parameter is lost, the attached volumes still have the id.
"""

import pulumi
import pulumi_aws as aws

from earshot.errors import EarshotError
from earshot.listeners.cluster_id import new_cluster_id
from earshot.placement.aws import report_parameter
from earshot_pulumi.aws.tags import tags
from earshot_pulumi.outputs import with_run_errors

NAME = "cluster-id"
"""The name of the parameter, below the stack's."""


def cluster_identity(
    stack: str, configured: str | None, attached: str | None, parent: pulumi.Resource
) -> pulumi.Output[str]:
    """The id of the cluster of ``stack``.

    ``configured`` is the id in the stack's file, ``attached`` that of the data on volumes attached
    to its instances; None without one.
    """
    full_name = f"{stack}-{NAME}"
    parameter = aws.ssm.Parameter(
        full_name,
        name=report_parameter(stack, NAME),
        type="String",
        insecure_value=attached or configured or new_cluster_id(),
        description=f"Kafka's id of the cluster {stack}",
        tags=tags(stack, full_name),
        opts=pulumi.ResourceOptions(parent=parent, ignore_changes=["insecureValue", "value"]),
    )
    return parameter.insecure_value.apply(
        with_run_errors(lambda cluster_id: checked(cluster_id, configured, attached))
    )


def checked(id: str, configured: str | None, attached: str | None) -> str:
    """``id``, the parameter's value. Raises EarshotError if another id contradicts it."""
    if attached not in (None, id):
        raise EarshotError(
            f"parameter {NAME}",
            observed=f"is {id}, and the volumes attached to the instances have data of {attached}",
            allowed=f"{attached}",
            remedy="write that value back into the parameter, then run this with --refresh",
        )
    if configured not in (None, id):
        raise EarshotError(
            f"cluster_id: {configured}",
            observed=f"this stack's cluster is {id}, which is in the data of every node",
            remedy=f"remove the key, or write `cluster_id: {id}`",
        )
    return id
