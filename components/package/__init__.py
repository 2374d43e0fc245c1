"""The parts of placement aws that programs in other languages can use, as a Pulumi package."""
