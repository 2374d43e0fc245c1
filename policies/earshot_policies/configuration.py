"""The pack's configuration as Pulumi hands it over.

Pulumi checks the properties of each policy, but passes on a level for a name that no policy has.
This is the one file that knows how `pulumi_policy` receives both.
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
        """The level of the policy ``name``, whose own one is ``default``."""
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
        """Let the pack that this process serves next report its configuration here."""
        configuration = self

        class Servicer(_Servicer):  # type: ignore[misc]
            def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802 - as the SDK calls it
                given = request.policyConfig
                if problem := configuration.check(given):
                    context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"policy pack: {problem}")
                for key in [key for key in given if key != key.lower()]:
                    given[key.lower()].CopyFrom(given.pop(key))
                # `all` disables `names`, too, whose resolvers and waivers other policies need
                if given["names"].enforcementLevel == proto.DISABLED:
                    given["names"].enforcementLevel = proto.MANDATORY
                result = super().Configure(request, context)
                configuration._levels = {
                    key: self._convert_enforcement_level(item.enforcementLevel)
                    for key, item in given.items()
                }
                return result

        policy._PolicyAnalyzerServicer = Servicer  # type: ignore[misc]
