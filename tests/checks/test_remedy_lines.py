"""What sets a property of a broker in a Compose file."""

import pytest

from earshot.checks.remedy_lines import setting_of
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
