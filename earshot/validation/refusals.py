"""Causes for a refused topic: no cell fails then, but nothing is proven."""

from collections.abc import Mapping
from typing import Final

from earshot.validation.client import Failure
from earshot.validation.result import Cause

UNANSWERED: Final = frozenset({"timeout", "disconnected", "refused", "unreachable"})
"""Errors of a request without an answer: the broker has died, or waits for other brokers."""

EXPECTED: Final = "the cluster creates a topic whose name begins with __earshot-"

_POLICY: Final = (
    "let the cluster's create.topic.policy.class.name allow topics that begin with __earshot-, "
    "with an explicit replica assignment"
)
_RIGHTS: Final = (
    "allow this user Create, Describe, Read, Write and Delete on topics that begin with __earshot-"
)
_REPLICAS: Final = (
    "let topics that begin with __earshot- have one replica, on a broker that the client names; "
    "a proxy between client and cluster may require more"
)
_SETTINGS: Final = (
    "let the cluster accept the refused setting for topics that begin with __earshot-"
)
KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "policy-violation": ("topic-policy", _POLICY),
    "authorization": ("topic-authorization", _RIGHTS),
    "invalid-replication-factor": ("topic-replicas", _REPLICAS),
    "invalid-replica-assignment": (
        "topic-replicas",
        "see that every broker that answers is registered with the controllers",
    ),
    "invalid-config": ("topic-settings", _SETTINGS),
    "no-leader": (
        "topic-leaderless",
        "see the logs of these brokers: they are fenced, or their disk has failed",
    ),
    "throttling-quota-exceeded": (
        "topic-quota",
        "raise this user's controller_mutation_rate, or run it again later",
    ),
}


def refusal(failure: Failure) -> Cause | None:
    """The cause of ``failure``, the result of a request to create a topic.

    None if no broker answered.
    """
    if failure.error in UNANSWERED:
        return None
    kind, remedy = KINDS.get(
        failure.error,
        ("topic-refused", "see the log of the active controller for this time"),
    )
    return Cause(kind=kind, observed=failure.text, expected=EXPECTED, remedy=remedy)
