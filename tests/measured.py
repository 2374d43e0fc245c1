"""Values that tests measure without an assertion. They are printed at the end of a run."""

MEASURED = "measured"
"""A property to record (`record_property(MEASURED, text)`)."""
