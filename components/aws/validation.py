"""The validation of a stack on AWS: as any other, with the stack's credentials for its bucket."""

import os
from collections.abc import Mapping

from components.aws.credentials import environment
from components.validation import ValidationProvider


class AwsValidationProvider(ValidationProvider):
    def environment(self) -> Mapping[str, str]:
        return environment(self._config, os.environ)
