"""Where a listener that a remedy adds may bind."""

import pytest

from earshot.checks.remedy_lines import CheckedFile, added_listener
from earshot.sources.deployment import deployment
from tests.rules.deployment_examples import services


@pytest.mark.parametrize(("last", "port"), [(65_534, 65_535), (65_535, None)])
def test_it_binds_the_first_port_that_is_free_if_any_is(last: int, port: int | None) -> None:
    listed = services(f"""
services:
  kafka:
    image: confluentinc/cp-kafka:7.6.0
    ports: ["1-{last}:1-{last}"]
    environment:
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_LISTENERS: PLAINTEXT://:9092
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:29092
""")
    whole = CheckedFile(listed, deployment(listed))
    found = added_listener(
        whole, whole.deployment.by_service["kafka"], "PLAINTEXT", ("EXTERNAL",), 19092
    )
    assert (found.port if found is not None else None) == port
