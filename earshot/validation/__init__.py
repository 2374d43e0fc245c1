"""The shared parts of doctor and validation: contract, requests to brokers, results, verdicts."""
