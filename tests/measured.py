"""What tests measure without asserting it: printed at the end of a run."""

from __future__ import annotations

MEASURED = "measured"
"""A property to record (`record_property(MEASURED, text)`)."""
