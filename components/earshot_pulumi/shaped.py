"""Components whose inputs decide which resources they have, e.g. `AwsNetwork`."""

import importlib
from collections.abc import Mapping
from typing import Any

import pulumi

from earshot.extras import needed_for
from earshot_pulumi.outputs import contains_output, made_from, read_inputs, with_run_errors
from earshot_pulumi.provider.kind import Inputs
from earshot_pulumi.provider.resource import output_names, snake_case, type_token


class ShapedComponent(pulumi.ComponentResource):
    """A component of the schema. A preview that does not know its inputs shows no children."""

    _module = ""
    """The module in `earshot_pulumi` with its resources, which needs extras."""
    _late_inputs: tuple[str, ...] = ()
    """Inputs that decide no resource, so that a preview need not know them."""
    _partly_known: tuple[str, ...] = ()
    """Outputs of which a preview knows only parts."""

    def __init__(self, name: str, args: Inputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Raises pulumi.RunError with every problem of the inputs, or if an extra is missing."""
        inputs = {snake_case(key): value for key, value in read_inputs(args, name).items()}
        late_inputs = {key: value for key, value in inputs.items() if key in self._late_inputs}
        shaping_inputs = {key: value for key, value in inputs.items() if key not in late_inputs}
        if not contains_output(shaping_inputs):
            with_run_errors(self._read)(name, inputs)
        module = with_run_errors(self._imported)()
        super().__init__(type_token(type(self).__name__), name, inputs, opts)
        names = output_names(type(self))
        outputs = made_from(
            self,
            shaping_inputs,
            lambda values: self._create_resources(module, name, {**values, **late_inputs}),
            names,
        )
        for key in names:
            is_partly_known = key in self._partly_known
            output = outputs[key] if is_partly_known else pulumi.Output.from_input(outputs[key])
            setattr(self, key, output)
        self.register_outputs({key: getattr(self, key) for key in names})

    def _read(self, name: str, args: Inputs) -> Any:
        """The spec of ``args``; those in `_late_inputs` may be outputs. Raises EarshotError."""
        raise NotImplementedError

    def _create_resources(
        self, module: object, name: str, args: Mapping[str, object]
    ) -> Mapping[str, object]:
        """Registers all resources and returns the outputs. Raises EarshotError."""
        raise NotImplementedError

    def _imported(self) -> object:
        with needed_for(type(self).__name__):
            return importlib.import_module(f"earshot_pulumi.{self._module}")
