"""Names: their kinds, what clients at each location make of them, lookups, and evidence."""
