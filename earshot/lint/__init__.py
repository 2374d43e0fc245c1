"""`earshot lint`: what is wrong in the files that somebody has, with the place of each mistake."""
