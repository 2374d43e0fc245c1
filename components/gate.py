"""Where states of 0.1.0 look for the class that deletes their `GateApproval`; see gate.md."""

from earshot_pulumi.gate import _GateApprovalProvider

_SealProvider = _GateApprovalProvider
__all__ = ["_GateApprovalProvider", "_SealProvider"]
