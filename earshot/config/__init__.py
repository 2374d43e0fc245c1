"""What a stack file says: its `earshot:cluster`, read with one clear line per mistake."""
