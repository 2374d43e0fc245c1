"""Rules over advertised listeners: one module each, checked over facts that are given."""
