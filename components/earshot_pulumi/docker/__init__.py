"""The `docker` placement: brokers as containers on one Docker host or several."""

KINDS = {
    "DockerKeys": "keys",
    "DockerReadiness": "kinds",
    "DockerStopPreflight": "kinds",
    "DockerUsers": "users",
    "EnginePreflight": "preflight",
}
"""For each custom resource, the module of this package with its kind, `NAMEKind`."""
