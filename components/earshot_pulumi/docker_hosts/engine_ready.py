"""Waits until the Docker engine of a new host answers and has its images, which the host pulls with
its own role; or reports why not."""

import time

import pulumi

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import ANSWER_SECONDS, connect, root_cause
from earshot.engine.failures import FAILURES
from earshot.errors import EarshotError
from earshot.user_data.host_report import HostReport
from earshot_pulumi.aws.credentials import reader
from earshot_pulumi.aws.machines import described
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.images import has_image
from earshot_pulumi.docker_hosts.clusters import host_of
from earshot_pulumi.properties import here
from earshot_pulumi.provider.kind import Inputs, Operation, Properties
from earshot_pulumi.provider.resource import InternalResource

POLL_SECONDS = 3.0
LEAST_SECONDS = 1.0
"""Minimum time limit of one attempt."""
LOG_SECONDS = 30.0
"""Interval between two lines of progress."""
IMAGE_PATIENCE = 120.0
"""Seconds during which the host may report the same problem: a role's new policy takes effect
later."""


class DockerEngineReadyKind(AwsKind):
    """Waits until an engine answers.

    Inputs: the host's `name`; `engine` and `cert_path`; `instance`, its id; `boot`, which changes
    if the instance is replaced or restarted; `seconds`, the time limit; `report`, the SSM parameter
    with the host's own report, and its `region`. Outputs: `engine_id` and `version`.
    """

    ID_IN = "engine_id"
    DECISIVE = ("name", "engine", "cert_path", "instance", "boot")
    interrupted = "interrupted while waiting for an engine; the next `pulumi up` waits again"

    def differs(self, operation: Operation, olds: Properties, news: Properties) -> bool:
        if super().differs(operation, olds, news):
            return True
        # another checkout has no certificate yet, and the update issues one
        return not (here(news["cert_path"]) / "key.pem").is_file()

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        host = host_of(news)
        begin = last_log = time.monotonic()
        while True:
            identity: Properties = {}
            # the former instance or boot may answer until it has ended
            unreported = "answers, but its host has sent no report since it booted"
            error = EarshotError(news["engine"], observed=unreported)
            try:
                identity = _identity(host, begin + news["seconds"] - time.monotonic())
            except EarshotError as reason:
                error = reason
            report, now = report_of(self.settings(operation), news), time.monotonic()
            if identity and report is not None:
                return {**news, **identity}
            if now - begin >= news["seconds"] or (report and report.is_final):
                raise _deadline_error(news, int(now - begin), error, report)
            if now - last_log >= LOG_SECONDS:
                operation.log(f"waiting for {news['engine']}: {error.observed}")
                last_log = now
            operation.wait(POLL_SECONDS)


def _deadline_error(
    props: Properties, seconds: int, error: EarshotError, report: HostReport | None
) -> EarshotError:
    detail = f"; the host itself reports: {report}" if report else "; the host sent no report"
    return EarshotError(
        f"Docker host {props['name']} ({props['instance']}): engine at {props['engine']}",
        observed=f"{error.observed} after {seconds} s{detail}",
        remedy=_remedy(error, report),
    )


def report_of(settings: Inputs, props: Properties) -> HostReport | None:
    """The last report of the host since the current boot of its instance; ``props`` has both.

    None without a report, and if AWS does not answer.
    """
    name, instance, region = props["report"], props["instance"], props["region"]
    try:
        text = reader(settings, region)([name]).get(name, "")
        machine = described(settings, region, [instance]).get(instance)
    except EarshotError:
        return None
    report = HostReport.read(text)
    started = machine.started if machine else 0.0
    return report if report and report.is_of(instance, started) else None


def _identity(host: DockerHost, seconds: float) -> Properties:
    """The ID and version that the engine of ``host`` reports, within ``seconds``.

    Raises EarshotError, also if the server is not a Docker engine.
    """
    error = EarshotError(f"Docker engine at {host.engine}")
    with connect(host, seconds=min(ANSWER_SECONDS, max(LEAST_SECONDS, seconds))) as client:
        try:
            info = client.info()
        except FAILURES as reason:
            error.observed = f"returns no information ({root_cause(reason)})"
            raise error from None
    values = info if isinstance(info, dict) else {}
    engine_id, version = values.get("ID"), values.get("ServerVersion")
    if not (isinstance(engine_id, str) and engine_id and isinstance(version, str) and version):
        error.observed = "returns information without an ID and a version"
        raise error
    return {"engine_id": engine_id, "version": version}


class DockerEngineReady(InternalResource):
    """A Docker engine that has answered."""

    engine: pulumi.Output[str]
    cert_path: pulumi.Output[str]
    engine_id: pulumi.Output[str]
    version: pulumi.Output[str]


def _remedy(error: EarshotError, report: HostReport | None) -> str:
    again = "then run the same command again"
    if any(word in error.observed.lower() for word in ("certificate", "ssl")):
        return error.remedy  # the handshake failed, so the network is not the problem
    if report and report.detail:
        return (
            f"fix what the host reports (aws ssm start-session --target {report.instance}), {again}"
        )
    if report and report.state == "prepared":
        return (
            f"see `journalctl -u docker` there (aws ssm start-session --target {report.instance}), "
            f"{again}"
        )
    return (
        "check that this machine is in one of `deployers` and has a route into the VPC (a VPN, or "
        "a machine in the VPC), and that the host's subnet reaches AWS's services and packages; "
        f"{again}"
    )


class DockerHostImagesKind(AwsKind):
    """Waits until an engine has all of its images, which the host pulls.

    Inputs: `name` of the host; `engine` and `cert_path`; `instance`, its id; `images`, their names;
    `parameter`, the SSM parameter with the list of images for the host; `seconds`, the time limit;
    `report`, the SSM parameter with the host's report, and its `region`.
    """

    ID = "pulled"
    DECISIVE = ("images", "instance", "parameter")
    interrupted = "interrupted while a host pulled images; the next `pulumi up` waits again"

    def apply(self, operation: Operation, olds: Properties, news: Properties) -> Properties:
        host = host_of(news)
        begin = last_log = time.monotonic()
        problem, since = "", begin
        with Engines() as engines:
            while missing_images := [
                image for image in news["images"] if not has_image(engines, host, image)
            ]:
                report = report_of(self.settings(operation), news)
                new_problem, time_now = report.detail if report else "", time.monotonic()
                if new_problem != problem:
                    problem, since = new_problem, time_now
                elapsed = time_now - begin
                if elapsed >= news["seconds"] or (problem and time_now - since >= IMAGE_PATIENCE):
                    raise _image_error(news, missing_images, problem, int(elapsed))
                if time_now - last_log >= LOG_SECONDS:
                    text = f"Docker host {host.name} pulls {', '.join(missing_images)}"
                    operation.log(f"{text}: {problem}" if problem else text)
                    last_log = time_now
                operation.wait(POLL_SECONDS)
        return news


class DockerHostImages(InternalResource):
    """Images that are on a host."""


def _image_error(props: Properties, images: list[str], problem: str, seconds: int) -> EarshotError:
    report = f"; the host reports: {problem}" if problem else "; the host reports no problem"
    return EarshotError(
        f"image {', '.join(images)} on Docker host {props['name']}",
        observed=f"is missing after {seconds} s{report}",
        remedy="check that the repository has the image for the host's architecture, that a "
        "repository of another account admits this one, and that the host's subnet reaches ECR "
        "and S3 (`journalctl -u docker-pull` there: aws ssm start-session --target "
        f"{props['instance']}); then run the same command again",
    )
