"""The stack file: YAML for `pulumi`, with comments that say where each thing comes from."""

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from earshot.adopt.adoption import Adoption
from earshot.project import CLUSTER_KEY
from earshot.report.visible import visible
from earshot.rules.grouped import grouped

WIDTH = 100
_COMMENTS = {
    "broker_ids": "Kept from the source: clients and topics know the brokers by them.",
    "names": "What each broker is called on its network.",
    "image": "The image that the brokers run.",
    "inter_broker": "The listener that the brokers use among themselves.",
    "controllers": "The KRaft quorum. Voters cannot change later.",
    "extra": "Further broker properties, as the source sets them.",
}


def stack_file(adoption: Adoption) -> str:
    """The text of a stack file; raises ValueError where something is undecided."""
    if adoption.document is None:
        raise ValueError("nothing is written while something is undecided")
    lines = [f"# Adopted from {visible(adoption.source)}."]
    if found := grouped(adoption.mistakes):
        lines.append("# Mistakes that were seen there; see that they are fixed here:")
        lines += [f"# - {visible(item.subject)} [{item.first.rule}]" for item in found]
    lines += ["config:", f"  {CLUSTER_KEY}:"]
    reasons = {it.listener.name: it.listener.audience.why for it in reversed(adoption.listeners)}
    for key, value in adoption.document.items():
        if key in _COMMENTS:
            lines.append(f"    # {_COMMENTS[key]}")
        if key == "listeners":
            lines += ["    listeners:", *_listeners(value, reasons)]
        else:
            lines += _dumped({key: value}, 4)
    return "\n".join(lines) + "\n"


def _listeners(items: list[Mapping[str, Any]], reasons: Mapping[str, str]) -> Iterator[str]:
    for item in items:
        scopes = " and ".join(item["scopes"])
        yield f"      # {item['name']} is for {scopes}: {visible(reasons[item['name']])}."
        first, *rest = _dumped(dict(item), 0)
        yield f"      - {first}"
        yield from (f"        {line}" for line in rest)


def _dumped(value: Mapping[str, Any], indent: int) -> list[str]:
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=WIDTH)
    return [" " * indent + line for line in text.splitlines()]


class _Dumper(yaml.SafeDumper):
    """Scalars in one line each, lists of scalars in brackets."""

    def represent_sequence(
        self, tag: str, sequence: Any, flow_style: bool | None = None
    ) -> yaml.SequenceNode:
        plain = all(isinstance(item, (str, int)) for item in sequence)
        return super().represent_sequence(tag, sequence, flow_style=plain or flow_style)
