"""Components of placement aws as a Pulumi package, for programs in any language."""
