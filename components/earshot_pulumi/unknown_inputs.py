"""Plans a cluster in a preview that does not know some of its inputs.

Each such input is replaced with a marker, a text that the cluster's model accepts. In the inputs of
resources the marker is replaced again: with an unknown value for other providers, with an unknown
host for the gate. The inputs of earshot's own resources keep the marker. An update knows all
inputs.
"""

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi._types import is_input_type
from pulumi.output import Unknown

from earshot.config.docker_host import NOT_KNOWN_YET
from earshot.listeners.terms import UnknownHost
from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from earshot_pulumi.outputs import unknown
from earshot_pulumi.provider.kind import Inputs, Properties
from earshot_pulumi.provider.resource import PACKAGE

SUFFIX: Final = NOT_KNOWN_YET
"""Suffix of markers of hosts; no resolver has such a name."""
_MARKED_ID: Final = "fffffffffffff"
"""First digits of the number in an AWS id that is a marker."""


def is_marker(text: str | None) -> bool:
    """True if ``text`` is the marker of a host, an engine or an AWS resource."""
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
"""Patterns of input paths, each with the function that makes the marker.

Inputs at other paths decide the shape of a cluster: if one is unknown, it cannot be planned.
"""


class Markers:
    """The markers of one cluster."""

    def __init__(self, paths: Iterable[str]) -> None:
        """``paths`` are the paths of the unknown inputs, e.g. `hosts[0].external`."""
        self._paths_by_marker: dict[str, str] = {}
        self.shape: list[str] = []
        """Inputs without which the cluster cannot be planned."""
        for number, path in enumerate(paths, start=1):
            make_marker = next(
                (make for pattern, make in _FORMS if re.fullmatch(pattern, path)), None
            )
            if make_marker is None:
                self.shape.append(path)
            else:
                self._paths_by_marker[make_marker(path, number)] = path
        self._pattern = re.compile("|".join(map(re.escape, self._paths_by_marker)) or r"(?!)")

    @property
    def paths(self) -> list[str]:
        """The paths of inputs that have a marker."""
        return list(self._paths_by_marker.values())

    def text(self, path: str) -> str:
        """The marker of the input at ``path``, one of `paths`."""
        return next(
            marker for marker, marked_path in self._paths_by_marker.items() if marked_path == path
        )

    def placed(self, value: Any, path: str = "") -> Any:
        """``value`` with its unknown parts replaced with markers."""
        if isinstance(value, Mapping):
            return {
                key: self.placed(entry, f"{path}.{key}" if path else str(key))
                for key, entry in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.placed(element, f"{path}[{index}]") for index, element in enumerate(value)]
        if pulumi.contains_unknowns(value):
            return self.text(path)
        return value

    def hidden(self, value: Any) -> Any:
        """``value`` with each text that contains a marker replaced with an unknown output."""
        return self._walked(value, lambda mapping: mapping)

    def gate_inputs(self, props: Inputs) -> Properties:
        """The gate's inputs: a plan with unknown hosts, and without unknown extra properties."""
        inputs = {
            **props,
            "unknown": [*props.get("unknown", ()), *self.paths],
            "plan": self._walked(props["plan"], self._host),
        }
        if "containers" in props:
            inputs["containers"] = self.hidden(props["containers"])
        return inputs

    def transformation(
        self, args: pulumi.ResourceTransformationArgs
    ) -> pulumi.ResourceTransformationResult | None:
        """Changes the inputs of every resource of the cluster."""
        if args.type_ in (GATE_TYPE, PROVIDER_TYPE):
            props: Any = self.gate_inputs(args.props)
        elif args.type_.startswith(f"{PACKAGE}:"):
            return None
        else:
            props = self.hidden(args.props)
        return pulumi.ResourceTransformationResult(props, args.opts)

    def _host(self, value: Inputs) -> Inputs:
        """``value``, a map in a plan, with a marked host in the form that the gate reads."""
        if isinstance(host := value.get("host"), str) and (match := self._pattern.search(host)):
            return {**value, "host": UnknownHost(self._paths_by_marker[match[0]]).written}
        return value

    def _is_extra(self, pair: Any) -> bool:
        """True if ``pair`` is an extra property of a plan with an unknown value."""
        is_pair = isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[1], str)
        return is_pair and self._paths_by_marker.get(pair[1], "").startswith("extra.")

    def _walked(self, value: Any, change: Callable[[Inputs], Inputs]) -> Any:
        def walk(value: Any) -> Any:
            if isinstance(value, str):
                return unknown() if self._pattern.search(value) else value
            if isinstance(value, Mapping):
                return {key: walk(entry) for key, entry in change(value).items()}
            if isinstance(value, list | tuple):
                return [walk(element) for element in value if not self._is_extra(element)]
            if isinstance(value, pulumi.Output):
                return value.apply(
                    lambda known_value: (
                        unknown() if isinstance(known_value, Unknown) else walk(known_value)
                    ),
                    run_with_unknowns=True,
                )
            if is_input_type(type(value)):
                duplicate = copy.copy(value)
                vars(duplicate).update({key: walk(field) for key, field in vars(value).items()})
                return duplicate
            return value

        return walk(value)
