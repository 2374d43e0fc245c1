"""All rules, in the order of their ids."""

from __future__ import annotations

from earshot.rules import (
    kl001_grammar,
    kl002_kafka,
    kl003_kind_of_address,
    kl004_unique_address,
    kl005_same_listeners,
    kl006_container_ports,
    kl007_security_groups,
    kl008_inter_broker,
    kl009_lasting_address,
    kl011_resolves,
    kl012_same_broker,
    kl013_quorum,
    kl014_image,
)
from earshot.rules.registry import Rule

RULES: tuple[Rule, ...] = (
    kl001_grammar.RULE,
    kl002_kafka.RULE,
    kl003_kind_of_address.RULE,
    kl004_unique_address.RULE,
    kl005_same_listeners.RULE,
    kl006_container_ports.RULE,
    kl007_security_groups.RULE,
    kl008_inter_broker.RULE,
    kl009_lasting_address.RULE,
    kl011_resolves.RULE,
    kl012_same_broker.RULE,
    kl013_quorum.RULE,
    kl014_image.RULE,
)
