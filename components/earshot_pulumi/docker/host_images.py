"""Waits until a Docker host has pulled images from ECR with its own role."""

import time
from typing import Final

from earshot.errors import EarshotError
from earshot_pulumi.aws_settings import AwsKind
from earshot_pulumi.docker.clusters import host_of
from earshot_pulumi.docker.container_address import Engines
from earshot_pulumi.docker.engine_ready import LOG_SECONDS, POLL_SECONDS, report_of
from earshot_pulumi.docker.images import has_image
from earshot_pulumi.provider.internal import InternalResource
from earshot_pulumi.provider.kind import Operation, Properties

PATIENCE: Final = 120.0
"""Seconds during which the host may report the same problem: a role's new policy takes effect
later."""


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
                if elapsed >= news["seconds"] or (problem and time_now - since >= PATIENCE):
                    raise _deadline_error(news, missing_images, problem, int(elapsed))
                if time_now - last_log >= LOG_SECONDS:
                    text = f"Docker host {host.name} pulls {', '.join(missing_images)}"
                    operation.log(f"{text}: {problem}" if problem else text)
                    last_log = time_now
                operation.wait(POLL_SECONDS)
        return news


class DockerHostImages(InternalResource):
    """Images that are on a host."""


def _deadline_error(
    props: Properties, images: list[str], problem: str, seconds: int
) -> EarshotError:
    report = f"; the host reports: {problem}" if problem else "; the host reports no problem"
    return EarshotError(
        f"image {', '.join(images)} on Docker host {props['name']}",
        observed=f"is missing after {seconds} s{report}",
        remedy="check that the repository has the image for the host's architecture, that a "
        "repository of another account admits this one, and that the host's subnet reaches ECR "
        "and S3 (`journalctl -u docker-pull` there: aws ssm start-session --target "
        f"{props['instance']}); then run the same command again",
    )
