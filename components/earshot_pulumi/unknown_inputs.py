"""Inputs of a cluster that a preview does not know yet, while the rest of the cluster is planned.

Each such input gets a marker, a text that the cluster's model takes. Resources of other providers
get an unknown value in its place, the gate a host that it cannot judge yet; resources of earshot's
own show the marker. Nothing of this is left in an update, which knows all inputs.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi._types import is_input_type
from pulumi.output import Unknown

from earshot.config.docker import NOT_KNOWN_YET
from earshot.listeners.terms import UnknownHost
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from earshot_pulumi.outputs import unknown
from earshot_pulumi.provider.resource import PACKAGE

SUFFIX: Final = NOT_KNOWN_YET
"""Ends the markers of hosts: a name that no resolver has."""
_MARKED_ID: Final = "fffffffffffff"
"""Begins the number in an id of AWS that is a marker."""


def is_marker(text: str | None) -> bool:
    """Whether ``text`` is the marker of a host, an engine or a resource of AWS."""
    return SUFFIX in (text or "") or _MARKED_ID in (text or "")


def _host(path: str, _: int) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-")[:60] + f".{SUFFIX}"


def _id(kind: str) -> Callable[[str, int], str]:
    return lambda _, number: f"{kind}-{_MARKED_ID}{number:04x}"


_FORMS: Final[Sequence[tuple[str, Callable[[str, int], str]]]] = (
    (r"external_host", _host),
    (r"hosts\[\d+\]\.(external|internal)", _host),
    (r"listeners\[\d+\]\.advertised\.\d+", _host),
    (r"hosts\[\d+\]\.engine", lambda path, number: f"tcp://{_host(path, number)}:2376"),
    (r"network", lambda path, _: f"{path}.{SUFFIX}"),
    (r"extra\..+", lambda path, _: f"{path.partition('.')[2]}.{SUFFIX}"),
    (r"zone\.name", _host),
    (r"zone\.public_?[zZ]one_?[iI]d", lambda _, number: f"Z{number:03d}NOTKNOWNYET"),
    (r"vpc\.id", _id("vpc")),
    (r"vpc\.(public|private)_?[sS]ubnets\..+", _id("subnet")),
    (r"clients\.groups\..+", _id("sg")),
    (r"connected\.[^.]+\.id", _id("vpc")),
    (r"connected\.[^.]+\.peering", _id("pcx")),
    (r"connected\.[^.]+\.transit_?[gG]ateway", _id("tgw")),
    (r"volumes\.\d+", _id("vol")),
    (r"(controller_?)?[iI]nstance\.ami", _id("ami")),
)
"""The form of a marker by the path of its input; other inputs decide the shape of a cluster."""


class Markers:
    """The markers of one cluster."""

    def __init__(self, paths: Iterable[str]) -> None:
        """``paths`` are those of the unknown inputs, such as `hosts[0].external`."""
        self._made: dict[str, str] = {}
        self.shape: list[str] = []
        """Inputs without which the cluster cannot be planned."""
        for number, path in enumerate(paths, start=1):
            form = next((make for pattern, make in _FORMS if re.fullmatch(pattern, path)), None)
            if form is None:
                self.shape.append(path)
            else:
                self._made[form(path, number)] = path
        self._any = re.compile("|".join(map(re.escape, self._made)) or r"(?!)")

    @property
    def paths(self) -> list[str]:
        """The inputs that have a marker."""
        return list(self._made.values())

    def text(self, path: str) -> str:
        """The marker of the input at ``path``, which has one."""
        return next(text for text, own in self._made.items() if own == path)

    def placed(self, value: Any, path: str = "") -> Any:
        """``value`` with markers for the parts of it that are not known."""
        if isinstance(value, Mapping):
            return {
                key: self.placed(item, f"{path}.{key}" if path else str(key))
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.placed(item, f"{path}[{index}]") for index, item in enumerate(value)]
        if pulumi.contains_unknowns(value):
            return self.text(path)
        return value

    def hidden(self, value: Any) -> Any:
        """``value`` with an unknown output for each text that has a marker."""
        return self._walked(value, lambda it: it)

    def judged(self, props: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs of the gate: a plan with unknown hosts, without unknown free properties."""
        found = {
            **props,
            "unknown": [*props.get("unknown", ()), *self.paths],
            "plan": self._walked(props["plan"], self._host),
        }
        if "containers" in props:
            found["containers"] = self.hidden(props["containers"])
        return found

    def transformation(
        self, args: pulumi.ResourceTransformationArgs
    ) -> pulumi.ResourceTransformationResult | None:
        """Changes the inputs of every resource of the cluster."""
        if args.type_ in (GATE_TYPE, PROVIDER_TYPE):
            props: Any = self.judged(args.props)
        elif args.type_.startswith(f"{PACKAGE}:"):
            return None
        else:
            props = self.hidden(args.props)
        return pulumi.ResourceTransformationResult(props, args.opts)

    def _host(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        """A map of a plan, where an unknown host has the form that the gate reads."""
        if isinstance(host := value.get("host"), str) and (marker := self._any.search(host)):
            return {**value, "host": UnknownHost(self._made[marker[0]]).written}
        return value

    def _is_extra(self, pair: Any) -> bool:
        """Whether ``pair``, one of a plan's free properties, has an unknown value."""
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[1], str)
        return is_pair and self._made.get(pair[1], "").startswith("extra.")

    def _walked(self, value: Any, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Any:
        def walk(item: Any) -> Any:
            if isinstance(item, str):
                return unknown() if self._any.search(item) else item
            if isinstance(item, Mapping):
                return {key: walk(it) for key, it in change(item).items()}
            if isinstance(item, list | tuple):
                return [walk(it) for it in item if not self._is_extra(it)]
            if isinstance(item, pulumi.Output):
                return item.apply(
                    lambda it: unknown() if isinstance(it, Unknown) else walk(it),
                    run_with_unknowns=True,
                )
            if is_input_type(type(item)):
                found = copy.copy(item)
                vars(found).update({key: walk(it) for key, it in vars(item).items()})
                return found
            return item

        return walk(value)
