"""Components that register their resources once the inputs that decide them are known."""

import importlib
from operator import itemgetter
from typing import Any

import pulumi

from earshot.extras import needed_for
from earshot_pulumi.outputs import (
    contains_output,
    read_inputs,
    unknown,
    unknown_paths,
    with_run_errors,
)
from earshot_pulumi.provider.kind import Inputs, Outputs
from earshot_pulumi.provider.resource import output_names, type_token


class DeferredComponent(pulumi.ComponentResource):
    """A component of the schema whose inputs decide which resources it has, e.g. `AwsNetwork`.

    A preview that does not know these inputs shows no children.
    """

    _module = ""
    """The module in `earshot_pulumi` with its resources, which needs extras."""
    _late_inputs: tuple[str, ...] = ()
    """Inputs that decide no resource, so that a preview need not know them."""
    _partly_known: tuple[str, ...] = ()
    """Outputs of which a preview knows only parts."""

    def __init__(self, name: str, args: Inputs, opts: pulumi.ResourceOptions | None = None) -> None:
        """Raises pulumi.RunError with every problem of the inputs, or if an extra is missing."""
        inputs = _set(read_inputs(args, name))
        late_inputs = {key: value for key, value in inputs.items() if key in self._late_inputs}
        deciding_inputs = {key: value for key, value in inputs.items() if key not in late_inputs}
        if not contains_output(deciding_inputs):
            with_run_errors(self._read)(name, inputs)
        module = with_run_errors(self._imported)()
        super().__init__(type_token(type(self).__name__), name, inputs, opts)
        names = output_names(type(self))
        create = with_run_errors(
            lambda values: self._create_resources(module, name, {**_set(values), **late_inputs})
        )

        def planned(values: Inputs) -> Outputs:
            if paths := sorted(unknown_paths(values)):
                text = f"planned in the update, as {', '.join(paths)} is not known yet"
                pulumi.log.info(text, self)
                return {key: unknown() for key in names}
            return create(values)

        outputs: Outputs
        if contains_output(deciding_inputs):
            created = pulumi.Output.all(**deciding_inputs).apply(planned, run_with_unknowns=True)
            outputs = {key: created.apply(itemgetter(key)) for key in names}
        else:  # separate outputs, because a preview may know only some of them
            outputs = create(deciding_inputs)
        for key in names:
            is_partly_known = key in self._partly_known
            output = outputs[key] if is_partly_known else pulumi.Output.from_input(outputs[key])
            setattr(self, key, output)
        self.register_outputs({key: getattr(self, key) for key in names})

    def _read(self, name: str, args: Inputs) -> Any:
        """The spec of ``args``; those in `_late_inputs` may be outputs. Raises EarshotError."""
        raise NotImplementedError

    def _create_resources(self, module: Any, name: str, args: Inputs) -> Outputs:
        """Registers all resources and returns the outputs. Raises EarshotError."""
        raise NotImplementedError

    def _imported(self) -> object:
        with needed_for(type(self).__name__):
            return importlib.import_module(f"earshot_pulumi.{self._module}")


def _set(inputs: Inputs) -> Inputs:
    return {key: value for key, value in inputs.items() if value is not None}
