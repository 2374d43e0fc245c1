"""A program that refuses to go on, in words for its user."""

import pulumi

raise pulumi.RunError("the cellar is flooded")
