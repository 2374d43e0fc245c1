"""Components whose inputs decide which resources there are, as `AwsNetwork`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import pulumi

from earshot.extras import needed_for
from earshot_pulumi.outputs import contains_output, made_from, read_inputs, with_run_errors
from earshot_pulumi.provider.resource import output_names, snake_case, type_token


class ShapedComponent(pulumi.ComponentResource):
    """A component of the schema; a preview that does not know its inputs shows it alone."""

    _module = ""
    """The module below `earshot_pulumi` with its resources, which needs extras."""
    _late: tuple[str, ...] = ()
    """Inputs that a preview need not know: they decide no resource."""
    _partly_known: tuple[str, ...] = ()
    """Outputs of which a preview knows parts."""

    def __init__(
        self, name: str, args: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Raises pulumi.RunError with every problem of the inputs, and without the extras."""
        given = {snake_case(key): value for key, value in read_inputs(args, name).items()}
        late = {key: item for key, item in given.items() if key in self._late}
        shape = {key: item for key, item in given.items() if key not in late}
        if not contains_output(shape):
            with_run_errors(self._read)(name, given)
        module = with_run_errors(self._imported)()
        super().__init__(type_token(type(self).__name__), name, given, opts)
        names = output_names(type(self))
        made = made_from(
            self, shape, lambda known: self._made(module, name, {**known, **late}), names
        )
        for key in names:
            whole = key not in self._partly_known
            setattr(self, key, pulumi.Output.from_input(made[key]) if whole else made[key])
        self.register_outputs({key: getattr(self, key) for key in names})

    def _read(self, name: str, args: Mapping[str, Any]) -> Any:
        """What ``args`` describe; those in `_late` may be outputs. Raises EarshotError."""
        raise NotImplementedError

    def _made(self, module: Any, name: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """The outputs, once all resources are registered. Raises EarshotError."""
        raise NotImplementedError

    def _imported(self) -> Any:
        with needed_for(type(self).__name__):
            return importlib.import_module(f"earshot_pulumi.{self._module}")
