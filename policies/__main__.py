"""The entry point of the pack; its constructor serves and never returns."""

from earshot_policies.pack import policies
from pulumi_policy import PolicyPack

PolicyPack("earshot", policies())
