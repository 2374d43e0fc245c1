"""Objects of JSON and YAML before a model has read them, or after a model has written them."""

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
"""An object to write. JSON's types are recursive, and the callers read no part of it."""
Document = Mapping[str, Any]
"""An object that a user or a program wrote: each reader checks the values that it uses."""
