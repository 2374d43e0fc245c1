"""The output of `earshot adopt`, as text or JSON, and the stack file: YAML with comments about the
source of each key."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from earshot.adopt.adoption import AdoptedListener, Adoption
from earshot.json_object import Document, JsonObject
from earshot.listeners.address import bracketed
from earshot.listeners.listed import by_key, numbered, shortened
from earshot.project import CLUSTER_KEY
from earshot.report.terminal import Terminal, columns
from earshot.rules.grouped import grouped, shape
from earshot.visible import one_line, visible

HEAD = ("broker", "listener", "binds", "published", "advertises", "for", "because")
WIDTH = 100
_COMMENTS = {
    "broker_ids": "Kept from the source: clients and topics know the brokers by them.",
    "names": "The name of each broker on its network.",
    "image": "The image that the brokers run.",
    "inter_broker": "The listener that the brokers use among themselves.",
    "controllers": "The KRaft quorum. Voters cannot change later.",
    "extra": "Further broker properties, as the source sets them.",
}


def as_text(adoption: Adoption, terminal: Terminal) -> str:
    """Listeners, questions, mistakes, leftovers and unchecked rules, as text."""
    lines = [terminal.bold(f"{one_line(adoption.source)}: {_counts_text(adoption)}"), ""]
    head, *rows = columns([HEAD, *(_row(listener) for listener in adoption.listeners)])
    lines += [terminal.bold(head), *rows]
    parts = (
        ("undecided: no stack file is written", _questions(adoption)),
        ("mistakes", (visible(str(group)) for group in grouped(adoption.mistakes))),
        ("the stack file is not valid yet", map(visible, filter(None, [adoption.refusal]))),
        ("not carried over", (visible(str(leftover)) for leftover in adoption.leftovers)),
        ("notes", (visible(note) for note in adoption.notes)),
        ("not checked here", _by_reason(adoption.unchecked)),
    )
    for title, items in parts:
        if texts := [*items]:
            lines += ["", terminal.bold(title), *map(_list_item, texts)]
    return "\n".join(lines) + "\n"


def as_json(adoption: Adoption) -> str:
    """Like `as_text`, but as JSON, with `earshot:cluster` under `cluster`."""
    document: JsonObject = {
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


def _attributes(items: Iterable[object], names: str) -> list[JsonObject]:
    return [{name: getattr(part, name) for name in names.split()} for part in items]


def _row(adopted: AdoptedListener) -> tuple[str, ...]:
    listener, audience = adopted.listener, adopted.listener.audience
    texts = (
        f"{adopted.id} ({adopted.broker})",
        listener.name,
        f"{bracketed(listener.bind.host) or '*'}:{listener.bind.port}",
        ", ".join(adopted.published) or "-",
        str(listener.advertised),
        "+".join(audience.scopes) or "?",
        audience.why,
    )
    return tuple(map(one_line, texts))


def _by_reason(unchecked: Iterable[str]) -> Iterator[str]:
    """`KL011: reason` and `KL012: reason` on one line."""
    parts = (text.partition(": ") for text in unchecked)
    rules_by_reason = by_key((reason, rule) for rule, _, reason in parts)
    return (f"{', '.join(rules)}: {reason}" for reason, rules in rules_by_reason.items())


def _facts(adopted: AdoptedListener) -> JsonObject:
    listener = adopted.listener
    return {
        "broker": adopted.id,
        "name": adopted.broker,
        "listener": listener.name,
        "protocol": str(listener.protocol),
        "binds": str(listener.bind),
        "published": list(adopted.published),
        "advertises": str(listener.advertised),
        "scopes": [str(scope) for scope in listener.audience.scopes],
        "why": listener.audience.why,
    }


def _questions(adoption: Adoption) -> Iterator[str]:
    alike = by_key(
        ((question.listener, shape(question.why, [question.broker]), question.remedy), question)
        for question in adoption.undecided
    )
    for questions in alike.values():
        question = questions[0]
        names = shortened(list(dict.fromkeys(similar.broker for similar in questions)))
        has_several_reasons = len({similar.why for similar in questions}) > 1
        suffix = f" ({question.broker}; others alike)" if has_several_reasons else ""
        yield visible(
            f"{numbered('broker', (similar.id for similar in questions))} ({names}), "
            f"listener {question.listener}: {question.why}{suffix}\n"
            f"  to decide it: {question.remedy}"
        )


def _list_item(text: str) -> str:
    first_line, *lines = text.splitlines() or [""]
    return "\n".join([f"- {first_line}", *(f"  {line}" for line in lines)])


def _counts_text(adoption: Adoption) -> str:
    brokers = len({listener.broker for listener in adoption.listeners})
    counts = (
        (brokers, "broker"),
        (len(adoption.listeners), "listener"),
        (len(grouped(adoption.mistakes)), "mistake"),
        (len(adoption.undecided), "question"),
    )
    return ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)


def stack_file(adoption: Adoption) -> str:
    """The text of a stack file. Raises ValueError with open questions."""
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


def _listeners(sections: list[Document], reasons: Mapping[str, str]) -> Iterator[str]:
    for section in sections:
        scopes = " and ".join(section["scopes"])
        comment = one_line(f"{section['name']} is for {scopes}: {reasons[section['name']]}.")
        yield f"      # {comment}"
        first_line, *lines = _dumped(dict(section), 0)
        yield f"      - {first_line}"
        yield from (f"        {line}" for line in lines)


def _dumped(value: Document, indent: int) -> list[str]:
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=WIDTH)
    return [" " * indent + line for line in text.splitlines()]


class _Dumper(yaml.SafeDumper):
    """Writes each scalar on one line, and lists of scalars in brackets."""

    def represent_sequence(
        self, tag: str, sequence: Any, flow_style: bool | None = None
    ) -> yaml.SequenceNode:
        plain = all(isinstance(value, (str, int)) for value in sequence)
        return super().represent_sequence(tag, sequence, flow_style=plain or flow_style)
