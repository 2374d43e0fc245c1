"""Names: their kinds, which vantage can make what of them, lookups, and evidence."""
