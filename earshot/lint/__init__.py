"""`earshot lint`: finds the mistakes in a user's files, with their places."""
