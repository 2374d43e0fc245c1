"""The validation of a stack on AWS: as any other, with the stack's credentials for its bucket."""

import os
from collections.abc import Mapping

from earshot_pulumi.aws.credentials import environment
from earshot_pulumi.validation import ValidationProvider


class AwsValidationProvider(ValidationProvider):
    def environment(self) -> Mapping[str, str]:
        return environment(self._config, os.environ)
