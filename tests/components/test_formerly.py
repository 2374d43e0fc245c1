"""Types that had another name in states of earlier releases."""

from __future__ import annotations

import pulumi

from components.formerly import formerly


def test_what_a_type_was_called_is_added_to_what_else_is_said() -> None:
    opts = pulumi.ResourceOptions(protect=True, aliases=[pulumi.Alias(name="one")])
    found = formerly("Old", opts)
    assert found.protect
    one, old = found.aliases or ()
    assert isinstance(one, pulumi.Alias) and isinstance(old, pulumi.Alias)
    assert (one.name, old.type_) == ("one", "pulumi-python:dynamic/earshot:Old")
