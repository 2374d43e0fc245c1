"""What a stack of placement docker needs before Pulumi runs, and what `make clean` removes."""

from pathlib import Path

from earshot_pulumi.docker.before_refresh import repair_all
from earshot_pulumi.docker.container_address import check_engine
from earshot_pulumi.docker.identity import own_id
from earshot_pulumi.docker.labels import STACK, cluster_id_of

from earshot.config.docker import DockerSpec
from earshot.engine import address_of, connect, root_cause
from earshot.errors import EarshotError
from earshot.placement import standpoint
from earshot.placement.docker import planned
from earshot.transition.memory import recall
from toolchain.progress import say


def check(spec: DockerSpec) -> None:
    """Check that every engine answers that is there. Raises EarshotError."""
    if spec.provisioned:
        return
    for host in spec.hosts:
        check_engine(host)


def repair(spec: DockerSpec, stack: str, state_dir: Path) -> None:
    """Repair the containers of ``stack`` before a refresh looks at them. Raises EarshotError."""
    if spec.provisioned:
        _check_made(state_dir)  # only the update repairs what is on them
        return
    repair_all(spec, stack, planned(spec, stack, state_dir), state_dir, say)


def _check_made(state_dir: Path) -> None:
    """Raises EarshotError for an engine on a host of the stack's own that does not answer.

    A refresh would end there, with the words of the provider.
    """
    vantages = state_dir / standpoint.FILE
    if recall(state_dir).complete is None or not vantages.exists():
        return
    engines = {engine for it in standpoint.read_standpoints(vantages) for engine in it.engines}
    for engine in sorted(engines, key=address_of):
        try:
            check_engine(engine)
        except EarshotError as error:
            raise EarshotError(
                error.object,
                observed=f"{error.observed}; it is on a host of this stack",
                remedy="look on the instance (`aws ssm start-session --target INSTANCE`, then "
                "`systemctl status docker-prepare docker` and `journalctl -u docker`), start the "
                "engine, and run the same command again; and see that this machine is in one of "
                "`deployers`",
            ) from None


def remove_data(spec: DockerSpec, stack: str, state_dir: Path) -> None:
    """Remove the volumes with the labels of ``stack`` from its hosts. Raises EarshotError.

    Volumes of another checkout's stack of that name stay: they hold another cluster's data.
    """
    if spec.provisioned:
        return  # they are on the hosts' own volumes, which AWS keeps or has removed
    from docker.errors import DockerException

    own_ids = {spec.cluster_id, own_id(stack, state_dir)}
    for host in spec.hosts:
        with connect(host) as client:
            for volume in client.volumes.list(filters={"label": f"{STACK}={stack}"}):
                held = cluster_id_of(volume.attrs["Labels"])
                if held not in own_ids:
                    say(
                        f"Left volume {volume.name}: its data is of cluster {held}, which this "
                        "checkout does not know. If it is no longer needed: "
                        f"docker volume rm {volume.name}"
                    )
                    continue
                try:
                    volume.remove()
                except (DockerException, OSError) as reason:
                    raise EarshotError(
                        f"volume {volume.name} on Docker host {host.name}",
                        observed=f"cannot be removed: {root_cause(reason)}",
                        remedy="remove what uses it, then run the same command again",
                    ) from None
                say(f"Removed volume {volume.name} ...")
