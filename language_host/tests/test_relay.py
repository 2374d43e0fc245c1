"""The stack's variables that a pack gets."""

import json

from pulumi.runtime.proto import analyzer_pb2
from pulumi_python_host.relay import stack_variables


def test_stack_variables() -> None:
    request = analyzer_pb2.AnalyzerStackConfigureRequest(
        project="p", stack="s", dry_run=True, config={"p:key": "value"}
    )
    variables = stack_variables(request)
    assert json.loads(variables.pop("PULUMI_CONFIG")) == {"p:key": "value"}
    assert variables == {
        "PULUMI_PROJECT": "p",
        "PULUMI_STACK": "s",
        "PULUMI_ORGANIZATION": "organization",
        "PULUMI_DRY_RUN": "true",
    }
