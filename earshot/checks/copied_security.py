"""What a new listener needs where the one beside it is secured, copied from that one's settings.

Kafka takes settings of one listener from `listener.name.NAME.`, and a broker's logins from there or
from a JAAS file: https://kafka.apache.org/documentation/#security_jaas_broker
"""

from __future__ import annotations

from collections.abc import Iterator

from earshot.checks.remedy_lines import Whole, setting_of
from earshot.facts.brokers import Broker
from earshot.facts.settings import is_known
from earshot.listeners.secrets import reveals
from earshot.rules.finding import LineToWrite

_LOGIN = ".sasl.jaas.config"


def obstacle(whole: Whole, broker: Broker, listener: str, protocol: str) -> str:
    """Why a listener like ``listener`` cannot be written down, or an empty text."""
    own = dict(_own(whole, broker, listener))
    if protocol == "PLAINTEXT":
        return ""
    if protocol in ("SSL", "SASL_SSL"):
        return f"the certificate of {listener} has to be good for the new address, too"
    if protocol != "SASL_PLAINTEXT":
        return f"the protocol of {listener} is not known"
    if not any(key.endswith(_LOGIN) for key in own):
        return f"the logins of {listener} stand elsewhere, as in a JAAS file"
    if any(reveals(key, value) or not is_known(value) for key, value in own.items()):
        return f"the settings of {listener} hold a secret"
    return ""


def copied(whole: Whole, broker: Broker, listener: str, name: str) -> Iterator[LineToWrite]:
    """The lines that give the listener ``name`` what ``listener`` has of its own."""
    service = whole.by_name[broker.service]
    for key, value in _own(whole, broker, listener):
        setting = setting_of(service, key)
        old = listener.lower() if setting.islower() else listener.upper().replace("_", "__")
        new = name.lower() if setting.islower() else name
        yield LineToWrite(broker.service, setting.replace(old, new, 1), value)


def _own(whole: Whole, broker: Broker, listener: str) -> Iterator[tuple[str, str]]:
    prefix = f"listener.name.{listener.lower()}."
    for key, value in whole.settings(broker).values.items():
        if key.startswith(prefix):
            yield key, value
