"""A program without resources, which reports its stack's context."""

import pulumi

config = pulumi.Config()
pulumi.export("project", pulumi.get_project())
pulumi.export("stack", pulumi.get_stack())
pulumi.export("organization", pulumi.get_organization())
pulumi.export("colour", config.get("colour"))
pulumi.export("password", config.get_secret("password"))
print("printed by the program")
