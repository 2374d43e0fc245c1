"""What tests measure without asserting it: printed at the end of a run."""

MEASURED = "measured"
"""A property to record (`record_property(MEASURED, text)`)."""
