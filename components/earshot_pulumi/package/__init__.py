"""The folder for `pulumi package add`."""
