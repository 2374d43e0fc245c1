"""From the plan that brokers run to the one that is wanted, in steps that are safe to roll."""
