"""`Listeners`: computes and checks the settings of brokers that the program makes itself.

Pulumi reads the schema from the annotations and docstrings below. They must not be strings, so this
module does not postpone annotations.
"""

from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, NotRequired, TypedDict, cast

import pulumi

from earshot.errors import EarshotError, SpecError
from earshot.listeners.model import ClusterPlan
from earshot.listeners.problems import shown, unknown_key
from earshot.listeners.render import environment, server_properties
from earshot.listeners.terms import Scope
from earshot.placement.given import plan_given, read_given
from earshot.validation.contract import GIVEN, Contract
from earshot_pulumi.cluster_args import AddressArgs
from earshot_pulumi.gate import Gate
from earshot_pulumi.given.unknown_nodes import (
    addressed,
    has_unknown_roles,
    is_unknown,
    known_node,
    known_parts,
    possible_roles,
    without_guesses,
)
from earshot_pulumi.outputs import (
    contains_output,
    plan_input,
    problems_added,
    read_inputs,
    unknown_paths,
    with_run_errors,
)
from earshot_pulumi.policy_args import PolicyArgs, policy_document, policy_problems
from earshot_pulumi.provider.kind import Inputs, Properties
from earshot_pulumi.provider.resource import output_names, type_token

VANTAGES = {"machine": "local", "network": "docker", "vpc": "aws", "elsewhere": "given"}
"""Maps the place of clients of scope internal to the placement with the same predictions."""
MAY_BE_OUTPUTS = ("nodes", "listeners", "extra", "declared", "policy")
"""Inputs that may be or contain outputs."""
WHOLE = ("declared", "policy")
"""Inputs that may contain outputs, but must not be an output as a whole."""
NETWORK = "the brokers' network"
"""The network of all containers; no rule depends on its name."""


class BrokerContainerArgs(TypedDict):
    """The parts of a node's container on which its listeners depend."""

    names: list[pulumi.Input[str]]
    """Name of the container, and its aliases on the brokers' network."""
    ports: NotRequired[dict[str, pulumi.Input[int]]]
    """Port of the Docker host by port of the container, for each published port."""


class BrokerNames(TypedDict):
    """The names of one node; each may be an output of another resource."""

    internal: NotRequired[pulumi.Input[str]]
    """Host for clients on the brokers' network, and for the brokers themselves."""
    host: NotRequired[pulumi.Input[str]]
    """Host for clients on the machine that runs the broker."""
    external: NotRequired[pulumi.Input[str]]
    """Host for clients outside the brokers' network."""
    controller: NotRequired[pulumi.Input[str]]
    """Host of the node in the quorum's voters. Default: the internal host."""
    ports: NotRequired[dict[str, int]]
    """Advertised port by listener name, if it differs from the port that the broker binds."""
    rack: NotRequired[pulumi.Input[str]]
    """Failure domain of the node, such as an availability zone."""
    log_dir: NotRequired[str]
    """Data directory of the node. Default: /var/lib/kafka/data."""
    addresses: NotRequired[list[pulumi.Input[str]]]
    """IP addresses of the node: its names must resolve to one of them."""
    roles: NotRequired[list[str]]
    """broker, controller or both. Default: broker, and the first three brokers are controllers."""
    container: NotRequired[BrokerContainerArgs]
    """Names and published ports of the node's container, only with vantage network. The gate
    compares them with the listeners (KL006). Without them, a remark says that it did not."""


class ListenerArgs(TypedDict):
    """One listener of all brokers."""

    name: str
    """Name of the listener, as in INTERNAL."""
    port: int
    """Port that brokers bind and, without an entry in a node's `ports`, advertise."""
    scopes: list[str]
    """Clients that the listener serves: internal, host, external, or several of them."""
    protocol: NotRequired[str]
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL. Default: PLAINTEXT."""
    bind: NotRequired[str]
    """Address to bind. Default: all interfaces."""
    advertised: NotRequired[dict[str, str]]
    """Host or host:port by broker id, to advertise instead of the node's name."""
    address: NotRequired[AddressArgs]
    """How the advertised addresses tell brokers apart, such as a balancer's name with a port per
    broker; `host` may be an output. Default: each broker has a name of its own."""


class QuorumArgs(TypedDict):
    """The listener of the KRaft quorum."""

    name: NotRequired[str]
    """Name of the listener. Default: CONTROLLER."""
    port: NotRequired[int]
    """Port of the listener. Default: 29092."""
    protocol: NotRequired[str]
    """Security protocol of the listener. Default: PLAINTEXT."""


class ListenersArgs(TypedDict):
    """The inputs from which the listeners are computed."""

    nodes: pulumi.Input[dict[str, pulumi.Input[BrokerNames]]]
    """The nodes of the cluster by node id."""
    listeners: list[ListenerArgs]
    """The listeners of all brokers; one of them serves scope internal."""
    controllers: NotRequired[QuorumArgs]
    """The listener of the KRaft quorum."""
    inter_broker: NotRequired[str]
    """Listener between brokers. Default: the first of scope internal."""
    kafka_version: NotRequired[str]
    """Kafka release of the brokers, 3.9.x or 4.x.y."""
    replication_factor: NotRequired[int]
    """Replicas of new topics. Default: 3, or the number of brokers if there are fewer."""
    min_insync_replicas: NotRequired[int]
    """In-sync replicas for a write. Default: one less than the replication factor, at least 1."""
    extra: NotRequired[pulumi.Input[dict[str, pulumi.Input[str]]]]
    """Further broker properties. Computed ones and secrets in clear text are refused."""
    vantage: NotRequired[str]
    """Where clients of scope internal run: machine (the machine that runs this program, with the
    brokers), network (the brokers' Docker network), vpc, or elsewhere. Default: elsewhere."""
    declared: NotRequired[dict[str, pulumi.Input[str]]]
    """By scope, why its names resolve although they cannot be looked up from here, such as "records
    of the private zone in this stack". A scope whose resolvers answer needs none."""
    policy: NotRequired[PolicyArgs]
    """The configuration of the gate."""


class Listeners(pulumi.ComponentResource):
    """Advertised listeners of brokers that the program makes itself, or that already exist.

    All outputs wait for the gate: a name that clients cannot resolve ends the preview or the
    update before any resource that depends on an output is touched.
    """

    properties: pulumi.Output[dict[str, str]]
    """The server.properties of each node, by node id."""
    environment: pulumi.Output[dict[str, dict[str, str]]]
    """The same settings as KAFKA_* variables of the apache/kafka image, by node id."""
    envs: pulumi.Output[dict[str, list[str]]]
    """The same variables as NAME=value texts, the form of `docker.Container`, by node id."""
    bootstrap: pulumi.Output[dict[str, str]]
    """Bootstrap addresses by listener name."""
    contract: pulumi.Output[Properties]
    """The addresses that clients of each listener should see: an input of `Proof` and of
    `earshot doctor`."""
    approved: pulumi.Output[str]
    """Digest of the plan that the gate has approved in this run."""

    def __init__(
        self, name: str, args: ListenersArgs, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        args = cast("ListenersArgs", read_inputs(args, name))
        super().__init__(type_token("Listeners"), name, dict(args), opts)
        _check_inputs(name, args)
        inputs: pulumi.Output[Any] = pulumi.Output.all(**_plan_values(args))
        plan: pulumi.Output[Any] = inputs.apply(
            lambda values: with_run_errors(_plan)(name, args, values), run_with_unknowns=True
        )
        gate = Gate(
            f"{name}-gate",
            {
                "plan": plan.apply(plan_input),
                "placement": VANTAGES[args.get("vantage", "elsewhere")],
                "policy": policy_document(args),
                "declared": args.get("declared") or {},
                # read after the plan has accepted the nodes: before that they may have any type
                "addresses": pulumi.Output.all(inputs, plan).apply(
                    lambda values: _addresses(*values), run_with_unknowns=True
                ),
                "containers": pulumi.Output.all(inputs, plan).apply(
                    lambda values: _containers(*values), run_with_unknowns=True
                ),
                "unknown": inputs.apply(
                    lambda values: list(unknown_paths(values)) or None, run_with_unknowns=True
                ),
            },
            pulumi.ResourceOptions(parent=self),
        )
        # with `inputs` the outputs are unknown while a name is: the plan itself has markers
        approved = pulumi.Output.all(inputs, plan, gate.digest)
        outputs: Any = approved.apply(lambda values: with_run_errors(_outputs)(name, values[1]))
        # a secret in `extra` is in the settings alone
        addresses: Any = pulumi.Output.all(
            pulumi.Output.unsecret(outputs), args.get("nodes"), args.get("listeners") or []
        ).apply(itemgetter(0))
        self.approved = gate.digest
        for key in ("properties", "environment", "envs"):
            setattr(self, key, outputs.apply(itemgetter(key)))
        for key in ("bootstrap", "contract"):
            setattr(self, key, addresses.apply(itemgetter(key)))
        self.register_outputs({key: getattr(self, key) for key in output_names(type(self))})


def _check_inputs(name: str, args: ListenersArgs) -> None:
    """Raises RunError for values that are not allowed; the engine shows it without a trace.

    Problems of the plan alone are left to `_plan`, which also knows the values of outputs.
    """
    problems = [*_input_problems(args), *policy_problems(args)]
    if not problems:
        return
    known = {
        key: _without_outputs(value)
        for key, value in args.items()
        if key in ListenersArgs.__annotations__
        and (key in MAY_BE_OUTPUTS or not contains_output(value))
    }
    with problems_added(problems):
        _plan(name, cast("ListenersArgs", known), _plan_values(known))
    raise pulumi.RunError(str(SpecError.of(name, problems)))


def _input_problems(args: ListenersArgs) -> Iterator[str]:
    allowed_keys = list(ListenersArgs.__annotations__)
    for key, value in args.items():
        if key not in allowed_keys:
            yield f"{key}: {unknown_key(key, allowed_keys)}"
        # an output has no value yet that could be compared or shown
        elif (key not in MAY_BE_OUTPUTS and contains_output(value)) or (
            key in WHOLE and isinstance(value, pulumi.Output)
        ):
            yield f"{key}: found an output; allowed: a value that the program knows"
    vantage: object = args.get("vantage", "elsewhere")
    if vantage not in list(VANTAGES) and not contains_output(vantage):
        yield f"vantage: found {shown(vantage)}; allowed: {', '.join(VANTAGES)}"
    nodes = mapping if isinstance(mapping := args.get("nodes"), Mapping) else {}
    for id, node in nodes.items() if vantage != "network" else ():
        if isinstance(node, Mapping) and node.get("container") is not None:
            observed = f"found with vantage {shown(vantage)}"
            yield f"nodes.{id}.container: {observed}; allowed: with vantage network"
    yield from _declared_problems(args.get("declared") or {})


def _declared_problems(declared: object) -> Iterator[str]:
    if not isinstance(declared, Mapping | pulumi.Output):
        yield f"declared: found {shown(declared)}; allowed: a map of reasons by scope"
    for scope, reason in declared.items() if isinstance(declared, Mapping) else ():
        if scope not in list(Scope):
            yield f"declared: found scope {shown(scope)}; allowed: {', '.join(Scope)}"
        elif not (isinstance(reason, str) or contains_output(reason)):
            yield f"declared.{scope}: found {shown(reason)}; allowed: text"
        elif isinstance(reason, str) and not reason.strip():
            yield f"declared.{scope}: found {shown(reason)}; allowed: the reason"


def _without_outputs(value: Any) -> Any:
    """``value`` with each output as in a preview that does not know it."""
    if isinstance(value, Mapping):
        return {key: _without_outputs(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_outputs(part) for part in value]
    return pulumi.UNKNOWN if isinstance(value, pulumi.Output) else value


def _plan_values(args: Inputs) -> Properties:
    """The inputs of the plan that may be outputs."""
    return {
        "nodes": args.get("nodes"),
        "listeners": args.get("listeners") or [],
        "extra": args.get("extra") or {},
    }


def _plan(name: str, args: ListenersArgs, values: Inputs) -> ClusterPlan:
    """The plan, with markers for unknown hosts.

    It is unknown if a preview knows too little of the nodes and listeners. Raises EarshotError for
    inputs that are wrong for any value of the unknown ones.
    """
    settings = {
        key: value
        for key, value in dict(args).items()
        if key not in ("nodes", "listeners", "extra", "vantage", "declared", "policy")
    }
    unknown_plan = cast("ClusterPlan", pulumi.UNKNOWN)
    nodes = values["nodes"]
    if is_unknown(nodes):
        return unknown_plan
    if "listeners" in args:
        settings["listeners"] = listeners = addressed(values["listeners"])
        if pulumi.contains_unknowns(listeners):
            return unknown_plan
    extra = known_parts(values["extra"])
    settings["extra"] = {} if is_unknown(extra) else extra
    errors: dict[str, EarshotError] = {}
    for roles in possible_roles(nodes):
        if isinstance(nodes, Mapping):
            settings["nodes"] = {id: known_node(id, node, roles) for id, node in nodes.items()}
        else:
            settings["nodes"] = nodes
        try:
            return without_guesses(plan_given(read_given(settings, name)), nodes)
        except EarshotError as error:
            errors[str(error)] = error
    if len(errors) > 1:
        return unknown_plan
    raise errors.popitem()[1]


def _outputs(name: str, plan: ClusterPlan) -> Properties:
    contract = Contract.of(plan, name, GIVEN)
    variables_by_id = {str(node.id): environment(plan, node) for node in plan.nodes}
    return {
        "properties": {str(node.id): server_properties(plan, node) for node in plan.nodes},
        "environment": variables_by_id,
        "envs": {
            id: [f"{name}={value}" for name, value in variables.items()]
            for id, variables in variables_by_id.items()
        },
        "bootstrap": {listener.name: listener.bootstrap for listener in contract.listeners},
        "contract": contract.model_dump(mode="json"),
    }


def _containers(values: Inputs, plan: ClusterPlan) -> Properties | pulumi.output.Unknown:
    """The inputs of an equivalent `docker.Container` for each node with `container`, by node id."""
    if is_unknown(plan):
        return pulumi.UNKNOWN
    inputs: Properties = {}
    for node in plan.nodes:
        node_inputs = values["nodes"][str(node.id)]
        container = node_inputs if is_unknown(node_inputs) else node_inputs.get("container")
        if container is None:
            continue
        if pulumi.contains_unknowns(container) or has_unknown_roles(node_inputs):
            inputs[str(node.id)] = pulumi.UNKNOWN
            continue
        names = container.get("names") or (None,)
        inputs[str(node.id)] = {
            "name": names[0],
            "envs": [f"{name}={value}" for name, value in environment(plan, node).items()],
            "ports": [
                {"internal": int(port), "external": published_port}
                for port, published_port in (container.get("ports") or {}).items()
            ],
            "networksAdvanced": [{"name": NETWORK, "aliases": list(names)}],
        }
    return inputs


def _addresses(values: Inputs, plan: ClusterPlan) -> dict[str, list[str]]:
    """The known addresses of each node, by its id."""
    if is_unknown(plan):
        return {}
    return {
        id: list(addresses)
        for id, node in values["nodes"].items()
        if not is_unknown(node)
        and (addresses := node.get("addresses"))
        and not pulumi.contains_unknowns(addresses)
    }
