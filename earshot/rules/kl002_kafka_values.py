"""KL002: numbers and booleans that are not of the property's type (T).

The types are those of `KafkaConfig.configDef`, of properties that brokers often set.
"""

import re
from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.listeners.placeholders import is_known
from earshot.rules.objections import Objection

_BITS = {"SHORT": 16, "INT": 32, "LONG": 64}
_TYPES = {
    "BOOLEAN": "auto.create.topics.enable auto.leader.rebalance.enable controlled.shutdown.enable "
    "delete.topic.enable log.cleaner.enable unclean.leader.election.enable",
    "SHORT 1": "offsets.topic.replication.factor transaction.state.log.replication.factor",
    "INT": "default.replication.factor group.initial.rebalance.delay.ms log.retention.hours "
    "log.retention.minutes socket.receive.buffer.bytes socket.send.buffer.bytes",
    "INT 0": "message.max.bytes replica.fetch.max.bytes",
    "INT 1": "min.insync.replicas num.io.threads num.network.threads num.partitions "
    "num.recovery.threads.per.data.dir offsets.retention.minutes offsets.topic.num.partitions "
    "queued.max.requests socket.request.max.bytes transaction.state.log.min.isr "
    "transaction.state.log.num.partitions",
    "INT 14": "log.segment.bytes",
    "LONG": "log.flush.interval.ms log.retention.bytes log.retention.ms",
    "LONG 1": "log.flush.interval.messages log.retention.check.interval.ms",
}
_TYPE_OF = {key: kind for kind, keys in _TYPES.items() for key in keys.split()}
_INTEGER = re.compile(r"[+-]?[0-9]{1,30}", re.ASCII)
_OTHER_NUMBER = re.compile(r"[+-]?(?:0[xob][0-9a-f_]+|[0-9_.]+(?:e[+-]?[0-9]+)?)", re.I | re.ASCII)
"""A number in another notation of YAML, which Docker Compose may write as an integer."""


def values(view: KafkaSettings) -> Iterator[Objection]:
    """T1, T2."""
    for key, value in view.values.items():
        kind, _, least = _TYPE_OF.get(key, "").partition(" ")
        text = value.strip()
        if not kind or not is_known(text):
            continue
        observed = f"is {text!r}" if text else "is empty"
        if kind == "BOOLEAN":
            if text.lower() not in ("true", "false"):
                yield Objection("T1", key, observed, "true or false")
            continue
        if not _INTEGER.fullmatch(text):
            if not _OTHER_NUMBER.fullmatch(text):
                yield Objection("T2", key, observed, "an integer")
            continue
        most = 2 ** (_BITS[kind] - 1) - 1
        fewest = int(least or -most - 1)
        if key == "log.segment.bytes" and view.version >= (4, 0):
            fewest = 2**20
        if not fewest <= int(text) <= most:
            yield Objection("T2", key, f"is {text}", f"an integer from {fewest} to {most}")
