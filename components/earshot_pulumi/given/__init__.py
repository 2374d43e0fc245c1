"""`Listeners` and `Proof`, for brokers that a program makes itself or that already exist."""
