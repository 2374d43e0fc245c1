"""The component `AwsEndpoint`: an endpoint for clients in another VPC, for any program.

Pulumi reads the schema from the annotations and docstrings below. They must not be strings, so this
module does not postpone annotations.
"""

from collections.abc import Iterator
from typing import Any, NotRequired, TypedDict

import pulumi
from pydantic import ValidationError

from earshot.config.endpoint import EndpointNetwork, EndpointSpec
from earshot.errors import SpecError
from earshot.listeners.problems import describe, read_model, unknown_key
from earshot.placement.endpoint import EndpointPlan, plan_endpoint
from earshot.validation.contract import Contract
from earshot_pulumi.deferred_component import DeferredComponent
from earshot_pulumi.deployment import full_name_of
from earshot_pulumi.outputs import contains_output, problems_added
from earshot_pulumi.provider.kind import Inputs, Outputs, Properties


class AwsEndpointArgs(TypedDict):
    """The inputs of `AwsEndpoint`."""

    service_name: pulumi.Input[str]
    """The name of the endpoint service, from the output `endpoint_service` of an `AwsCluster`."""
    contract: pulumi.Input[Properties]
    """The output `contract` of the cluster, such as that of a StackReference."""
    vpc_id: pulumi.Input[str]
    """The id of the clients' VPC. Its two DNS attributes must be on."""
    subnets: pulumi.Input[list[pulumi.Input[str]]]
    """Ids of subnets of that VPC, one per zone, in zones of the endpoint service."""
    clients: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By a name of your choice, CIDR blocks of the clients."""
    groups: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """By a name of your choice, ids of the clients' security groups."""
    listeners: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """Listeners of the contract behind the endpoint service. Default: all external listeners
    with one name for all brokers and a separate port for the bootstrap."""
    zone: NotRequired[pulumi.Input[str]]
    """The private zone to make: the advertised name, or a domain above it. Default: the name."""
    private_dns: NotRequired[pulumi.Input[bool]]
    """true: AWS resolves the service's private DNS name in the VPC after the endpoint was accepted,
    and no zone is made. Default: false."""
    zone_ids: NotRequired[pulumi.Input[list[pulumi.Input[str]]]]
    """Ids of the availability zones of the endpoint service (`endpoint_service.zone_ids`), with
    which the zones of the subnets are compared. Default: no comparison."""


class AwsEndpoint(DeferredComponent):
    """An interface endpoint of a cluster's endpoint service, its security group, and the private
    zone with the names that the brokers advertise."""

    endpoint_id: pulumi.Output[str]
    """The id of the endpoint."""
    state: pulumi.Output[str]
    """`available`, or `pendingAcceptance` until the service's owner accepts the endpoint."""
    security_group_id: pulumi.Output[str]
    """The id of the endpoint's security group."""
    bootstrap: pulumi.Output[dict[str, str]]
    """Bootstrap addresses by listener, known when the names resolve to the endpoint."""
    contract: pulumi.Output[Properties]
    """The contract of the listeners behind the endpoint, for a `Proof` in this VPC."""

    _module = "aws.endpoint_resources"
    _late_inputs = ("service_name", "vpc_id", "subnets", "zone_ids")

    def __init__(
        self, name: str, args: AwsEndpointArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Raises pulumi.RunError with every problem of the inputs, for names that the brokers do
        not advertise, and without the extra `aws`."""
        super().__init__(name, args, opts)

    def _read(self, name: str, args: Inputs) -> tuple[EndpointSpec, EndpointPlan]:
        subject = f"AwsEndpoint {name}"
        keys = list(AwsEndpointArgs.__annotations__)
        problems = [f"{key}: {unknown_key(key, keys)}" for key in args if key not in keys]
        problems += self._network_problems(args)
        document = args.get("contract")
        try:
            contract = Contract.model_validate(document)
        except ValidationError as error:
            lines = describe(error, Contract, document)[:5]
            problems += [f"contract: {line}" for line in lines]
        with problems_added(problems):
            inputs = {key: args[key] for key in EndpointSpec.model_fields if key in args}
            spec = read_model(EndpointSpec, inputs, subject)
        if problems:
            raise SpecError.of(subject, problems)
        return spec, plan_endpoint(contract, spec, subject)

    def _network_problems(self, args: Inputs) -> Iterator[str]:
        """The problems of the late inputs, except of those that are outputs."""
        late_inputs = {key: args[key] for key in self._late_inputs if key in args}
        known = {key: value for key, value in late_inputs.items() if not contains_output(value)}
        try:
            EndpointNetwork.model_validate(known)
        except ValidationError as error:
            for problem in describe(error, EndpointNetwork, known):
                if problem.partition(":")[0] not in late_inputs.keys() - known.keys():
                    yield problem

    def _create_resources(self, module: Any, name: str, args: Inputs) -> Outputs:
        spec, plan = self._read(name, args)
        network = {key: args[key] for key in self._late_inputs if key in args}
        opts = pulumi.ResourceOptions(parent=self)
        endpoint = module.Endpoint(full_name_of(name), spec, plan, network, opts)
        outputs: Outputs = endpoint.outputs
        return outputs
