"""The facts that rules are evaluated over: plain data, without lookups."""
