"""`earshot tunnel` in tests, and clients of three libraries in a tunnel."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from earshot.jvm.java import find_java
from tests.e2e.images.load import kafka_jars
from tests.e2e.ssh_host import unwrapped

COMMAND_SECONDS = 100
END_SECONDS = 60.0
# with the settings of KafkaJS's constructor; writes 100 records to each partition, and reads them
KAFKAJS = """
const { Kafka, logLevel } = require("kafkajs")
const [settings, topic] = process.argv.slice(2)
const kafka = new Kafka({ ...JSON.parse(settings), logLevel: logLevel.WARN })
const work = async () => {
  const producer = kafka.producer()
  await producer.connect()
  for (const partition of [0, 1, 2]) {
    const numbers = [...Array(100).keys()]
    const messages = numbers.map((it) => ({ partition, value: `node ${partition}-${it}` }))
    await producer.send({ topic, messages })
  }
  await producer.disconnect()
  const consumer = kafka.consumer({ groupId: `${topic}-node` })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  const read = new Set()
  await new Promise((resolve) => consumer.run({ eachMessage: async ({ message }) => {
    const value = message.value.toString()
    if (value.startsWith("node ")) read.add(value)
    if (read.size === 300) resolve()
  }}))
  await consumer.disconnect()
  console.log(`read ${read.size}`)
}
work().then(() => process.exit(0), (fault) => { console.error(fault); process.exit(1) })
"""


@dataclass(frozen=True)
class Laptop:
    """A machine with a contract and an ssh to `bastion`; ``wrap`` makes of a command one that runs
    there."""

    contract: Path
    environment: Mapping[str, str]
    wrap: Callable[..., Sequence[str]] = unwrapped

    def tunnelled(self, listener: str, *command: str, via: str = "ssh://bastion") -> Sequence[str]:
        """``command`` of this machine in a tunnel to ``listener``."""
        words = ["--via", via, "--contract", str(self.contract), "--listener", listener]
        return self.earshot("tunnel", *words, "--", *command)

    def earshot(self, *words: str) -> Sequence[str]:
        return self.wrap(sys.executable, "-m", "earshot", *words)

    def output_of(self, command: Sequence[str]) -> str:
        return output_of(command, self.environment)

    @contextlib.contextmanager
    def tunnel(self, *options: str, via: str = "ssh://bastion") -> Iterator[str]:
        """A tunnel that is ready. Yields its output. SIGTERM ends it and its commands."""
        command = self.earshot("tunnel", "--via", via, *options)
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=self.environment, **pipes) as process:
            output = ""
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                output += line
                if line.startswith("ready"):
                    break
            else:
                raise AssertionError(process.stderr.read())
            try:
                yield output
            finally:
                child_processes = psutil.Process(process.pid).children(recursive=True)
                process.terminate()
                start_time = time.monotonic()
                _, errors = process.communicate(timeout=END_SECONDS)
                assert process.returncode == 0 and time.monotonic() - start_time < 3, errors
                assert not psutil.wait_procs(child_processes, 3)[1]


def output_of(command: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    completed = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=COMMAND_SECONDS
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


def java(*arguments: str, hosts: str = "") -> list[str]:
    """The command of one of Kafka's tools, with its own hosts file if one is named."""
    jars = ":".join(map(str, kafka_jars()))
    hosts_option = [f"-Djdk.net.hosts.file={hosts}"] if hosts else []
    return [str(find_java().executable), "-Xmx128m", *hosts_option, "-cp", jars, *arguments]


def java_writes(topic: str, count: int, properties: Sequence[str]) -> list[str]:
    """The command that writes ``count`` records and prints `COUNT records sent`."""
    counts = ["--num-records", str(count), "--record-size", "100", "--throughput", "-1"]
    tool = "org.apache.kafka.tools.ProducerPerformance"
    return java(tool, "--topic", topic, *counts, "--producer-props", *properties)


def java_reads(topic: str, count: int, bootstrap: str, *words: str) -> list[str]:
    """The command that reads ``count`` records from the beginning, one a line."""
    counts = ["--from-beginning", "--max-messages", str(count), "--timeout-ms", "60000"]
    tool = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    return java(tool, *counts, "--topic", topic, "--bootstrap-server", bootstrap, *words)


def kafkajs(folder: Path) -> Path:
    """Writes the script KAFKAJS into ``folder``, with its library."""
    output_of(
        ["npm", "install", "--prefer-offline", "--prefix", str(folder), "--silent", "kafkajs@2.2.4"]
    )
    script = folder / "all.js"
    script.write_text(KAFKAJS)
    return script
