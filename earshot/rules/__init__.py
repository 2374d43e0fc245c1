"""Rules over advertised listeners: one module each, judged over facts that are given."""
