"""The limit of this process on open files, to which sockets count."""

import contextlib
import resource


def raise_limit(count: int) -> int:
    """Raises the limit to ``count`` files, or as far as this user may. Returns the limit, at most
    ``count`` if there is none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        raised = count if hard == resource.RLIM_INFINITY else min(count, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (raised, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return count if soft == resource.RLIM_INFINITY else soft
