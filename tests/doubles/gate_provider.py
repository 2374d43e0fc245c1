"""A double of the plugin's answer to a program that registers a gate."""

from typing import Any

from earshot_pulumi.gate import PROVIDER_TYPE
from pulumi.runtime import mocks, rpc

APPROVED = "0123456789abcdef"


def outputs(args: mocks.MockResourceArgs, approved: str | None = APPROVED) -> dict[str, Any]:
    """The inputs of a resource as its outputs; a gate is ``approved`` if all inputs are known."""
    gate_outputs = dict(args.inputs)
    if args.typ == PROVIDER_TYPE and "plan" in gate_outputs:
        gate_outputs["received"] = sorted(args.inputs)
        is_unknown = bool(rpc.unwrap_rpc_secret(gate_outputs.get("unknown")))
        gate_outputs["approved"] = rpc.UNKNOWN if is_unknown else approved
    return gate_outputs
