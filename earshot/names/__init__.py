"""Names: their kinds, whether they resolve for clients at each location, lookups, and evidence."""
