"""A small ``pulumi-language-python``: runs Python programs, policy packs and provider plugins.

The Pulumi CLI starts it for each phase of a command and talks gRPC (``pulumirpc.LanguageRuntime``)
to it. It exists because Pulumi's own host cannot be built from a published Go module; wherever an
official ``pulumi`` is installed, that one and its complete host are used instead of this.
"""
