"""Small language hosts for TypeScript and Go: Pulumi's own are in no package registry.

They call what the official hosts call: the program script of `@pulumi/pulumi`, `go build`, and
Pulumi's generators of SDKs.
"""
