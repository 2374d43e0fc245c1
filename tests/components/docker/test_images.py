"""Pulls by an engine of any answers."""

import pytest
from earshot_pulumi.docker import images

from earshot.config.docker_host import DockerHost
from earshot.engine.connection import connect
from earshot.errors import EarshotError
from earshot.placement.standpoint import CandidateEngine
from tests.doubles.engine_server import document, engine_server


@pytest.mark.parametrize("image", [None, 5, [], "x"])
def test_an_image_of_another_form_is_one_error_about_the_image(image: object) -> None:
    answers = {
        "POST /v1.41/images/create": document(b'{"status": "done"}'),
        "GET /v1.41/images/.*": document(image),
    }
    refused = pytest.raises(EarshotError, match=r"image kafka:1 .* cannot pull it \(the answer")
    with (
        engine_server(answers) as address,
        connect(CandidateEngine(engine=address), {}) as client,
        refused,
    ):
        images._pull(client, DockerHost(name="a"), "kafka:1", progress=lambda text: None)
