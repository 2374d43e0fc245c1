"""The `local` placement: brokers as processes of this machine."""

KINDS = {
    "LocalCertificates": "secured",
    "LocalNode": "kinds",
    "LocalPreflight": "kinds",
    "LocalReadiness": "kinds",
    "LocalUsers": "users",
}
"""By name of its custom resources, the module here with their kind, called `NAMEKind`."""
