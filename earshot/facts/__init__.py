"""Facts: what rules are evaluated over, as plain data; nothing in here looks anything up."""
