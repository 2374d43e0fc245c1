"""The `docker` placement: brokers as containers on one Docker host or several."""
