"""User data: what a cloud instance needs to become a node of the plan, as cloud-init text."""
