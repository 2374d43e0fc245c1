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
        store, first = store_of(props), next(iter(props["brokers"]))
        pem = store.key_store(node_name(int(first))).read_text()
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
            for address in map(ContainerAddress.from_props, props["places"]):
                for listener in filter(lambda endpoint: endpoint.mechanisms, address.clients):
                    problem = failure(engines, address, address.name, listener)
                    if problem is not None and problem.error == UNKNOWN_TO_BROKER:
                        problems.append(f"{address.name}: {listener.name}: {problem.text}")
        return problems

    def reset_passwords(self, props: Properties, broker: int, say: Say) -> None:
        """Sets all users' passwords again; returns when ``broker`` accepts them.

        ``props`` are those that `reached` returns, with `root` and `mechanism`. Raises
        EarshotError.
        """
        store, mechanisms = store_of(props), read_mechanisms(props["mechanism"])
        ways = map(Login.model_validate, props["logins"])
        order = UsersOrder(
            bootstrap=",".join(props["brokers"].values()),
            access=dict(self.access(props)),
            mechanisms=mechanisms,
            passwords=kept_passwords(store),
            logins=tuple(login for login in ways if login.broker == broker),
            client=client_of(store, mechanisms[0]),
        )
        self.carry_out(order, props, say)


def reached(
    stack: str, spec: DockerSpec, planned: DockerPlan, places: Iterable[ContainerAddress]
) -> Properties:
    """The inputs of `DockerUsers` that say how to reach the brokers, and from which engine."""
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
    between = {node.id: plan.address_of(node) for node in plan.brokers}
    return {
        "stack": stack,
        "standpoint": standpoint.model_dump(mode="json"),
        "brokers": {str(id): str(address) for id, address in between.items()},
        # a certificate names all advertised hosts, so the inter-broker host suits every port
        "logins": logins(
            plan, lambda node, listener: f"{between[node.id].host}:{listener.bind_port}"
        ),
        "places": [place.to_props() for place in places if place.broker],
    }


FILE: Final = "order.json"
PROGRAM: Final = ("python", "-m", "earshot.users")
_WHAT: Final = "users and permissions"
_AGAIN: Final = "see that the engine runs, and the brokers' logs, then run the same command again"


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
        observed = f"are not settled ({error.line})"
        raise EarshotError(_WHAT, observed=observed, remedy=_AGAIN) from None
    if code:
        observed = f"are not settled (status {code}){quoted(output)}"
        raise EarshotError(_WHAT, observed=observed)
