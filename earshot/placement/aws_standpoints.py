"""Chooses the standpoint of each scope of a cluster on AWS: here, a validator, or none."""

from collections.abc import Iterator
from typing import Final

from earshot.config.aws import AwsSpec
from earshot.listeners.terms import CLIENT_SCOPES, Protocol, Scope
from earshot.placement.standpoint import Kind, Standpoint

NO_VALIDATOR: Final = (
    "not run: the VPC has no validator (`validator: true` in the stack file creates one; or "
    "run `earshot validate --contract FILE` there)"
)
ON_BROKERS: Final = "not run: its clients are processes of the brokers' own instances"
GRACE: Final = 300.0
"""Seconds for the start of a new instance, in addition to `ready_seconds`."""
RUN_OVERHEAD: Final = 90.0
"""Seconds in addition to a run's deadline: until the validator reads the order, and until the
report arrives."""


def aws_standpoints(spec: AwsSpec, bucket: str = "", instance: str = "") -> tuple[Standpoint, ...]:
    """One standpoint per client scope of ``spec`` and per connected VPC. ``bucket`` and
    ``instance`` are those of its validator, if it has one."""
    scopes = {scope for listener in spec.listeners for scope in listener.scopes}
    scope_standpoints = [
        _standpoint(spec, scope, bucket, instance) for scope in CLIENT_SCOPES if scope in scopes
    ]
    return (*scope_standpoints, *(_connected_vpcs(spec) if Scope.INTERNAL in scopes else ()))


def _connected_vpcs(spec: AwsSpec) -> Iterator[Standpoint]:
    """One standpoint per connected VPC, in which the stack has no machine."""
    for name, vpc in spec.connected.items():
        yield Standpoint(
            name=name,
            scope=Scope.INTERNAL,
            kind=Kind.NOT_RUN,
            reason=f"not run: the stack has no machine in VPC {vpc.id} (by hand, there: `earshot "
            f"validate --contract FILE --vantage {name}`)",
        )


def _standpoint(spec: AwsSpec, scope: Scope, bucket: str, instance: str) -> Standpoint:
    match scope:
        case Scope.INTERNAL if spec.validator is not None:
            return Standpoint(
                name=scope,
                scope=scope,
                kind=Kind.INSTANCE,
                bucket=bucket,
                region=spec.region,
                instance=instance,
                patience=spec.ready_seconds + GRACE + RUN_OVERHEAD,
            )
        case Scope.INTERNAL:
            return Standpoint(name=scope, scope=scope, kind=Kind.NOT_RUN, reason=NO_VALIDATOR)
        case Scope.HOST:
            return Standpoint(name=scope, scope=scope, kind=Kind.NOT_RUN, reason=ON_BROKERS)
        case _:
            return Standpoint(name=scope, scope=scope, without=_listeners_not_run(spec))


def _listeners_not_run(spec: AwsSpec) -> dict[str, str]:
    """The external listeners that a deploy does not validate from here, with the reasons."""
    reasons = {}
    for listener in spec.listeners:
        if Scope.EXTERNAL not in listener.scopes:
            continue
        if listener.name in spec.linked:
            reasons[listener.name] = (
                "not run: its clients are in other VPCs (by hand: `earshot validate --contract "
                "FILE`, in a VPC with an endpoint)"
            )
        elif spec.prove != "here":
            reasons[listener.name] = (
                "not run: `prove: later` in the stack file (by hand: `earshot validate --only "
                "external`, where its clients are)"
            )
        elif spec.security is None and listener.protocol is not Protocol.PLAINTEXT:
            reasons[listener.name] = (
                f"not run: its protocol is {listener.protocol} (by hand: `earshot validate "
                "--client-config FILE`, where its clients are)"
            )
    return reasons
