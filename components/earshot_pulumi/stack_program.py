"""The cluster that a stack's file describes."""

from typing import Any

import pulumi

from earshot.config.aws_docker_hosts import DockerHostsSpec
from earshot.config.docker import DockerSpec
from earshot.config.document import read_spec_text
from earshot.errors import EarshotError
from earshot.project import CLUSTER_KEY, Project
from earshot_pulumi.cluster import Cluster, cluster_class
from earshot_pulumi.passwords import check_given


def cluster_of_stack() -> Cluster:
    """The cluster of the current stack's file. Raises pulumi.RunError."""
    stack = pulumi.get_stack()
    try:
        project = Project.find()
        source = f"{project.shown_file(stack)}, {CLUSTER_KEY}"
        spec = read_spec_text(pulumi.Config("earshot").get("cluster"), source, project)
        check_given(spec, project, stack)
    except EarshotError as error:
        raise pulumi.RunError(str(error)) from None
    if isinstance(spec, DockerSpec) and spec.provisioned is not None:
        return on_new_hosts(stack, spec, spec.provisioned)
    return cluster_class(spec.placement)(stack, spec)


def on_new_hosts(stack: str, spec: DockerSpec, hosts: DockerHostsSpec) -> Cluster:
    """The cluster of ``spec`` on new ``hosts``, which this program creates."""
    from earshot_pulumi.docker_hosts.component import DockerHosts  # needs the extra aws

    args: Any = hosts.model_dump(mode="json", exclude_unset=True)
    if images := hosts.images_with(spec.image_name, spec.validator.base):
        args["images"] = list(images)
    resource = DockerHosts("hosts", args)
    settings: Any = spec.model_dump(mode="json", exclude_unset=True, exclude={"placement", "hosts"})
    inputs: Any = {**settings, "hosts": resource.hosts}
    cluster = cluster_class(spec.placement)(stack, inputs)
    cluster.describe(spec)
    return cluster
