"""The Spark job: produces and consumes through every listener, and probes from its executors."""
