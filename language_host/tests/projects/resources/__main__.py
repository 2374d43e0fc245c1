"""One resource of the provider in ``../plugin``, a test double."""

import pulumi


class Thing(pulumi.CustomResource):
    """A resource whose output echoes its provider's input."""

    echo: pulumi.Output[str]

    def __init__(self, name: str, word: str) -> None:
        options = pulumi.ResourceOptions(version="1.0.0")
        super().__init__("thing:index:Thing", name, {"word": word, "echo": None}, options)


pulumi.export("echo", Thing("one", "hello").echo)
