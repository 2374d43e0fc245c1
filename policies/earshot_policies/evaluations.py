"""One evaluation per resource and run. Every policy of the pack reports a part of it."""

import functools
import os
from collections.abc import Iterator
from dataclasses import replace

from earshot_pulumi.gate import GATE_TYPE, PROVIDER_TYPE
from pulumi_policy import PolicyProviderResource, ResourceValidationArgs, StackValidationArgs

from earshot.checks.containers import ContainerRun, RegisteredContainer
from earshot.checks.instance_stack import StackEvaluation
from earshot.checks.instances import InstanceRun
from earshot.engine import connection
from earshot.json_object import Document, JsonObject
from earshot.names.machine import own_addresses
from earshot.names.policy import ResolverPolicy
from earshot.rules.grouped import cause
from earshot.rules.rule import Finding
from earshot.sources import docker_container, stack_resources
from earshot.sources.stack_resources import INSTANCE, RegisteredStack
from earshot_policies import instances, ungated, workloads
from earshot_policies.evaluation import Evaluation, evaluate_gate, has, plain, registered
from earshot_policies.instances import USER_DATA
from earshot_policies.launches import (
    TASK_DEFINITION,
    TEMPLATES,
    evaluate_task,
    evaluate_template,
    place_in_task,
)

CONTAINER_TYPE = ungated.CONTAINER_TYPE
GATES = frozenset({GATE_TYPE, PROVIDER_TYPE})
"""The component around a gate, and the gate."""
EVALUATED = GATES | frozenset({CONTAINER_TYPE, INSTANCE, TASK_DEFINITION, *TEMPLATES})
"""Types of resources that the rules evaluate."""
TYPES = stack_resources.TYPES | docker_container.TYPES | (EVALUATED - GATES)
"""Types of resources that are needed at the end."""


class Evaluations:
    """The evaluations of one run, by the resource's URN; a pack's process serves one run."""

    def __init__(self) -> None:
        self._policies: dict[str, ResolverPolicy] = {}
        self._inputs: dict[str, JsonObject] = {}
        self._evaluations: dict[str, Evaluation] = {}
        self._containers = ContainerRun()
        self._instances = InstanceRun()
        self._workloads = workloads.Workloads()
        self._outcome: StackEvaluation | None = None
        self._unread: dict[str, bool] = {}
        """By URN of a container, or a resource that no check reads, whether it sets listeners."""
        self._findings_by_cause: dict[object, dict[str, Finding]] = {}

    def configure(self, urn: str, policy: ResolverPolicy) -> None:
        """Set the resolvers for the resource ``urn``, before its evaluation."""
        self._policies[urn] = policy

    def evaluation(self, args: ResourceValidationArgs) -> Evaluation:
        """The evaluation of the resource in ``args``, made once; empty for types that are not
        `EVALUATED`."""
        if workloads.is_workload(args.resource_type):
            provider = args.provider.urn if args.provider is not None else ""
            self._workloads.register(args.urn, plain(args.props, workloads.HIDDEN), provider)
        if args.resource_type in TYPES and args.urn not in self._inputs:
            self._inputs[args.urn] = plain(args.props, None)
        is_read = args.resource_type in EVALUATED and args.resource_type != CONTAINER_TYPE
        if args.urn not in self._unread and not is_read and ungated.is_other(args.resource_type):
            self._unread[args.urn] = ungated.sets_listeners(plain(args.props, None))
        if args.resource_type not in EVALUATED:
            return Evaluation()
        if args.urn not in self._evaluations:
            self._evaluations[args.urn] = self._evaluate(args)
        return self._evaluations[args.urn]

    def outcome(self, args: StackValidationArgs) -> StackEvaluation:
        """The evaluation of all resources of the stack together, made once at its end."""
        if self._outcome is None:
            stack = RegisteredStack(
                registered(resource, self._inputs.get(resource.urn))
                for resource in args.resources
                if resource.resource_type in TYPES
            )
            containers = self._containers.evaluate_stack(stack)
            reported = {*self._containers.brokers, *(urn for urn, _ in containers.remarks)}
            unread = [urn for urn, is_set in self._unread.items() if is_set and urn not in reported]
            results = (
                instances.evaluate_run(self._instances, stack, self._policies),
                containers,
                self._workloads.evaluate_stack(),
                ungated.evaluate_stack(unread, args.resources),
            )
            self._outcome = StackEvaluation(
                tuple(finding for result in results for finding in result.findings),
                tuple(remark for result in results for remark in result.remarks),
            )
        return self._outcome

    @property
    def brokers(self) -> tuple[str, ...]:
        """The URNs of containers and instances that run a broker or a controller."""
        holders = (broker.holder for broker in self._instances.brokers)
        return (*self._containers.brokers, *dict.fromkeys(holders))

    def first_urn(self, urn: str, finding: Finding) -> str:
        """The URN of the first resource of this run with the cause of ``finding``.

        That may be ``urn``, the resource of ``finding``.
        """
        findings = self._findings_by_cause.setdefault(cause(finding), {})
        findings.setdefault(urn, finding)
        return next(iter(findings))

    def repeated(self) -> Iterator[tuple[Finding, list[str]]]:
        """For each cause that affects several resources: its first finding, and all URNs."""
        for findings in self._findings_by_cause.values():
            if len(findings) > 1:
                yield next(iter(findings.values())), list(findings)

    def place(self, urn: str, finding: Finding) -> str:
        """The path of the property of the resource ``urn`` that ``finding`` reports, or ""."""
        inputs = self._inputs.get(urn, {})
        type = urn.split("::")[2].rpartition("$")[2]
        if workloads.is_workload(type):
            return self._workloads.place(urn, finding)
        if type == INSTANCE or type in TEMPLATES:
            return next((key for key in USER_DATA if key in inputs), "")
        if type == TASK_DEFINITION:
            return place_in_task(inputs, finding)
        return docker_container.property_path(inputs, finding.inputs)

    def _evaluate(self, args: ResourceValidationArgs) -> Evaluation:
        policy = self._policies.get(args.urn, ResolverPolicy())
        if args.resource_type == PROVIDER_TYPE and (
            f"{GATE_TYPE}$" in args.urn or not has(args.props, "plan")
        ):
            return Evaluation()  # checked as the component around it, or not a gate
        if args.resource_type in GATES:
            return evaluate_gate(args.props, policy)
        inputs = self._inputs[args.urn]
        if args.resource_type == INSTANCE:
            gate = self._evaluations.get(args.opts.parent or "", Evaluation())
            return instances.evaluate(self._instances, args.urn, inputs, policy, gate.plan)
        if args.resource_type in TEMPLATES:
            return evaluate_template(args.resource_type, inputs)
        if args.resource_type == TASK_DEFINITION:
            return evaluate_task(inputs)
        return self._container(args, inputs, policy)

    def _container(
        self, args: ResourceValidationArgs, inputs: Document, policy: ResolverPolicy
    ) -> Evaluation:
        """The evaluation of the single container in ``args``."""
        engine_id = _engine_id(args.provider)
        service = docker_container.read_service(inputs, args.name)
        is_built = docker_container.is_one_of(service.container.image, self._built())
        service, is_gated = replace(service, is_built=is_built), f"{GATE_TYPE}$" in args.urn
        result = self._containers.register(
            RegisteredContainer(args.urn, service, engine_id, is_gated),
            policy,
            _own_addresses() if connection.is_here(engine_id) else (),
        )
        return Evaluation(result.findings, result.remarks)

    def _built(self) -> Iterator[str]:
        """The names of the images that the stack has built so far."""
        for urn, inputs in self._inputs.items():
            if urn.split("::")[2].rpartition("$")[2] in docker_container.BUILT_IMAGES:
                yield from docker_container.built_names(inputs)


@functools.cache
def _own_addresses() -> tuple[str, ...]:
    """The addresses of this machine."""
    return own_addresses()


def _engine_id(provider: PolicyProviderResource | None) -> str:
    """The identity of a provider's engine: its context or address; the URN if that is unknown."""
    props = plain(provider.props, None) if provider is not None else {}
    if provider is not None and None in (props.get("context", ""), props.get("host", "")):
        return provider.urn
    configured_id = props.get("context") or props.get("host")
    return str(configured_id or os.environ.get(connection.VARIABLE) or connection.DEFAULT)
