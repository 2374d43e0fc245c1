"""Renders the user data of a validator's instance. Deterministic, without input or output.

On the instance, systemd does the work on every boot:

    earshot-prepare          installs packages, the bundle and its Python; fetches secrets
    earshot-validate.timer   reads the order in the bucket every minute; started by the first
    earshot-validate         runs a new or due order, and writes its report to the bucket
"""

from typing import Annotated

from pydantic import Field

from earshot.listeners.model import Frozen
from earshot.listeners.properties import NodeSettings, write_properties
from earshot.remote.orders import ANSWER_PREFIX, DATED, LATEST, ORDER, STATUS
from earshot.user_data.boot import PACKAGING, SecretFile, System
from earshot.user_data.cloud_config import cloud_config, rendered

HOME = "/opt/earshot"
"""The folder of `app-DIGEST`, `python-DIGEST`, and the link `python` to the current one."""
STATE = "/var/lib/earshot"
SECRETS = "/run/earshot/secrets"
"""The folder of `ValidatorSettings.secrets`, in memory: secrets are not written to a disk."""
CLIENT = "/etc/earshot/client.properties"
REPORT = "/usr/local/sbin/earshot-report"
UNITS = ("earshot-prepare.service", "earshot-validate.service", "earshot-validate.timer")
COMMANDS = ("java", "tar", "aws", "python3.11")


class BundleRef(Frozen):
    """The bundle that a validator runs: its key in the bucket, and its checksum."""

    key: Annotated[str, Field(pattern=r"^[a-z0-9./-]{1,200}$")]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class ValidatorSettings(Frozen):
    """The VPC, region and settings of a validator, without secrets."""

    system: System
    region: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,40}$")]
    bucket: Annotated[str, Field(pattern=r"^[a-z0-9.-]{3,63}$")]
    bundle: BundleRef
    every: int = 60
    """Minutes between validations on the timer."""
    client: dict[str, str] = Field(default_factory=dict)
    """Kafka's client properties; they may name files below `SECRETS`."""
    client_secret: str = ""
    """The name of the secret with the client properties, instead of `client`."""
    secrets: tuple[SecretFile, ...] = ()
    version: Annotated[str, Field(pattern=r"^[0-9a-f]*$")] = ""
    """The version of `secrets`; a new one makes the instance fetch them again."""


def validator_user_data(place: ValidatorSettings) -> str:
    """The user data of a validator at ``place``; ASCII, and below cloud-init's limit.

    Raises EarshotError for a text over the limit.
    """
    packaging, secret = PACKAGING[place.system], place.client_secret
    values = {
        **dict(place),
        "bucket": f"s3://{place.bucket}",
        "packages": {command: packaging.packages[command] for command in COMMANDS},
        "install": packaging.install,
        "home": HOME,
        "app": f"{HOME}/app-{place.bundle.sha256[:12]}",
        "state": STATE,
        "report": REPORT,
        "secrets_folder": SECRETS,
        "client": f"{SECRETS}/{secret}" if secret else CLIENT if place.client else "",
        "order_key": ORDER,
        "status_key": STATUS,
        "latest_key": LATEST,
        "dated": DATED,
        "answers": ANSWER_PREFIX,
    }
    files = {f"/etc/systemd/system/{unit}": rendered(unit, values) for unit in UNITS}
    if place.client:
        files[CLIENT] = write_properties(NodeSettings(place.client))
    scripts = {
        "/usr/local/sbin/earshot-prepare": rendered("validator-prepare.sh", values),
        "/usr/local/sbin/earshot-validate": rendered("validator-run.sh", values),
        REPORT: rendered("validator-report.sh", values),
    }
    commands = (
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", "earshot-prepare.service"),
        # in the background: it takes too long for cloud-init
        ("systemctl", "start", "--no-block", "earshot-prepare.service"),
    )
    remedy = "set fewer or shorter properties in `validator.client`"
    return cloud_config("the validator", files, scripts, commands, remedy)
