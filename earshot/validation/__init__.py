"""Validation: the contract of a cluster, the doctor, the Spark job and the verdict on what came back."""
