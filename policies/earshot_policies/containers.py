"""Evaluates containers of any program: each when it is registered, and all at the end."""

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from earshot_pulumi.gate import GATE_TYPE
from pulumi_policy import PolicyProviderResource, ResourceValidationArgs

from earshot.checks.containers import ContainerRun, RegisteredContainer
from earshot.checks.instance_stack import StackEvaluation
from earshot.engine import connection
from earshot.json_object import Document
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.sources.docker_container import is_one_of, read_service
from earshot.sources.stack_resources import RegisteredStack
from earshot_policies.evaluation import Evaluation, plain

CONTAINER_TYPE = "docker:index/container:Container"


class Containers:
    """The containers of one run."""

    def __init__(self) -> None:
        self._run = ContainerRun()

    def evaluate(
        self,
        args: ResourceValidationArgs,
        inputs: Document,
        policy: ResolverPolicy,
        built: Iterable[str] = (),
    ) -> Evaluation:
        """The evaluation of the single container in ``args``.

        ``built`` are the names of images that the stack has built so far.
        """
        engine_id = _engine_id(args.provider)
        service = read_service(inputs, args.name)
        service = replace(service, is_built=is_one_of(service.container.image, built))
        result = self._run.register(
            RegisteredContainer(args.urn, service, engine_id, f"{GATE_TYPE}$" in args.urn),
            policy,
            self._own_addresses if connection.is_here(engine_id) else (),
        )
        return Evaluation(result.findings, result.remarks)

    @property
    def brokers(self) -> tuple[str, ...]:
        """The URNs of the containers that run a broker or a controller."""
        return self._run.brokers

    @cached_property
    def _own_addresses(self) -> tuple[str, ...]:
        """The addresses of this machine."""
        return own_addresses()

    def evaluate_stack(self, stack: RegisteredStack) -> StackEvaluation:
        """The evaluation of all containers together."""
        return self._run.evaluate_stack(stack)


def _engine_id(provider: PolicyProviderResource | None) -> str:
    """The identity of a provider's engine: its context or address; the URN if that is unknown."""
    props = plain(provider.props, None) if provider is not None else {}
    if provider is not None and None in (props.get("context", ""), props.get("host", "")):
        return provider.urn
    configured_id = props.get("context") or props.get("host")
    return str(configured_id or os.environ.get(connection.VARIABLE) or connection.DEFAULT)
