"""A Kafka archive of the layout that Apache publishes, from the jars and scripts of the tests."""

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

from earshot.jvm import jars
from tests.e2e.images import load


@dataclass(frozen=True)
class KafkaArchive:
    path: Path
    sha512: str


def kafka_archive(folder: Path, version: str = jars.KAFKA_VERSION) -> KafkaArchive:
    """`kafka_2.13-<version>.tgz` in ``folder``: bin, config and libs."""
    top = f"kafka_{jars.SCALA}-{version}"
    path = folder / f"{top}.tgz"
    texts = load.kafka_scripts()
    texts |= {
        f"bin/{script.name}": script.read_bytes() for script in (load.CONTEXT / "bin").iterdir()
    }
    for name in ("log4j2.yaml", "tools-log4j2.yaml"):
        texts[f"config/{name}"] = (load.CONTEXT / "docker" / name).read_bytes()
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in sorted(texts.items()):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            member.mode = 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(member, io.BytesIO(content))
        for jar in load.kafka_jars(version):
            archive.add(jar, f"{top}/libs/{jar.name}")
    with path.open("rb") as file:
        return KafkaArchive(path, hashlib.file_digest(file, "sha512").hexdigest())
