"""KL002 for brokers of Redpanda: what it refuses in the addresses that it shall advertise.

Source: `validate_multi_node_property_config` in `src/v/config/node_config.cc` of
redpanda-data/redpanda, and its documentation on listeners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from earshot.facts.deployment import Endpoint
from earshot.names.kinds import NameKind, kind_of
from earshot.rules.finding import Finding
from earshot.rules.kl002_kafka import RULE as KL002

SOURCE = "https://docs.redpanda.com/current/manage/security/listener-configuration/"


def refusals(endpoints: Iterable[Endpoint], setting: str) -> Iterator[Finding]:
    """The first listener that Redpanda does not start with; ``setting`` holds what is advertised.

    An advertised address that is not known is none that it refuses.
    """
    for item in endpoints:
        if item.advertised and kind_of(item.advertised.host) is NameKind.ANY_ADDRESS:
            yield KL002.finding(
                f"{setting}: {item.name} advertises {item.advertised}; Redpanda does not start",
                "a name or an address at which clients reach this broker",
                listener=item.name,
                remedy="advertise the broker's own name, and keep 0.0.0.0 for what it binds",
                inputs=(setting,),
                source=SOURCE,
            )
            return
