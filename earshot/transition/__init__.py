"""Steps from the plan that brokers run to the target plan, each safe as a rolling restart."""
