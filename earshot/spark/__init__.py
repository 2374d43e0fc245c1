"""The Spark job: produce and consume through every listener, and what its executors see."""
