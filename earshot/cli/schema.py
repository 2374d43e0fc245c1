"""`earshot schema`: the JSON Schema of a stack file."""

import json

from earshot.cli.output import emit
from earshot.config.schema import stack_file_schema


def run() -> None:
    emit(json.dumps(stack_file_schema(), indent=2, ensure_ascii=False) + "\n")
