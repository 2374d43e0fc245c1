"""Services from images and their variables."""

from __future__ import annotations

from collections.abc import Mapping

from earshot.sources.service import Service
from earshot.topology.container import Container

APACHE = "apache/kafka:4.1.1"
CONFLUENT = "confluentinc/cp-kafka:7.6.0"
BITNAMI = "bitnami/kafka:3.9.0"
UNKNOWN = "example/kafka:1.0"


def service(
    image: str,
    env: Mapping[str, str] | None = None,
    command: str = "",
    properties: str = "",
    **inputs: object,
) -> Service:
    is_built = bool(inputs.pop("is_built", False))
    container = Container("kafka", image, env=env or {}, **inputs)  # type: ignore[arg-type]
    return Service(
        "kafka", container, tuple(command.split()), properties=properties, is_built=is_built
    )
