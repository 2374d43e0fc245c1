"""What a stack of placement docker needs before Pulumi runs, and what `make clean` removes."""

from pathlib import Path

from earshot_pulumi.docker.before_refresh import repair_all
from earshot_pulumi.docker.container_address import check_engine
from earshot_pulumi.docker.identity import own_id
from earshot_pulumi.docker.labels import STACK, cluster_id_of

from earshot.config.docker import DockerSpec
from earshot.engine import connect, root_cause
from earshot.errors import EarshotError
from earshot.placement.docker import planned
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
        return  # only the update knows where their engines are
    repair_all(spec, stack, planned(spec, stack, state_dir), state_dir, say)


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
