"""Secrets of a secured cluster as SSM parameters, each for the instances that need it.

This machine writes them itself, as SecureStrings, so that states have only fingerprints. Another
checkout may have issued the certificates in them. Instances have fetched these, so they take
precedence over the files of this checkout's folder.
"""

from contextlib import AbstractContextManager

import pulumi

from earshot.aws_client import AwsClient
from earshot.certificates.client import client_properties
from earshot.certificates.store import Store
from earshot.errors import EarshotError
from earshot.listeners.properties import read_properties
from earshot.listeners.security import VALIDATOR, node_id
from earshot.listeners.terms import Mechanism, read_mechanisms
from earshot.placement import aws_secrets
from earshot.placement.aws_secrets import COPY_PARAMETER, VALIDATOR_PARAMETER, secret_parameter
from earshot.users.lines import lines
from earshot_pulumi.aws.credentials import client, parameter_errors, put_secret, reader
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.certificates import Certificates, CertificatesKind, store_of
from earshot_pulumi.expired import end_of, expired, problems
from earshot_pulumi.file_access import writing
from earshot_pulumi.provider.kind import UNKNOWN, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource
from earshot_pulumi.users import changes, merged, remember, remembered

_FEWER = "remove users or prefixes from `security.users`"
_SHORTER = {
    aws_secrets.USERS_PARAMETER: _FEWER,
    aws_secrets.COPY_PARAMETER: "remove users from `security.users`",
}
"""The fix for a secret that is too long, by its kind. The other kinds are certificates."""
_STORED_VERSIONS = 50
"""Number of versions of a secret in the state. SSM keeps 100 versions of a parameter:
https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-versions.html"""
LIMIT = 8192
"""Maximum bytes of a parameter: https://docs.aws.amazon.com/general/latest/gr/ssm.html"""


class AwsSecretKind(AwsKind):
    """Writes one parameter, and again if the secret changes or another program wrote it.

    Inputs: its `kind`, the name of a key store or one of those in `aws_secrets`; `parameter`,
    `region` and `tags`; `root`, the folder of the stack's cluster on this machine; `version`, which
    changes with the secret; `mechanism`; `users`, prefixes by name; and `logs_in`, true if a
    listener requires passwords.
    """

    ID_IN = "parameter"
    OWNS = ("region", "parameter")
    DECISIVE = ("parameter", "region", "version", "users", "mechanism", "logs_in")
    interrupted = (
        "interrupted while a secret was written: its parameter has the old or the new one; the "
        "next `pulumi up` writes it again"
    )

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if super().differs(operation, olds, news):  # also while the version is unknown
            return True
        is_pinned = news["version"] in (
            olds.get("numbers") or {}
        )  # earlier releases stored no numbers
        return not is_pinned or self._version(operation, olds) != olds.get("written")

    def delete(self, operation: Operation, olds: Properties) -> None:
        with _ssm(olds):
            # unlike `delete_parameter`, this call accepts a name that does not exist
            ssm = client(self.settings(operation, olds), olds["region"])
            ssm.delete_parameters(Names=[olds["parameter"]])

    def _ssm(self, operation: Operation, props: Properties) -> AwsClient:
        return client(self.settings(operation), props["region"])

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        known = _known_users(olds, news)
        text = _content(store_of(news), {**news, "known": known})
        if (size := len(text.encode())) > LIMIT:
            remedy = "use certificates with EC keys, or of fewer authorities"
            raise EarshotError(
                f"SSM parameter {news['parameter']}",
                observed=f"would have {size} bytes",
                allowed=f"{LIMIT} bytes",
                remedy=_SHORTER.get(news["kind"], remedy),
            )
        with _ssm(news):
            ssm = self._ssm(operation, news)
            number = put_secret(ssm, news["parameter"], text, news["tags"])
        numbers = _numbers(olds, news["version"], number)
        return {
            **news,
            "known": known,
            "written": number,
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
    """The number of the parameter's version with this secret: the last one, or an earlier one with
    the same secret."""


def _numbers(olds: Properties, version: str, last_number: int) -> dict[str, int]:
    """By version of the secret, its first number in SSM. ``last_number`` is the parameter's last.

    An instance reads its secret by that number. A restored secret keeps its number, so its instance
    is not replaced.
    """
    numbers = {key: int(number) for key, number in (olds.get("numbers") or {}).items()}
    if any(number >= last_number for number in numbers.values()):
        numbers = {}  # the parameter was deleted and created again
    return dict(
        list({**numbers, version: numbers.get(version, last_number)}.items())[-_STORED_VERSIONS:]
    )


def _known_users(olds: Properties, news: Properties) -> Properties:
    """The users that the cluster may have, and their mechanisms: those of all updates so far.

    They are also recorded in the folder, because volumes may outlive a state.
    """
    if "users" not in news:
        return {}
    known, store = olds.get("known") or {"users": {}, "mechanisms": []}, store_of(news)
    users = merged(merged(remembered(store), known["users"]), news["users"])
    remember(store, users)
    return {
        "users": users,
        "mechanisms": sorted({*known["mechanisms"], *news["mechanism"].split(",")}),
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
    """The changes that lead from any state of the cluster's users to the planned one."""
    known, mechanisms = props["known"], read_mechanisms(props["mechanism"])
    former_mechanisms = [Mechanism(name) for name in known["mechanisms"]]
    inputs = (props["users"], known["users"], mechanisms, former_mechanisms, props["logs_in"])
    changed_users = {"passwords": {}, "gone": (), **changes(store, *inputs)}
    return lines(former_users=changed_users.pop("gone"), **changed_users)


def _ssm(props: Properties) -> AbstractContextManager[None]:
    """A context that turns errors of SSM into EarshotErrors."""
    subject = f"SSM parameter {props['parameter']} in {props['region']}"
    return parameter_errors(subject, "cannot be written or read")


class AwsCertificates(Certificates):
    """The authority of a stack on AWS and its certificates."""

    FORMER_NAMES = ("Certificates",)


class AwsCertificatesKind(AwsKind, CertificatesKind):
    """Copies the certificates in parameters into its folder before it reads the folder.

    Further input: `between_nodes`, true if nodes show certificates to each other.
    """

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if news["hosts"] is not UNKNOWN:
            self._restore_copies(operation, news)
            _check_ends(olds, news)
        return super().differs(operation, olds, news)

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        self._restore_copies(operation, news)
        return super().apply(operation, olds, news)

    def _restore_copies(self, operation: Operation, props: Properties) -> None:
        stack, store = props["stack"], store_of(props)
        kinds = (COPY_PARAMETER, VALIDATOR_PARAMETER, *props["hosts"])
        names = {secret_parameter(stack, kind): kind for kind in kinds}
        values = reader(self.settings(operation), props["region"])(list(names))
        texts = {names[name]: text for name, text in values.items()}
        copy = texts.pop(COPY_PARAMETER, "")
        if not copy:
            return
        if VALIDATOR_PARAMETER in texts:
            properties = read_properties(texts.pop(VALIDATOR_PARAMETER)).values
            keys = ("ssl.keystore.key", "ssl.keystore.certificate.chain")
            texts[VALIDATOR] = "".join(properties.get(key, "") for key in keys)
        with writing("certificates", store.folder):
            store.restore(copy, {name: f"{text.strip()}\n" for name, text in texts.items()})


def _check_ends(olds: Properties, news: Properties) -> None:
    """Raises EarshotError if the nodes in ``olds`` have certificates that have expired, so that a
    renewal would stop nodes that could not come back."""
    if news.get("between_nodes") is not True:
        return
    folder, paths = store_of(news).folder, {node_id(name): f"{name}.pem" for name in news["hosts"]}
    issued_ids = [node_id(name) for name in olds.get("certificates") or () if name in news["hosts"]]
    ends_by_id = expired({id: end_of(str(folder / paths[id])) for id in issued_ids})
    for problem in problems(ends_by_id, can_go_first=[*ends_by_id] == [min(paths)]):
        raise EarshotError("nothing was changed", observed=problem)
