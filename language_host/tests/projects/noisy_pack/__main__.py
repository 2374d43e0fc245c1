"""A pack that breaks the rule that the port comes first on stdout."""

from pulumi_policy import PolicyPack

print("good morning")
PolicyPack(name="noisy", policies=[])
