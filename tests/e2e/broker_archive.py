"""The class-data archive of local brokers, recorded by a broker that runs for nothing else.

Where a node is formatted first, the archive has what that has loaded: half of a broker's classes.
With one of a whole life, a broker starts with a second less of computing, and tests start more than
a hundred of them.
"""

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer
from earshot_pulumi.local.process_record import MAIN_CLASS

from earshot.certificates.authority import Subject, issue, new_authority
from earshot.errors import EarshotError
from earshot.jvm.archive import ArchiveRecorder, recording
from earshot.jvm.jars import class_path, kafka_broker_jars
from earshot.jvm.java import find_java, jvm_environment
from tests.e2e.ports import free_ports

START_SECONDS = END_SECONDS = 60.0
CLUSTER_ID = "ZWFyc2hvdC10cmFpbmluZw"
TOPIC = "recorded"
SETTINGS = """\
node.id=1
process.roles=broker,controller
controller.quorum.voters=1@localhost:{controller}
controller.listener.names=CONTROLLER
listeners=PLAIN://127.0.0.1:{plain},SECURED://127.0.0.1:{secured},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAIN://localhost:{plain},SECURED://localhost:{secured}
listener.security.protocol.map=PLAIN:PLAINTEXT,SECURED:SSL,CONTROLLER:SSL
inter.broker.listener.name=PLAIN
listener.name.controller.ssl.client.auth=required
listener.name.secured.ssl.client.auth=required
ssl.keystore.type=PEM
ssl.keystore.location={folder}/node.pem
ssl.truststore.type=PEM
ssl.truststore.location={folder}/authority.pem
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:CN=localhost,OU=nodes
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
log.cleaner.dedupe.buffer.size=2097152
log.dirs={folder}/data
"""
LOGGING = """\
appender.file.type=RollingFile
appender.file.name=file
appender.file.fileName=server.log
appender.file.filePattern=server.log.%i
appender.file.layout.type=PatternLayout
appender.file.layout.pattern=[%d] %p %m (%c)%n
appender.file.policies.type=Policies
appender.file.policies.size.type=SizeBasedTriggeringPolicy
appender.file.policies.size.size=10MB
rootLogger.level=INFO
rootLogger.appenderRef.file.ref=file
"""


def ensure() -> None:
    """Records the archive if it does not exist yet. Without it, brokers only start slower."""
    try:
        java, jars = find_java().executable, kafka_broker_jars(fetching=False)
    except EarshotError:  # tests that need them say so
        return
    recorded = recording(java, jars)
    if recorded is None:
        return
    folder = Path(tempfile.mkdtemp(prefix="earshot-recorded-"))
    try:
        _record(recorded, [str(java), "-Xmx256m", "-XX:+UseSerialGC"], class_path(jars), folder)
    except (OSError, subprocess.SubprocessError, TimeoutError, KafkaException) as reason:
        print(f"no class-data archive of a broker: {reason}")
    finally:
        recorded.discard()
        shutil.rmtree(folder)


def _record(recording: ArchiveRecorder, java: list[str], classes: str, folder: Path) -> None:
    plain_port, secured_port, controller_port = free_ports(3)
    _write_stores(folder)
    (folder / "log4j2.properties").write_text(LOGGING)
    settings = folder / "server.properties"
    settings.write_text(
        SETTINGS.format(
            folder=folder, plain=plain_port, secured=secured_port, controller=controller_port
        )
    )
    log_option = f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}"
    tool = [*java, log_option, "-cp", classes, "kafka.tools.StorageTool", "format"]
    environment = jvm_environment()
    subprocess.run(
        [*tool, "-t", CLUSTER_ID, "-c", settings],
        cwd=folder, env=environment, check=True, capture_output=True, timeout=START_SECONDS,
    )  # fmt: skip
    (folder / "server.log").unlink()
    broker = subprocess.Popen(
        [*java, *recording.options, log_option, "-cp", classes, MAIN_CLASS, settings],
        cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        _await_start(broker, folder / "server.log")
        _use({"bootstrap.servers": f"localhost:{plain_port}"})
        _use(
            {
                "bootstrap.servers": f"localhost:{secured_port}",
                "security.protocol": "SSL",
                "ssl.ca.location": str(folder / "authority.pem"),
                "ssl.certificate.location": str(folder / "node.pem"),
                "ssl.key.location": str(folder / "node.pem"),
            }
        )
        broker.terminate()
        broker.wait(END_SECONDS)
        recording.keep()
    finally:
        broker.kill()
        broker.wait()


def _write_stores(folder: Path) -> None:
    current_time = datetime.now(UTC)
    authority = new_authority("recorded", current_time)
    node = issue(authority, Subject("localhost", "nodes"), ["localhost"], 1, current_time)
    (folder / "authority.pem").write_text(authority.certificate)
    (folder / "node.pem").touch(mode=0o600)
    (folder / "node.pem").write_text(node.key + node.certificate + authority.certificate)


def _await_start(broker: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while not (log.exists() and "Kafka Server started" in log.read_text(errors="replace")):
        if broker.poll() is not None or time.monotonic() > end:
            raise TimeoutError(f"the broker has not started within {START_SECONDS:.0f} s")
        time.sleep(0.1)


def _use(client: Mapping[str, str]) -> None:
    """Writes a record through this listener, and reads it back in a group."""
    producer = Producer({**client, "acks": "all"})
    producer.produce(TOPIC, "record")
    producer.flush(START_SECONDS)
    group = {"group.id": "recorded", "auto.offset.reset": "earliest"}
    with contextlib.closing(Consumer({**client, **group})) as consumer:
        consumer.subscribe([TOPIC])
        consumer.poll(START_SECONDS)
