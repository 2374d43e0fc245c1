"""`earshot lint`: what is wrong in a user's files, with the place of each mistake."""
