"""A Kafka cluster as a component of any program; each placement's folder has a subclass.

The placements' other modules need extras, and are imported when a cluster is created. Pulumi reads
the schema from annotations, which must not be strings.

A program may pass its own provider. Then earshot's own calls, as in preflight, readiness and
rolling changes, must reach the same engine or account as the resources of that provider.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pulumi

from earshot.config.cluster import ClusterSpec
from earshot.config.document import read_spec
from earshot.errors import EarshotError, SpecError
from earshot.extras import needed_for
from earshot.listeners.problems import shown
from earshot.placement_registry import PLACEMENTS
from earshot_pulumi.deployment import ClusterContext
from earshot_pulumi.gate import AdvertisedListeners
from earshot_pulumi.outputs import (
    contains_output,
    problems_added,
    read_inputs,
    unknown,
    unknown_paths,
    with_run_errors,
)
from earshot_pulumi.policy_args import policy_document, policy_problems
from earshot_pulumi.provider.kind import Inputs, Outputs, Properties
from earshot_pulumi.provider.resource import output_names, type_token
from earshot_pulumi.unknown_inputs import Markers

CLIENTS: Final = ("client_properties", "certificates_expire")
"""Outputs that only a cluster with `security` exports."""
SECRET_INPUTS: Final = ("extra", "client")
Settings = Mapping[str, object]


def settings_of(provider: pulumi.ProviderResource) -> pulumi.Output[Settings]:
    """The settings of ``provider`` by schema name, with secrets in clear.

    Settings that a preview does not know are `pulumi.output.Unknown`. They are read from Pulumi's
    engine, as a component in a program of another language has only the provider's URN.
    """

    async def read(urn: str) -> Settings:
        resource = await pulumi.runtime.invoke_async("pulumi:pulumi:getResource", {"urn": urn})
        settings: Settings = resource["state"]
        return settings

    return provider.urn.apply(read)


def refuse(kind: str, settings: Settings, names: tuple[str, ...], allowed: str) -> None:
    """Raises EarshotError if a provider of this ``kind`` has one of the settings ``names``."""
    if unsupported := [name for name in names if settings.get(name)]:
        raise EarshotError(
            "provider",
            observed=f"found {', '.join(unsupported)} in the {kind}, which earshot's own calls "
            "do not support",
            allowed=allowed,
        )


class Cluster(pulumi.ComponentResource):
    """A Kafka cluster: names, gate, brokers, and a proof of every listener."""

    _placement: str = ""
    _provider_type: str = ""
    """The type of provider that a program may pass; empty if it cannot."""
    _exported: tuple[str, ...] = ("contract", "incarnations")
    """Outputs that a stack exports in addition to addresses and `CLIENTS`."""

    cluster_id: pulumi.Output[str]
    """Kafka's id of the cluster."""
    bootstrap: pulumi.Output[dict[str, str]]
    """Bootstrap addresses by listener name."""
    contract: pulumi.Output[Properties]
    """The addresses that clients of each listener should see: an input of `Proof` and of
    `earshot doctor`."""
    incarnations: pulumi.Output[dict[str, str]]
    """By node id, a value that changes when the node is replaced or restarted."""
    approved: pulumi.Output[str]
    """The digest of the plan that the gate has approved; `off` without a gate."""
    proof: pulumi.Output[str]
    """The verdict of the last proof: `pass`, or `inconclusive` if a listener cannot be tried."""
    client_properties: pulumi.Output[Properties | None]
    """With `security`: by user and listener, the client's properties and its password's file."""
    certificates_expire: pulumi.Output[str | None]
    """With `security`: the earliest expiry of a certificate."""

    def __init__(
        self,
        name: str,
        args: Inputs | ClusterSpec,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """``args`` are the settings of `earshot:cluster` without `placement`, each of which may be
        an Output; or the cluster of a stack file.

        Raises pulumi.RunError with every problem of the inputs.
        """
        if not isinstance(args, ClusterSpec):
            args = read_inputs(args, name)
            if (placement := args.pop("placement", self._placement)) != self._placement:
                raise pulumi.RunError(
                    f"{name}: placement: found {shown(placement)}; allowed: {self._placement}, "
                    f"the placement of {type(self).__name__}"
                )
        inputs = {} if isinstance(args, ClusterSpec) else _as_inputs(args)
        super().__init__(type_token(type(self).__name__), name, inputs, opts)
        _check_aliases(name, opts)
        child_options = pulumi.ResourceOptions(parent=self)
        provider = self.get_provider(self._provider_type) if self._provider_type else None
        created: Any
        if isinstance(args, ClusterSpec):
            created = self._create_resources(
                args, with_run_errors(ClusterContext.of)(name, child_options, {})
            )
            self.describe(args)
            self._listeners = created["listeners"]
        elif contains_output(args) or provider is not None:
            created = self._made_later(name, args, provider)
        else:
            created = self._made_now(name, args, child_options)
        outputs: dict[str, pulumi.Output[Any]] = {}
        for key in output_names(type(self)):
            outputs[key] = _output(created, key)
            setattr(self, key, outputs[key])
        self.register_outputs(outputs)

    def _made_now(
        self,
        name: str,
        args: Inputs,
        opts: pulumi.ResourceOptions,
        context: Inputs | None = None,
    ) -> Outputs:
        """Registers the cluster of ``args`` and returns its outputs; ``context`` are fields of its
        `ClusterContext` that differ from the defaults. Raises pulumi.RunError."""
        settings = {key: value for key, value in args.items() if key != "policy"}
        problems = list(policy_problems(args))
        policy = {} if problems else policy_document(args)
        with problems_added(problems):
            at = ClusterContext.of(name, opts, policy)
        with problems_added(problems):
            spec = read_spec({**settings, "placement": self._placement}, name)
        if problems:
            raise pulumi.RunError(str(SpecError.of(name, problems)))
        return self._create_resources(spec, replace(at, **(context or {})), f"{name}: ")

    def _provided(
        self, args: Properties, settings: Settings, provider: pulumi.ProviderResource
    ) -> tuple[Properties, Settings, Inputs]:
        """The inputs of a cluster with the program's own ``provider``, those of the provider's
        ``settings`` that earshot uses, too, and the fields of the cluster's context for it.

        Raises EarshotError if earshot's own calls do not support the provider.
        """
        raise NotImplementedError

    def _create_resources(
        self, spec: ClusterSpec, at: ClusterContext, subject: str = ""
    ) -> Outputs:
        """Registers all resources of ``spec`` and returns the outputs.

        Raises pulumi.RunError, whose message begins with ``subject``.
        """
        try:
            with needed_for(type(self).__name__):
                module = PLACEMENTS[self._placement].module("earshot_pulumi", "deployment")
                outputs: Outputs = module.deploy(at, spec)
        except EarshotError as error:
            raise pulumi.RunError(f"{subject}{error}") from None
        return outputs

    def _made_later(
        self, name: str, args: Inputs, provider: pulumi.ProviderResource | None
    ) -> "pulumi.Output[Outputs]":
        """The outputs, once ``args`` and the settings of ``provider`` are known.

        A preview that knows only some of them plans the cluster with markers for the others. If one
        of these decides its nodes, listeners or zones, the preview shows no resource of the
        cluster.
        """
        secret_args = {key: value for key, value in args.items() if key in SECRET_INPUTS}
        shown_args = pulumi.Output.from_input(
            {key: value for key, value in args.items() if key not in SECRET_INPUTS}
        )
        later: Any = pulumi.Output.all(
            shown_args,
            pulumi.Output.unsecret(pulumi.Output.from_input(secret_args)),
            {} if provider is None else settings_of(provider),
        )

        async def make(values: Sequence[Inputs]) -> Outputs:
            inputs, settings = {**values[0], **values[1]}, values[2]
            context: Inputs = {}
            if provider is not None:
                inputs, settings, context = with_run_errors(self._provided)(
                    inputs, settings, provider
                )
            markers = Markers(
                sorted({*unknown_paths(inputs), *unknown_paths(settings, "provider")})
            )
            if markers.shape:
                text = f"planned in the update, as {', '.join(markers.shape)} is not known yet"
                pulumi.log.info(text, self)
                return {name: unknown() for name in output_names(type(self))}
            dependencies = sorted(await later.resources(), key=id)
            transformations = [_waiting_for(dependencies)]
            if markers.paths:
                text = f"not known in this preview: {', '.join(markers.paths)}"
                pulumi.log.info(text, self)
                transformations.append(markers.transformation)
            if await shown_args.is_secret():
                transformations.append(_all_secret)
            options = pulumi.ResourceOptions(parent=self, transformations=transformations)
            created = self._made_now(name, markers.placed(inputs), options, context)
            return markers.hidden(created) if markers.paths else created

        outputs: pulumi.Output[Outputs] = later.apply(make, run_with_unknowns=True)
        return outputs

    def describe(self, spec: ClusterSpec) -> None:
        """Sets the cluster's ``spec``, which decides `exports`."""
        self._listeners = tuple(listener.name for listener in spec.listeners)
        self._secured = spec.security is not None

    def exports(self) -> dict[str, pulumi.Output[Any]]:
        """The outputs of a stack with only this cluster, by the names that its commands read."""

        def address(listener: str) -> pulumi.Output[str]:
            return self.bootstrap.apply(lambda addresses: addresses[listener])

        addresses = {f"bootstrap_{name}": address(name) for name in self._listeners}
        names = (*self._exported, *(CLIENTS if self._secured else ()))
        return {**addresses, **{name: getattr(self, name) for name in names}}


def cluster_class(placement: str) -> type[Cluster]:
    """The class of clusters of a placement, `NAMECluster` in its folder."""
    module = PLACEMENTS[placement].module("earshot_pulumi", "cluster")
    component: type[Cluster] = getattr(module, f"{placement.title()}Cluster")
    return component


def _output(created: Any, key: str) -> pulumi.Output[Any]:
    """The output ``key`` of ``created``, a map or an Output of one."""
    if isinstance(created, pulumi.Output):
        return created.apply(lambda outputs: pulumi.Output.from_input(outputs.get(key)))
    return pulumi.Output.from_input(created.get(key))


def _waiting_for(resources: Sequence[pulumi.Resource]) -> pulumi.ResourceTransformation:
    """A transformation that makes every child depend on ``resources``.

    The inputs of children are plain values, which carry no dependencies. Children of the gate wait
    for it, and so for ``resources``: 300 brokers do not need an edge each to all of 20 hosts.
    """

    def wait(
        args: pulumi.ResourceTransformationArgs,
    ) -> pulumi.ResourceTransformationResult | None:
        if isinstance(args.opts.parent, AdvertisedListeners):
            return None
        dependencies = pulumi.ResourceOptions(depends_on=list(resources))
        opts = pulumi.ResourceOptions.merge(args.opts, dependencies)
        return pulumi.ResourceTransformationResult(args.props, opts)

    return wait


def _all_secret(
    args: pulumi.ResourceTransformationArgs,
) -> pulumi.ResourceTransformationResult:
    """Makes all inputs of a child secrets: it is unknown in which ones a secret of the program is,
    as they are plain values."""
    secrets = {
        key: value if value is None else pulumi.Output.secret(value)
        for key, value in dict(args.props).items()
    }
    return pulumi.ResourceTransformationResult(secrets, args.opts)


def _as_inputs(args: Inputs) -> Properties:
    """The inputs for Pulumi's state, with extra properties as secrets."""
    return {
        key: pulumi.Output.secret(value) if key in SECRET_INPUTS else value
        for key, value in args.items()
    }


def _check_aliases(name: str, opts: pulumi.ResourceOptions | None) -> None:
    """Raises pulumi.RunError for an alias with another name, as volumes and folders have the
    name."""
    for alias in (opts and opts.aliases) or ():
        if isinstance(alias, pulumi.Alias):
            former_name = alias.name if isinstance(alias.name, str) else name
        else:
            former_name = alias.rpartition("::")[2] if isinstance(alias, str) else name
        if former_name != name:
            raise pulumi.RunError(
                f"{name}: aliases: found the name {former_name}; a cluster keeps its name, "
                f"which containers, volumes and folders have; fix: call it {former_name}"
            )
