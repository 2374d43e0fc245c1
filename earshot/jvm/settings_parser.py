"""The child process of `broker_settings`: reads JSON from stdin, asks a JVM, writes JSON to stdout.

It runs as a file, so it does not import earshot. Its JVM ends with it, because its standard input
closes. The process ends at its deadline even if the caller does not.
"""

import json
import logging
import math
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j import java_gateway
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from earshot.json_object import Document, JsonObject

JVM_OPTIONS = [
    "-Xmx128m",
    "-XX:+UseSerialGC",
    # Kafka looks up the voters' hosts and ignores the result; an empty hosts file answers at once
    "-Djdk.net.hosts.file=/dev/null",
]
CLASSES = (
    "authorizer.class.name",
    "kafka.metrics.reporters",
    "metric.reporters",
    "replica.selector.class",
)
"""Settings with classes that a starting broker loads, and Kafka's parser does not."""


def main() -> None:
    """Answers the question. On failure exits with 1, and the reason as the last line on stderr."""
    question = json.load(sys.stdin)
    logging.disable()  # py4j logs objects that it cannot release after the JVM has ended
    signal.alarm(math.ceil(question["deadline"]))
    try:
        json.dump(_answer(question), sys.stdout)
    except Py4JJavaError as error:
        sys.exit(str(error.java_exception.toString()))
    except (OSError, Py4JError) as error:
        sys.exit(str(error))


def _answer(question: Document) -> JsonObject:
    java, class_path, options = (question[name] for name in ("java", "class_path", "options"))
    with _gateway(java, class_path, options) as gateway:
        refusals = {id: _refusal(gateway, text) for id, text in question["properties"].items()}
        return {
            "refusals": {id: text for id, text in refusals.items() if text},
            "metadata_version": _metadata_version(gateway),
        }


@contextmanager
def _gateway(java: str, class_path: str, options: list[str]) -> Iterator[JavaGateway]:
    jar = java_gateway.find_jar_path()
    # Java uses the last -cp; a class-data archive fits if the class path begins with its own
    ordered = ["-cp", os.pathsep.join((class_path, jar))]
    try:
        port, token, process = java_gateway.launch_gateway(
            jarpath=jar,
            java_path=java,
            javaopts=[*JVM_OPTIONS, *options, *ordered],
            die_on_exit=True,
            enable_auth=True,
            return_proc=True,
            redirect_stderr=sys.stderr,
        )
    except ValueError:  # the JVM printed no port, but the reason on stderr
        raise Py4JError("the JVM did not start") from None
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        yield gateway
    finally:
        process.kill()
        process.stdin.close()
        process.wait()


def _refusal(gateway: JavaGateway, text: str) -> str:
    """Kafka's message, or an empty text. Raises Py4JJavaError if the jars do not fit together."""
    jvm = gateway.jvm
    properties = jvm.java.util.Properties()
    properties.load(jvm.java.io.StringReader(text))
    if not isinstance(jvm.kafka.server.KafkaConfig, java_gateway.JavaClass):
        raise Py4JError("no kafka.server.KafkaConfig is among the jars")
    try:
        jvm.kafka.server.KafkaConfig.fromProps(properties, False)
    except Py4JJavaError as error:
        cause = error.java_exception
        if java_gateway.is_instance_of(gateway, cause, "java.lang.Error"):
            raise  # the jars do not fit together
        return str(cause.getMessage() or cause.toString())
    return _missing_class(gateway, properties)


def _missing_class(gateway: JavaGateway, properties: Any) -> str:
    """A message about the first class in `CLASSES` that the jars lack, in Kafka's own words."""
    loader = gateway.jvm.java.lang.ClassLoader.getSystemClassLoader()
    for key in CLASSES:
        value = str(properties.getProperty(key, ""))
        # a reference is resolved by the starting broker
        for name in () if "${" in value else map(str.strip, value.split(",")):
            try:
                if name:
                    loader.loadClass(name)
            except Py4JJavaError:
                return (
                    f"Invalid value {value} for configuration {key}: "
                    f"Class {name} could not be found."
                )
    return ""


def _metadata_version(gateway: JavaGateway) -> int | None:
    try:
        newest = gateway.jvm.org.apache.kafka.server.common.MetadataVersion.latestProduction()
        return int(newest.featureLevel())
    except (TypeError, Py4JError):
        return None


if __name__ == "__main__":
    main()
