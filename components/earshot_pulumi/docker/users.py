"""Creates the users and ACLs of brokers in containers, from a container on their network."""

from collections.abc import Iterable, Mapping
from typing import Final

from earshot.config.docker import DockerSpec
from earshot.errors import EarshotError
from earshot.listeners.security import node_name
from earshot.listeners.terms import Scope, read_mechanisms
from earshot.placement.docker import DockerPlan
from earshot.placement.standpoint import CandidateEngine, Kind, Standpoint
from earshot.remote.container import FOLDER, DockerHostSession, Say, docker_session, ended, quoted
from earshot.users.access import Login
from earshot.users.order import UsersOrder
from earshot.validation.deadline import Deadline
from earshot.validation.failure import UNKNOWN_TO_BROKER
from earshot_pulumi.certificates import store_of
from earshot_pulumi.docker.container_address import ContainerAddress, Engines, failure
from earshot_pulumi.properties import read, write
from earshot_pulumi.provider.kind import Properties
from earshot_pulumi.users import Users, UsersKind, client_of, kept_passwords, logins

SECONDS = 180.0
"""Time limit for all users of a cluster, once the engine has the validator image."""


class DockerUsers(Users):
    """The users of a cluster of containers, and their ACLs."""

    FORMER_NAMES = ("Users",)


class DockerUsersKind(UsersKind):
    """Creates users from a container that reaches the brokers by their names."""

    def access(self, props: Properties) -> Mapping[str, str]:
        store, first_id = store_of(props), next(iter(props["brokers"]))
        pem = store.key_store(node_name(int(first_id))).read_text()
        return {
            "security.protocol": "SSL",
            "ssl.ca.pem": store.authority(),
            "ssl.certificate.pem": pem,
            "ssl.key.pem": pem,
        }

    def carry_out(self, order: UsersOrder, props: Properties, say: Say) -> None:
        standpoint = Standpoint.model_validate(props["standpoint"])
        with docker_session(standpoint, props["stack"], say) as session:
            carry_out_on(session, props["stack"], order, Deadline(SECONDS), say)

    def refused(self, props: Properties) -> list[str]:
        problems = []
        with Engines() as engines:
            for address in (read(ContainerAddress, place) for place in props["places"]):
                for listener in filter(lambda client: client.mechanisms, address.clients):
                    login_failure = failure(engines, address, address.name, listener)
                    if login_failure is not None and login_failure.error == UNKNOWN_TO_BROKER:
                        problems.append(f"{address.name}: {listener.name}: {login_failure.text}")
        return problems

    def reset_passwords(self, props: Properties, broker: int, say: Say) -> None:
        """Sets all users' passwords again. Returns when ``broker`` accepts them.

        ``props`` are the result of `access_inputs`, with `root` and `mechanism`. Raises
        EarshotError.
        """
        store, mechanisms = store_of(props), read_mechanisms(props["mechanism"])
        node_logins = map(Login.model_validate, props["logins"])
        order = UsersOrder(
            bootstrap=",".join(props["brokers"].values()),
            access=dict(self.access(props)),
            mechanisms=mechanisms,
            passwords=kept_passwords(store),
            logins=tuple(login for login in node_logins if login.broker == broker),
            client=client_of(store, mechanisms[0]),
        )
        self.carry_out(order, props, say)


def access_inputs(
    stack: str, spec: DockerSpec, planned: DockerPlan, addresses: Iterable[ContainerAddress]
) -> Properties:
    """The inputs of `DockerUsers` with the brokers' addresses, and the engine that reaches them."""
    (host,), plan = planned.hosts, planned.plan
    network = next(iter(planned.containers.values())).network
    standpoint = Standpoint(
        name=Scope.INTERNAL,
        scope=Scope.INTERNAL,
        kind=Kind.CONTAINER,
        engines=(CandidateEngine(engine=host.engine, cert_path=host.cert_path),),
        network=network,
        base=spec.validator.base,
        dns=spec.dns,
    )
    inter_broker = {node.id: plan.address_of(node) for node in plan.brokers}
    return {
        "stack": stack,
        "standpoint": standpoint.model_dump(mode="json"),
        "brokers": {str(id): str(address) for id, address in inter_broker.items()},
        # a certificate has all advertised hosts, so the inter-broker host is valid at every port
        "logins": logins(
            plan, lambda node, listener: f"{inter_broker[node.id].host}:{listener.bind_port}"
        ),
        "places": [write(address) for address in addresses if address.broker],
    }


FILE: Final = "order.json"
PROGRAM: Final = ("python", "-m", "earshot.users")
_SUBJECT: Final = "users and permissions"
_AGAIN: Final = (
    "check that the engine runs, and read the brokers' logs, then run the same command again"
)


def carry_out_on(
    session: DockerHostSession, cluster: str, order: UsersOrder, end: Deadline, say: Say
) -> None:
    """Carries out ``order`` in a container of ``session``, before ``end``.

    The container gets the order as a file. Raises EarshotError.
    """
    files = {FILE: order.model_dump_json().encode()}
    command = [f"{FOLDER}/{FILE}"]
    try:
        with ended(session, cluster, command, files, end, say, program=PROGRAM) as (
            container,
            output,
        ):
            code = container.attrs["State"]["ExitCode"]
    except EarshotError as error:
        observed = f"were not all created ({error.line})"
        raise EarshotError(_SUBJECT, observed=observed, remedy=_AGAIN) from None
    if code:
        observed = f"were not all created (status {code}){quoted(output)}"
        raise EarshotError(_SUBJECT, observed=observed)
