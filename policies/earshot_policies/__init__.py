"""The policies of earshot's pack, and the pack itself."""
