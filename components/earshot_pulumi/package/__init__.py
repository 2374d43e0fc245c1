"""The folder that `pulumi package add` takes; AWS components with the inputs of a stack file."""
