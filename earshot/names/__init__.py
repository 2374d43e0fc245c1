"""Names: their kinds, what each vantage can make of them, live lookups, and evidence."""
