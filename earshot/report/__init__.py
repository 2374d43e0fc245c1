"""Reports: one module per format; they print what a validation found and compute nothing."""
