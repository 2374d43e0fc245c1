"""Validation: the contract, the doctor, the Spark job and the verdict on what came back."""
