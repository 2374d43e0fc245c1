"""The pack's configuration, as the pack gets it from Pulumi.

Pulumi checks the properties of each policy, but accepts a level for a name that no policy has.
Only this file depends on how `pulumi_policy` receives both.
"""

from collections.abc import Iterable
from typing import Any

import grpc
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel, policy

from earshot.checks.policy_config import repeated_ids, unknown_ids
from earshot.errors import EarshotError
from earshot_policies.findings_file import FindingsFiles

_Servicer: Any = policy._PolicyAnalyzerServicer


class Configuration:
    """The levels of one run, and the files that findings are written to."""

    def __init__(self) -> None:
        self.files = FindingsFiles()
        self._levels: dict[str, EnforcementLevel] = {}

    def level(self, name: str, default: EnforcementLevel) -> EnforcementLevel:
        """The configured level of the policy ``name``, else ``default``."""
        return self._levels.get(name, default)

    def check(self, keys: Iterable[str]) -> str:
        """Why ``keys`` or the environment are not a configuration; an empty text if they are."""
        all_keys = list(keys)
        # the engine adds each id in lower case, also if the file has another spelling
        spellings = [key for key in all_keys if key != key.lower()]
        problems = [*unknown_ids(all_keys), *repeated_ids(spellings)]
        try:
            self.files = FindingsFiles.of_environment()
        except EarshotError as error:
            problems.append(str(error))
        return "; ".join(problems)

    def install(self) -> None:
        """Make the next pack of this process pass its configuration to this object."""
        configuration = self

        class Servicer(_Servicer):  # type: ignore[misc]
            def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802 - as the SDK calls it
                configs = request.policyConfig
                if problem := configuration.check(configs):
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"policy pack: {problem}")
                for key in [key for key in configs if key != key.lower()]:
                    configs[key.lower()].CopyFrom(configs.pop(key))
                # `all` disables `names`, too, whose resolvers and waivers other policies need
                if configs["names"].enforcementLevel == proto.DISABLED:
                    configs["names"].enforcementLevel = proto.MANDATORY
                result = super().Configure(request, context)
                configuration._levels = {
                    key: self._convert_enforcement_level(config.enforcementLevel)
                    for key, config in configs.items()
                }
                return result

        policy._PolicyAnalyzerServicer = Servicer  # type: ignore[misc]
