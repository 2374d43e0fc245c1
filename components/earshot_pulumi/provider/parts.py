"""Everything that the provider offers, by name: a part is imported when it is first needed."""

import functools
import importlib

import earshot_pulumi
from earshot_pulumi.provider import former
from earshot_pulumi.provider.host import Package
from earshot_pulumi.provider.internal import InternalKind
from earshot_pulumi.provider.kind import Kind, Properties, Show
from earshot_pulumi.provider.resource import type_token

COMPONENTS = (
    "Listeners",
    "LocalCluster",
    "DockerCluster",
    "DockerHosts",
    "AwsCluster",
    "AwsNetwork",
    "AwsEndpoint",
)
"""Names of the components in `earshot_pulumi`."""
PUBLIC = {"Proof": ("given.proof", "ProofKind")}
"""Custom resources of the schema: a module, and the name of the kind there."""
INTERNAL = {
    "AwsCertificates": ("aws.copies", "AwsCertificatesKind"),
    "AwsPreflight": ("aws.preflight", "AwsPreflightKind"),
    "AwsReadiness": ("aws.readiness", "AwsReadinessKind"),
    "AwsSecret": ("aws.secrets", "AwsSecretKind"),
    "AwsTurn": ("aws.turns", "AwsTurnKind"),
    "BegunChange": ("change_memory", "BegunChangeKind"),
    "Certificates": ("certificates", "CertificatesKind"),
    "ChangePreflight": ("aws.changes", "ChangePreflightKind"),
    "CompleteChange": ("change_memory", "CompleteChangeKind"),
    "DockerEngineReady": ("docker.engine_ready", "DockerEngineReadyKind"),
    "DockerHostKeys": ("aws.host_keys", "DockerHostKeysKind"),
    "DockerKeys": ("docker.keys", "DockerKeysKind"),
    "DockerReadiness": ("docker.kinds", "DockerReadinessKind"),
    "DockerStopPreflight": ("docker.kinds", "DockerStopPreflightKind"),
    "DockerUsers": ("docker.users", "DockerUsersKind"),
    "EnginePreflight": ("docker.preflight", "EnginePreflightKind"),
    "LocalCertificates": ("local.secured", "LocalCertificatesKind"),
    "LocalNode": ("local.kinds", "LocalNodeKind"),
    "LocalPreflight": ("local.kinds", "LocalPreflightKind"),
    "LocalReadiness": ("local.kinds", "LocalReadinessKind"),
    "LocalUsers": ("local.users", "LocalUsersKind"),
    "ProvedChange": ("change_memory", "ProvedChangeKind"),
    "Validation": ("validation", "ValidationKind"),
}
"""Custom resources that components make for themselves: a module and the name of the kind there."""
KINDS = {**PUBLIC, **INTERNAL}


def package() -> Package:
    """The components and the public resources, with their schema."""
    components = [getattr(earshot_pulumi, name) for name in COMPONENTS]
    public = {getattr(earshot_pulumi, name): kind(type_token(name)) for name in PUBLIC}
    return Package(components, public)


@functools.cache
def kind(token: str) -> Kind:
    """The behaviour of the resources of type ``token``."""
    name = former.name_of(token)
    if (name or token.removeprefix(type_token(""))) in former.GONE:
        return former.FormerKind(InternalKind())
    if name is not None:
        return former.FormerKind(kind(type_token(former.KINDS.get(name, name))))
    module, name = KINDS[token.removeprefix(type_token(""))]
    made: Kind = getattr(importlib.import_module(f"earshot_pulumi.{module}"), name)()
    return made


def judge(inputs: Properties, show: Show) -> Properties:
    """The inputs of a provider instance, judged if it is a gate. Raises InvalidInputs."""
    if "plan" not in inputs:
        return inputs  # an instance that is not a gate
    from earshot_pulumi.judge import judge  # slow to import

    return judge(inputs, show)
