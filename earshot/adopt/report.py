"""What `earshot adopt` says, as text for a reader or as one JSON document, and the stack file: YAML
for `pulumi`, with comments that say where each thing comes from."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from earshot.adopt.adoption import AdoptedListener, Adoption
from earshot.listeners.address import bracketed
from earshot.listeners.listed import by_key, numbered, shortened
from earshot.project import CLUSTER_KEY
from earshot.report.terminal import Terminal, columns
from earshot.report.visible import one_line, visible
from earshot.rules.grouped import grouped, shape

HEAD = ("broker", "listener", "binds", "published", "advertises", "for", "because")
WIDTH = 100
_COMMENTS = {
    "broker_ids": "Kept from the source: clients and topics know the brokers by them.",
    "names": "What each broker is called on its network.",
    "image": "The image that the brokers run.",
    "inter_broker": "The listener that the brokers use among themselves.",
    "controllers": "The KRaft quorum. Voters cannot change later.",
    "extra": "Further broker properties, as the source sets them.",
}


def as_text(adoption: Adoption, terminal: Terminal) -> str:
    """Understood, undecided, mistakes, what is not carried over, and what was not checked."""
    lines = [terminal.bold(f"{one_line(adoption.source)}: {_counted(adoption)}"), ""]
    head, *rows = columns([HEAD, *(_row(listener) for listener in adoption.listeners)])
    lines += [terminal.bold(head), *rows]
    parts = (
        ("undecided: no stack file is written", _questions(adoption)),
        ("mistakes", (visible(str(item)) for item in grouped(adoption.mistakes))),
        ("the stack file is not valid yet", (visible(it) for it in [adoption.refusal] if it)),
        ("not carried over", (visible(str(leftover)) for leftover in adoption.leftovers)),
        ("notes", (visible(note) for note in adoption.notes)),
        ("not checked here", _by_reason(adoption.unchecked)),
    )
    for title, items in parts:
        listed = list(items)
        if listed:
            lines += ["", terminal.bold(title), *(_item(text) for text in listed)]
    return "\n".join(lines) + "\n"


def as_json(adoption: Adoption) -> str:
    """The same as JSON, with the stack's `earshot:cluster` under `cluster`."""
    document: dict[str, Any] = {
        "source": adoption.source,
        "listeners": [_facts(listener) for listener in adoption.listeners],
        "undecided": _attributes(adoption.undecided, "broker listener why remedy"),
        "mistakes": _attributes(
            adoption.mistakes,
            "rule severity state subject container node listener observed expected remedy",
        ),
        "left_over": _attributes(adoption.leftovers, "what why"),
        "notes": list(adoption.notes),
        "not_checked": list(adoption.unchecked),
        "refusal": adoption.refusal,
        "cluster": adoption.document,
    }
    return json.dumps(document, indent=2) + "\n"


def _attributes(items: Iterable[object], names: str) -> list[dict[str, Any]]:
    return [{name: getattr(item, name) for name in names.split()} for item in items]


def _row(item: AdoptedListener) -> tuple[str, ...]:
    listener, audience = item.listener, item.listener.audience
    texts = (
        f"{item.id} ({item.broker})",
        listener.name,
        f"{bracketed(listener.bind.host) or '*'}:{listener.bind.port}",
        ", ".join(item.published) or "-",
        str(listener.advertised),
        "+".join(audience.scopes) or "?",
        audience.why,
    )
    return tuple(map(one_line, texts))


def _by_reason(unchecked: Iterable[str]) -> Iterator[str]:
    """`KL011: reason` and `KL012: reason` on one line."""
    parts = (item.partition(": ") for item in unchecked)
    rules = by_key((reason, rule) for rule, _, reason in parts)
    return (f"{', '.join(listed)}: {reason}" for reason, listed in rules.items())


def _facts(item: AdoptedListener) -> dict[str, Any]:
    listener = item.listener
    return {
        "broker": item.id,
        "name": item.broker,
        "listener": listener.name,
        "protocol": str(listener.protocol),
        "binds": str(listener.bind),
        "published": list(item.published),
        "advertises": str(listener.advertised),
        "scopes": [str(scope) for scope in listener.audience.scopes],
        "why": listener.audience.why,
    }


def _questions(adoption: Adoption) -> Iterator[str]:
    alike = by_key(
        ((question.listener, shape(question.why, [question.broker]), question.remedy), question)
        for question in adoption.undecided
    )
    for listed in alike.values():
        first = listed[0]
        names = shortened(list(dict.fromkeys(item.broker for item in listed)))
        differ = len({item.why for item in listed}) > 1
        others = f" ({first.broker}; others alike)" if differ else ""
        yield visible(
            f"{numbered('broker', (item.id for item in listed))} ({names}), "
            f"listener {first.listener}: {first.why}{others}\n"
            f"  to decide it: {first.remedy}"
        )


def _item(text: str) -> str:
    first, *rest = text.splitlines() or [""]
    return "\n".join([f"- {first}", *(f"  {line}" for line in rest)])


def _counted(adoption: Adoption) -> str:
    brokers = len({listener.broker for listener in adoption.listeners})
    counts = (
        (brokers, "broker"),
        (len(adoption.listeners), "listener"),
        (len(grouped(adoption.mistakes)), "mistake"),
        (len(adoption.undecided), "question"),
    )
    return ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)


def stack_file(adoption: Adoption) -> str:
    """The text of a stack file; raises ValueError where something is undecided."""
    if adoption.document is None:
        raise ValueError("nothing is written while something is undecided")
    lines = [f"# Adopted from {one_line(adoption.source)}."]
    if groups := grouped(adoption.mistakes):
        lines.append("# Mistakes that were seen there; see that they are fixed here:")
        lines += [f"# - {one_line(group.subject)} [{group.first.rule}]" for group in groups]
    lines += ["config:", f"  {CLUSTER_KEY}:"]
    reasons = {
        listener.listener.name: listener.listener.audience.why
        for listener in reversed(adoption.listeners)
    }
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
        comment = one_line(f"{item['name']} is for {scopes}: {reasons[item['name']]}.")
        yield f"      # {comment}"
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
