"""The entry point of the pack; its constructor serves and never returns."""

from pulumi_policy import PolicyPack

from policies.pack import policies

PolicyPack("earshot", policies())
