"""The doctor: checks every broker through every listener, up to one record, without Spark."""
