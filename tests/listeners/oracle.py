"""Kafka's own verdict on a broker's properties: `KafkaConfig.fromProps` of a released version.

It validates and touches no disk, and needs about 2 ms once its JVM runs. It looks voters' hosts
up: use localhost or addresses there.
"""

import contextlib
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import py4j.java_gateway
import py4j.protocol
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from earshot.jvm.jars import class_path, kafka_broker_jars
from earshot.jvm.java import find_java

VERSIONS = ("3.9.2", "4.1.1", "4.3.1")
"""The oldest supported, the default, and a newer one; `tests/judge` asks more of them."""
_NAME = re.compile(r"istenerName(?:\(|=')([^)']+)")


@dataclass(frozen=True)
class Oracle:
    """One JVM with the jars of one Kafka version."""

    version: str
    jvm: Any

    def refusal(self, values: Mapping[str, str]) -> str:
        """Why Kafka refuses a node with these properties; an empty text if it takes them."""
        properties = self.jvm.java.util.Properties()
        for key, value in values.items():
            properties.setProperty(key, value)
        return self._verdict(properties)[1]

    def refusal_of_file(self, text: str) -> str:
        """The same for the text of a properties file."""
        return self._verdict(self.load(text))[1]

    def handed_out(
        self, values: Mapping[str, str], by: Literal["Broker", "Controller"]
    ) -> list[tuple[str, str | None, int]]:
        """Listener name, host and port of what a node with these properties tells others."""
        properties = self.jvm.java.util.Properties()
        for key, value in values.items():
            properties.setProperty(key, value)
        config, refusal = self._verdict(properties)
        assert not refusal, refusal
        found = []
        iterator = getattr(config, f"effectiveAdvertised{by}Listeners")().iterator()
        while iterator.hasNext():  # of a Scala Seq or a Java List
            endpoint = iterator.next()
            name = _NAME.search(endpoint.toString())
            assert name is not None
            found.append((name[1], endpoint.host(), endpoint.port()))
        return found

    def load(self, text: str) -> Any:
        """A `java.util.Properties` of the text of a properties file."""
        properties = self.jvm.java.util.Properties()
        properties.load(self.jvm.java.io.StringReader(text))
        return properties

    def _verdict(self, properties: Any) -> tuple[Any, str]:
        try:
            return self.jvm.kafka.server.KafkaConfig.fromProps(properties, False), ""
        except Py4JJavaError as error:
            cause = error.java_exception
            return None, str(cause.getMessage() or cause.toString())


@pytest.fixture(scope="module", autouse=True)
def kafkas_own_exceptions() -> Iterator[None]:
    """For folders that ask the oracle.

    A Spark session that this process has opened makes py4j take every JVM for Spark's.
    """
    of_spark = py4j.java_gateway.get_return_value
    py4j.java_gateway.get_return_value = py4j.protocol.get_return_value
    yield
    py4j.java_gateway.get_return_value = of_spark


@contextlib.contextmanager
def started(version: str) -> Iterator[Oracle]:
    """An oracle for ``version``; its JVM is gone afterwards."""
    with java_with(kafka_broker_jars(version)) as gateway:
        yield Oracle(version, gateway.jvm)


@contextlib.contextmanager
def java_with(jars: Iterable[Path], *options: str) -> Iterator[JavaGateway]:
    """A JVM that has ``jars``; it is gone afterwards."""
    port, token, process = launch_gateway(
        classpath=class_path(jars),
        java_path=str(find_java().executable),
        javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options],
        die_on_exit=True,
        enable_auth=True,
        return_proc=True,
        redirect_stderr=subprocess.DEVNULL,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.stdout.close()
        process.wait(timeout=30)


@pytest.fixture(scope="session", params=VERSIONS)
def oracle(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """Kafka's verdict, for every version in turn."""
    with started(request.param) as running:
        yield running
