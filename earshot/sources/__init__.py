"""Sources: what others wrote (Compose, container inputs, user data, stacks), read into facts."""
