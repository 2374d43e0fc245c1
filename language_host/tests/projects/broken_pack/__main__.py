"""A pack that cannot be imported."""

import no_such_module  # noqa: F401
