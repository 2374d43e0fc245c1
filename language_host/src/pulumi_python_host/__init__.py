"""A small ``pulumi-language-python``: runs Python programs, policy packs and provider plugins.

The Pulumi CLI starts it for each phase of a command and calls it by gRPC
(``pulumirpc.LanguageRuntime``). It exists because Pulumi's own host cannot be built from a
published Go module; an installed official ``pulumi`` uses its own, complete host.
"""
