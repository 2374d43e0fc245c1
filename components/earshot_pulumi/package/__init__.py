"""The folder that `pulumi package add` takes."""
