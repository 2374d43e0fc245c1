"""The `local` placement: brokers as processes of this machine."""

KINDS = {
    "LocalCertificates": "kinds",
    "LocalNode": "kinds",
    "LocalPreflight": "kinds",
    "LocalReadiness": "kinds",
    "LocalUsers": "users",
}
"""For each custom resource, the module of this package with its kind, `NAMEKind`."""
