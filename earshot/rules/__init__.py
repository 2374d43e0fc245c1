"""Rules about advertised listeners, one module each, that check given facts."""
