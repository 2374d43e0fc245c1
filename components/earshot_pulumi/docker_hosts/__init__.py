"""EC2 instances with a Docker engine each, for the `docker` placement."""

import earshot_pulumi.aws  # noqa: F401 - loads parts of pulumi_aws on demand

KINDS = {
    "DockerEngineReady": "engine_ready",
    "DockerHostImages": "engine_ready",
    "DockerHostKeys": "keys",
    "DockerHostTurn": "turns",
}
"""For each custom resource, the module of this package with its kind, `NAMEKind`."""
