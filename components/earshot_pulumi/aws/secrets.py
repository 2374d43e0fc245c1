"""Secrets of a secured cluster as SSM parameters, each for the instances that need it.

They are SecureStrings that this machine writes itself: states have fingerprints alone.
"""

from contextlib import AbstractContextManager

import pulumi

from earshot.aws_client import AwsClient
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.security import VALIDATOR
from earshot.listeners.terms import Mechanism, read_mechanisms
from earshot.placement import aws_secrets
from earshot.users.lines import lines
from earshot_pulumi.aws.credentials import client, parameters, put_secret
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.certificates import store_of
from earshot_pulumi.provider.internal import InternalResource
from earshot_pulumi.provider.kind import Operation, Properties
from earshot_pulumi.users import changes, merged, remember, remembered

_FEWER = "let there be fewer users or prefixes in `security.users`"
_SHORTER = {
    aws_secrets.USERS_PARAMETER: _FEWER,
    aws_secrets.COPY_PARAMETER: "let there be fewer users in `security.users`",
}
"""By the kind of secret, how to shorten it; the other kinds are certificates."""
_REMEMBERED = 50
"""Versions of a secret; SSM keeps 100 of a parameter:
https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-versions.html"""
LIMIT = 8192
"""Bytes of a parameter: https://docs.aws.amazon.com/general/latest/gr/ssm.html"""


class AwsSecretKind(AwsKind):
    """Writes one parameter, and again where the secret changes or another program wrote it.

    Inputs: its `kind`, a key store's name or one of those in `aws_secrets`; `parameter`, `region`
    and `tags`; `root`, the folder of the stack's cluster on this machine; `version`, which differs
    where the secret does; `mechanism`; `users`, prefixes by name; and `logs_in`, whether some
    listener asks for passwords.
    """

    ID_IN = "parameter"
    DECISIVE = ("parameter", "region", "version", "users", "mechanism", "logs_in")
    interrupted = (
        "interrupted while a secret was written: its parameter has the old or the new one; the "
        "next `pulumi up` writes it again"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if super().differs(operation, olds, news):  # also while the version is not known
            return True
        is_pinned = news["version"] in (olds.get("numbers") or {})  # not by an earlier release
        return not is_pinned or self._version(operation, olds) != olds.get("written")

    def delete(self, operation: Operation, id: str, olds: Properties) -> None:
        with _ssm(olds):
            # unlike the call for one, this one takes what is not there
            ssm = client(self.settings(operation, olds), olds["region"])
            ssm.delete_parameters(Names=[olds["parameter"]])

    def _ssm(self, operation: Operation, props: Properties) -> AwsClient:
        return client(self.settings(operation), props["region"])

    def made(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        state = _known_from_now_on(olds, news)
        text = _content(store_of(news), {**news, "known": state})
        if (size := len(text.encode())) > LIMIT:
            shorter = "have certificates issued for keys of EC, or by fewer authorities"
            raise EarshotError(
                f"SSM parameter {news['parameter']}",
                observed=f"would have {size} bytes",
                allowed=f"{LIMIT} bytes",
                remedy=_SHORTER.get(news["kind"], shorter),
            )
        with _ssm(news):
            ssm = self._ssm(operation, news)
            written = put_secret(ssm, news["parameter"], text, news["tags"])
        numbers = _numbers(olds, news["version"], written)
        return {
            **news,
            "known": state,
            "written": written,
            "numbers": numbers,
            "pinned": numbers[news["version"]],
        }

    def _version(self, operation: Operation, props: Properties) -> int | None:
        """The version of the existing parameter, or None."""
        with _ssm(props):
            parameters = self._ssm(operation, props).get_parameters(Names=[props["parameter"]])[
                "Parameters"
            ]
        return int(parameters[0]["Version"]) if parameters else None


class AwsSecret(InternalResource):
    """One secret of a cluster, in a parameter."""

    pinned: pulumi.Output[float]
    """The number of the parameter's version that has this secret; the last one, or one before it
    where the secret is as it was then."""


def _numbers(olds: Properties, version: str, written: int) -> dict[str, int]:
    """By version of the secret, the number that SSM gave it first; ``written`` is the last one.

    An instance reads its secret by that number. A restored secret keeps its number, so its instance
    is not replaced.
    """
    numbers = {key: int(number) for key, number in (olds.get("numbers") or {}).items()}
    if any(number >= written for number in numbers.values()):
        numbers = {}  # the parameter was deleted and created again
    return dict(list({**numbers, version: numbers.get(version, written)}.items())[-_REMEMBERED:])


def _known_from_now_on(olds: Properties, news: Properties) -> Properties:
    """The users that the cluster may know, and their mechanisms: all that ever were.

    The folder knows of them too, for volumes may be kept without a state.
    """
    if "users" not in news:
        return {}
    old_state, store = olds.get("known") or {"users": {}, "mechanisms": []}, store_of(news)
    users = merged(merged(remembered(store), old_state["users"]), news["users"])
    remember(store, users)
    return {
        "users": users,
        "mechanisms": sorted({*old_state["mechanisms"], *news["mechanism"].split(",")}),
    }


def _content(store: Store, props: Properties) -> str:
    match props["kind"]:
        case aws_secrets.TRUSTED_PARAMETER:
            return store.authority()
        case aws_secrets.COPY_PARAMETER:
            return store.copied()
        case aws_secrets.VALIDATOR_PARAMETER:
            return client_properties(store, VALIDATOR, Mechanism(props["mechanism"]), whole=True)
        case aws_secrets.USERS_PARAMETER:
            return _users(store, props)
        case kind:
            return store.key_store(kind).read_text()


def _users(store: Store, props: Properties) -> str:
    """The changes that lead from any state of the cluster's users to the wanted one."""
    state, mechanisms = props["known"], read_mechanisms(props["mechanism"])
    earlier = [Mechanism(kind) for kind in state["mechanisms"]]
    inputs = (props["users"], state["users"], mechanisms, earlier, props["logs_in"])
    changed_users = {"passwords": {}, "gone": (), **changes(store, *inputs)}
    return lines(former_users=changed_users.pop("gone"), **changed_users)


def _ssm(props: Properties) -> AbstractContextManager[None]:
    """A context in which an error of SSM becomes an EarshotError."""
    subject = f"SSM parameter {props['parameter']} in {props['region']}"
    return parameters(subject, "cannot be written or read")
