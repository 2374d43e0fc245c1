"""Settings of properties in a Compose file, and where a listener that a remedy adds may bind."""

import pytest

from earshot.checks.remedy_lines import CheckedFile, added_listener, on_one_line, setting_of
from earshot.sources.deployment import deployment
from tests.rules.deployment_examples import services


@pytest.mark.parametrize(
    ("image", "given", "setting"),
    [
        ("apache/kafka:4.1.1", "KAFKA_NODE_ID", "KAFKA_ADVERTISED_LISTENERS"),
        ("apache/kafka:4.1.1", "KAFKA_CFG_NODE_ID", "KAFKA_ADVERTISED_LISTENERS"),
        ("bitnami/kafka:3.9", "KAFKA_CFG_NODE_ID", "KAFKA_CFG_ADVERTISED_LISTENERS"),
        ("ours", "KAFKA_CFG_NODE_ID", "KAFKA_CFG_ADVERTISED_LISTENERS"),
        ("ours", "KAFKA_NODE_ID", "KAFKA_ADVERTISED_LISTENERS"),
        ("ours", "KAFKA_CFG_ADVERTISED_LISTENERS", "KAFKA_CFG_ADVERTISED_LISTENERS"),
    ],
)
def test_a_property_is_set_as_the_image_reads_it(image: str, given: str, setting: str) -> None:
    (service,) = services(f"services: {{k: {{image: {image}, environment: {{{given}: a}}}}}}")
    assert setting_of(service, "advertised.listeners") == setting


def test_a_list_in_one_line_has_no_empty_entry() -> None:
    assert on_one_line("\n A://a:1,\n , B://b:2,\n") == "A://a:1,B://b:2"


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
