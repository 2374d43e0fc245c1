"""Images for tests, loaded into an engine that lacks them; a label has the digest of the inputs.

An image with a long build is also kept in the user's cache for the next engine.
"""

import contextlib
import hashlib
import io
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

import docker

import earshot
from earshot.files import cache
from earshot.jvm import jars
from earshot.remote import image
from tests.e2e.docker_engine import Engine
from tests.e2e.images import base

LABEL = "earshot-test.digest"
IMAGES = "images.tar"
CONTEXT = Path(__file__).parent / "kafka"
OLDEST = 4
# Kafka's scripts for health checks and tests, and the classes that they run.
SCRIPTS = {
    "kafka-acls": "org.apache.kafka.tools.AclCommand",
    "kafka-broker-api-versions": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-cluster": "org.apache.kafka.tools.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "kafka-log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "kafka-metadata-quorum": "org.apache.kafka.tools.MetadataQuorumCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-topics": "org.apache.kafka.tools.TopicCommand",
}


def kafka_image(engine: Engine, version: str = jars.KAFKA_VERSION) -> str:
    """Builds a double of ``apache/kafka:<version>`` (4.0 or newer). Returns its name.

    It never has the name of the official image.

    It is a real broker with the image's start-up rules, and has kcat and network tools in addition.
    """
    if int(version.partition(".")[0]) < OLDEST:
        raise ValueError(f"a double of Kafka {version}: only for {OLDEST}.0 and newer")
    name = f"earshot-test/apache-kafka-double:{version}"
    files = {
        path.relative_to(CONTEXT).as_posix(): path.read_bytes()
        for path in CONTEXT.rglob("*")
        if path.is_file()
    }
    files |= kafka_scripts()
    files |= {f"libs/{path.name}": path.read_bytes() for path in kafka_jars(version)}
    _build(engine, name, files, is_cached=True)
    return name


def kafka_scripts() -> dict[str, bytes]:
    """Kafka's command-line tools as `bin/<name>.sh`, with `libs` in the same folder."""
    files = {}
    for script, kind in SCRIPTS.items():
        line = f'exec "$(dirname "$0")/kafka-run-class.sh" {kind} "$@"'
        files[f"bin/{script}.sh"] = f"#!/usr/bin/env bash\n{line}\n".encode()
    return files


def instance_image(engine: Engine) -> str:
    """A machine with systemd and cloud-init, for `tests/e2e/instance.py`.

    It has class-data archives for the Kafka of `tests/e2e/kafka_archive.py`, which has the jars of
    the double of ``apache/kafka`` in the same place.
    """
    name = "earshot-test/instance:latest"
    folder = CONTEXT.with_name("instance")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    _build(engine, name, files, base.INSTANCE, {"KAFKA": kafka_image(engine)})
    return name


def docker_host_image(engine: Engine) -> str:
    """A machine like `instance_image` with a Docker engine, which does not start at boot."""
    name = "earshot-test/docker-host:latest"
    folders = [CONTEXT.with_name(folder) for folder in ("instance", "docker-host")]
    files = {path.name: path.read_bytes() for folder in folders for path in folder.iterdir()}
    files["Dockerfile"] = b"\n".join((folder / "Dockerfile").read_bytes() for folder in folders)
    _build(engine, name, files, base.DOCKER_HOST, {"KAFKA": kafka_image(engine)})
    return name


def kafka_jars(version: str = jars.KAFKA_VERSION) -> tuple[Path, ...]:
    """A broker's jars and those of Kafka's command-line tools."""
    group = "org.apache.kafka"
    coordinates = [f"{group}:kafka_{jars.SCALA}:{version}", f"{group}:kafka-tools:{version}"]
    return jars.fetch(f"kafka-tools-{version}", [*coordinates, jars.LOG4J_BINDING])


def client_image(engine: Engine) -> str:
    """An idle image with kcat, netcat, dig and curl for `docker exec`."""
    name = "earshot-test/client:latest"
    text = 'ARG BASE\nFROM ${BASE}\nSTOPSIGNAL SIGKILL\nCMD ["sleep", "infinity"]\n'
    _build(engine, name, {"Dockerfile": text.encode()})
    return name


def base_image(engine: Engine, further: tuple[str, ...] = ()) -> str:
    """Debian with a JRE, network tools and ``further`` packages, imported from the cached file
    system."""
    name, digest = base.name(further), base.digest(further)
    with _one_at_a_time(), contextlib.closing(engine.client()) as client:
        if _digest(client, name) != digest:
            repository, _, tag = name.partition(":")
            client.api.import_image(
                str(base.archive(further)),
                repository=repository,
                tag=tag,
                changes=[f"LABEL {LABEL}={digest}"],
            )
            if _digest(client, name) != digest:
                raise RuntimeError(f"importing {name} into {engine.address} left no such image")
    return name


def validator_images(engine: Engine) -> tuple[str, str]:
    """`base_image`, and the validator image that ``engine`` has on it.

    The Python packages, which take a minute or more to install, are kept in the cache. Without them
    the image is built as users build it.
    """
    parent, files = base_image(engine), image.context()
    packages, digest = image.packages_digest(files, parent), image.digest_of(files, parent)
    stage = f"earshot-test/validator-packages:{packages}"
    name, stored_folder = f"{image.NAME}:{earshot.__version__}-{digest}", _stored_folder(stage)
    with _one_at_a_time(), contextlib.closing(engine.client()) as client:
        if client.images.list(name):
            return parent, name
        if _load(engine, stored_folder):
            dockerfile = files["Dockerfile"]
            last_stage = dockerfile[dockerfile.index(b"COPY jars/") :]
            remade = {**files, "Dockerfile": f"FROM {stage}\n".encode() + last_stage}
            _build_from(client, remade, name, {image.LABEL: digest})
        else:
            image.ensure_image(client, parent)
            label = f"{image.PACKAGES_LABEL}={packages}"
            for built in client.images.list(filters={"label": label, "dangling": True}):
                if image.LABEL not in built.labels:
                    built.tag(stage)
            if client.images.list(stage):
                _keep(engine, stored_folder, stage)
        with contextlib.suppress(docker.errors.ImageNotFound):
            client.images.remove(stage, noprune=True)  # `remove_old` keeps an image with this tag
    return parent, name


def _build(
    engine: Engine,
    name: str,
    files: Mapping[str, bytes],
    further: tuple[str, ...] = (),
    arguments: Mapping[str, str] | None = None,
    *,
    is_cached: bool = False,
) -> None:
    """Builds ``name`` on `base_image`; ``arguments`` of its Dockerfile are names of images.

    If it is ``is_cached``, it comes from the cache, or goes there once it is built.
    """
    parent = base.name(further)
    with contextlib.closing(engine.client()) as client:
        digests = [f"{_digest(client, argument)}" for argument in (arguments or {}).values()]
    content_hash = hashlib.sha256("\0".join([parent, *digests]).encode())
    for path in sorted(files):
        content_hash.update(path.encode() + b"\0" + hashlib.sha256(files[path]).digest())
    digest = content_hash.hexdigest()
    stored_folder = _stored_folder(f"{name}-{digest[:12]}")
    with _one_at_a_time(), contextlib.closing(engine.client()) as client:
        if _digest(client, name) == digest:
            return
        if is_cached and _load(engine, stored_folder) and _digest(client, name) == digest:
            return
    base_image(engine, further)
    with _one_at_a_time(), contextlib.closing(engine.client()) as client:
        if _digest(client, name) != digest:
            _build_from(client, files, name, {LABEL: digest}, {"BASE": parent, **(arguments or {})})
            if is_cached:
                _keep(engine, stored_folder, name, parent)


def _build_from(
    client: docker.DockerClient,
    files: Mapping[str, bytes],
    name: str,
    labels: dict[str, str],
    arguments: Mapping[str, str] | None = None,
) -> None:
    client.images.build(
        fileobj=_archive(files),
        custom_context=True,
        tag=name,
        buildargs=dict(arguments or {}),
        labels=labels,
        rm=True,
        forcerm=True,
    )


def _stored_folder(name: str) -> Path:
    """The folder in which an image is kept."""
    repository, _, tag = name.rpartition("/")[2].partition(":")
    return cache.root() / "docker" / "images" / repository / tag


def _load(engine: Engine, folder: Path) -> bool:
    """True if ``engine`` has loaded the images in ``folder``; damaged ones are removed."""
    if not folder.is_dir():
        return False
    try:
        engine.run("load", "--quiet", "--input", str(folder / IMAGES))
    except AssertionError:
        shutil.rmtree(folder, ignore_errors=True)
        return False
    return True


def _keep(engine: Engine, folder: Path, *names: str) -> None:
    """Stores images in ``folder``, and removes those of another version or digest.

    If there is no room for them, the next engine builds them again.
    """

    def save(new_folder: Path) -> None:
        engine.run("save", "--output", str(new_folder / IMAGES), *names)

    shutil.rmtree(folder.parent, ignore_errors=True)
    with contextlib.suppress(AssertionError, OSError):
        cache.ensure(folder, save)


def _one_at_a_time() -> contextlib.AbstractContextManager[None]:
    """Locks the images, so that processes with a common engine build each once."""
    return cache.exclusive(cache.root() / "docker" / "images.lock")


def _archive(files: Mapping[str, bytes]) -> io.BytesIO:
    """A build context. Files that begin with #! are executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path, content in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(content)
            member.mode = 0o755 if content.startswith(b"#!") else 0o644
            archive.addfile(member, io.BytesIO(content))
    buffer.seek(0)
    return buffer


def _digest(client: docker.DockerClient, name: str) -> str | None:
    try:
        labels: dict[str, str] = client.images.get(name).labels
    except docker.errors.ImageNotFound:
        return None
    return labels.get(LABEL)
