"""Creates the users and ACLs of brokers on this machine."""

from collections.abc import Iterator, Mapping

from earshot.certificates.store import Store
from earshot.listeners.address import parse_address
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import read_properties
from earshot.listeners.security import own_access
from earshot.listeners.terms import Mechanism, read_mechanisms
from earshot.users.access import Login, UserAccess, refusal
from earshot.users.order import UsersOrder, carry_out
from earshot.validation.failure import UNKNOWN_TO_BROKER
from earshot_pulumi.certificates import store_of
from earshot_pulumi.driver import Say
from earshot_pulumi.local.access import accepts_connections
from earshot_pulumi.local.cluster_memory import node_directory
from earshot_pulumi.local.preflight import started_with
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.users import Users, UsersKind, client_of, kept_passwords, logins


class LocalUsers(Users):
    """The users of a cluster on this machine, and their ACLs."""

    FORMER_NAMES = ("Users",)


class LocalUsersKind(UsersKind):
    """Creates users through the addresses that the brokers advertise."""

    def access(self, props: Properties) -> Mapping[str, str]:
        root = here(props["root"])
        first_id = next(iter(props["brokers"]))
        settings = read_properties(started_with(node_directory(root, int(first_id))))
        return own_access(settings.values)

    def carry_out(self, order: UsersOrder, props: Properties, say: Say) -> None:
        carry_out(order)

    def refused(self, props: Properties) -> list[str]:
        return list(self._refusing_brokers(props))

    def _refusing_brokers(self, props: Properties) -> Iterator[str]:
        mechanisms, store = read_mechanisms(props["mechanism"]), store_of(props)
        node_logins = map(Login.model_validate, props["logins"])
        reachable_logins = [
            login for login in node_logins if accepts_connections(parse_address(login.address))
        ]
        if not reachable_logins:
            return
        client = client_of(store, mechanisms[0])
        for login in reachable_logins:
            failure = refusal(login, client)
            if failure is not None and failure.error == UNKNOWN_TO_BROKER:
                yield str(login)
        admin = UserAccess(",".join(props["brokers"].values()), self.access(props))
        for mechanism in mechanisms:
            if names := admin.users_without_password(props["passwords"], mechanism):
                yield f"{mechanism}: {', '.join(names)}"


def access_inputs(plan: ClusterPlan) -> Properties:
    """The inputs of `LocalUsers` with the addresses of brokers and of users' logins."""
    return {
        "brokers": {str(node.id): str(plan.address_of(node)) for node in plan.brokers},
        "logins": logins(plan, lambda _, listener: str(listener.advertised)),
    }


def reset_passwords(store: Store, bootstrap: str, settings: Mapping[str, str]) -> None:
    """Sets all users' passwords again, through the broker at ``bootstrap``.

    ``settings`` are those that the broker was started with. Raises EarshotError.
    """
    passwords, access = kept_passwords(store), UserAccess(bootstrap, own_access(settings))
    keys = (key for key in settings if key.endswith(".sasl.enabled.mechanisms"))
    enabled_mechanisms = {name for key in keys for name in settings[key].split(",")}
    for mechanism in Mechanism:
        if mechanism in enabled_mechanisms:
            access.set_passwords(passwords, mechanism)
