"""A secured stack of containers on a real engine: the template's one key, and no secret out.

What the engine tells of containers, volumes and images is searched too, while the stack comes up.
"""

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import docker
import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, ScramMechanism
from earshot_pulumi.docker import labels
from earshot_pulumi.docker.inner_listener import InnerListener, NodeKeys, opened

from earshot.certificates.authority import read_certificate
from earshot.report.json import read_report
from earshot.validation.terms import Stage, Verdict
from tests.certificates.handed_over import FILES, PASSWORD, hand_over
from tests.e2e.attack import attack_within
from tests.e2e.docker_engine import Engine
from tests.e2e.docker_stack import (
    DockerStack,
    docker_cluster,
    docker_deployment,
    resolver_config,
    with_outside_name,
)
from tests.e2e.images.load import validator_images
from tests.e2e.open_sockets import documented_addresses
from tests.e2e.outside import outside
from tests.e2e.secured import (
    SecuredClusterStack,
    accepted_by_each,
    await_refusal,
    client_error,
    denial,
    holders,
    watched_processes,
)

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

FOLDER = "/etc/kafka/secrets"
SECURITY = {"users": [{"name": "app", "prefixes": ["app-"]}]}


@pytest.fixture(scope="module")
def stack(
    docker_engine: Engine, kafka_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredClusterStack[DockerStack]]:
    """The template's three brokers with `security`, up and proved once from all three vantages."""
    folder = tmp_path_factory.mktemp("secure") / "p"
    with outside() as outside_network:
        cluster = docker_cluster(kafka_image, security=SECURITY)
        cluster = with_outside_name(cluster, outside_network, validator_images(docker_engine)[0])
        config = resolver_config(outside_network)
        with docker_deployment(folder, docker_engine, cluster, config) as new_stack:
            secured_stack, seen_ids = SecuredClusterStack(new_stack), set[str]()
            texts = secured_stack.process_texts
            with (
                contextlib.closing(docker_engine.client()) as client,
                watched_processes(
                    texts, lambda: texts.update(new_container_texts(client, seen_ids)), 0.2
                ),
                attack_within(
                    new_stack.folder, secured_stack.current_secrets, list
                ) as secured_stack.attack,
            ):
                new_stack.up()
            yield secured_stack


def new_container_texts(client: docker.DockerClient, seen_ids: set[str]) -> set[str]:
    """The engine's descriptions of containers whose ids are not in ``seen_ids``, which are added.

    A container that lives a second is described, too. Its settings do not change."""
    container_texts = set()
    with contextlib.suppress(docker.errors.DockerException, requests.RequestException):
        for id in {container["Id"] for container in client.api.containers(all=True)} - seen_ids:
            with contextlib.suppress(docker.errors.DockerException):
                container_texts.add(json.dumps(client.api.inspect_container(id)))
                seen_ids.add(id)
    return container_texts


def engine_texts(stack: DockerStack) -> str:
    """The engine's descriptions of the stack's resources, and its containers' logs."""
    stack_label = f"label={labels.STACK}={stack.stack}"
    parts = []
    for kind in ("container", "volume", "network"):
        words = ("--quiet", "--filter", stack_label)
        output = stack.engine.run(kind, "ls", *words, *(["--all"] if kind == "container" else []))
        parts += [stack.engine.run(kind, "inspect", id) for id in output.split()]
    image = stack.cluster["image"]
    parts += [stack.engine.run("image", "inspect", image), stack.engine.run("history", image)]
    with contextlib.closing(stack.engine.client()) as client:
        for id in stack.containers().values():
            parts.append(client.containers.get(id).logs().decode())
    return "\n".join(parts)


def test_every_listener_is_proved_from_where_its_clients_stand(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    report = stack.report()
    assert len(report.cells) == 9 and {cell.verdict for cell in report.cells} == {Verdict.PASS}
    assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    security = {
        (cell.listener, stage.detail.partition(",")[0])
        for cell in report.cells
        for stage in cell.stages
        if stage.stage is Stage.SECURITY
    }
    assert security == {("INTERNAL", "SSL"), ("HOST", "SASL_SSL"), ("EXTERNAL", "SASL_SSL")}
    assert str(stack.deployment.outputs()["certificates_expire"]).startswith("20")


@pytest.mark.combination
def test_certificates_are_for_exactly_what_is_advertised(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    (host,) = stack.deployment.cluster["hosts"]
    for id, name in stack.deployment.names.items():
        pem = (stack.store.folder / f"node-{id}.pem").read_text()
        certificate = read_certificate(pem)
        assert set(certificate.names.dns) == {name, "localhost", host["external"]}
        container_labels = stack.deployment.inspect(id)["Config"]["Labels"]
        assert container_labels[labels.CERTIFICATE] == certificate.fingerprint


@pytest.mark.combination
def test_data_outlives_the_stack(stack: SecuredClusterStack[DockerStack]) -> None:
    """The doctor proves the stack that comes up again, which takes less time than Spark."""
    deployment, client = stack.deployment, stack.client(listener="HOST")
    write(client, "app-kept", b"still here")
    volumes = deployment.volumes()
    deployment.cluster["validation"]["records"] = 0
    deployment.destroy()
    assert deployment.containers() == {}
    assert deployment.volumes() == volumes
    deployment.up()
    assert first_record(client, "app-kept") == b"still here"
    assert deployment.volumes() == volumes


def write(client: Mapping[str, Any], topic: str, record: bytes) -> None:
    admin = AdminClient(dict(client))
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(20)
    errors: list[object] = []
    producer = Producer({**client, "acks": "all"})
    producer.produce(topic, record, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0 and errors == [None]


def first_record(client: Mapping[str, Any], topic: str) -> bytes:
    consumer = Consumer({**client, "group.id": "app-kept", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        value = message.value()
        assert isinstance(value, bytes)
        return value
    finally:
        consumer.close()


def test_a_killed_container_starts_and_then_nothing_changes(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    deployment = stack.deployment
    containers, incarnations = deployment.containers(), deployment.outputs()["incarnations"]
    deployment.cluster["validation"]["records"] = 0
    deployment.engine.run("kill", deployment.names[2])
    deployment.up(repair=False, refresh=False)
    assert deployment.containers() == containers
    assert deployment.inspect(2)["State"]["Running"]
    proved_incarnations = deployment.outputs()["incarnations"]
    assert {id for id in proved_incarnations if proved_incarnations[id] != incarnations[id]} == {
        "2"
    }
    output = deployment.up()
    assert "unchanged" in output
    assert not any(word in output for word in ("created", "updated", "replaced", "deleted"))
    assert deployment.containers() == containers


@pytest.mark.combination
def test_an_update_without_a_refresh_and_a_preview_change_nothing_either(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    deployment, containers = stack.deployment, stack.deployment.containers()
    deployment.up()
    output = deployment.up(refresh=False)
    assert not any(word in output for word in ("created", "updated", "replaced", "deleted"))
    preview = deployment.pulumi("preview", "--expect-no-changes")
    assert preview.returncode == 0, preview.stdout
    assert deployment.containers() == containers


def file_of(stack: DockerStack, id: int, name: str) -> str:
    """The name of a node's file, which begins with the version of its certificate."""
    version = stack.inspect(id)["Config"]["Labels"][labels.CERTIFICATE]
    return f"{version[:12]}-{name}"


@pytest.mark.combination
def test_keys_are_for_the_images_user_alone(stack: SecuredClusterStack[DockerStack]) -> None:
    engine, names = stack.deployment.engine, stack.deployment.names
    user = engine.run("exec", names[1], "id", "-u").strip()
    file_names = [file_of(stack.deployment, 1, name) for name in ("ca.pem", "node-1.pem")]
    files = [FOLDER, *(f"{FOLDER}/{name}" for name in file_names)]
    modes = engine.run("exec", names[1], "stat", "-c", "%a %u %n", *files).split("\n")
    assert modes[:3] == [f"700 {user} {files[0]}", *(f"400 {user} {file}" for file in files[1:])]
    assert engine.run("exec", names[1], "ls", FOLDER).split() == file_names


def test_no_secret_is_anywhere_but_in_its_own_file(stack: SecuredClusterStack[DockerStack]) -> None:
    deployment, secrets = stack.deployment, stack.secrets
    assert len(secrets) == 8  # the authority's, three nodes', two users' with their passwords
    state = deployment.pulumi("stack", "export", "--show-secrets").stdout
    preview = deployment.pulumi("preview", "--diff", "--show-secrets").stdout
    public_texts = [state, preview, engine_texts(deployment), *stack.process_texts]
    assert not [
        name for name, secret in secrets.items() if any(secret in text for text in public_texts)
    ]
    secret_files = {f".earshot/stacks/{deployment.stack}/kafka/security/{name}" for name in secrets}
    secret_files.add(f".earshot/stacks/{deployment.stack}/kafka/security/validator.properties")
    assert holders(deployment.folder, secrets) == secret_files
    for name in secret_files:
        assert (deployment.folder / name).stat().st_mode & 0o777 == 0o600, name
    # files outside of volumes become part of an image if the container is committed
    for id, name in deployment.names.items():
        place = f"{FOLDER}/{file_of(deployment, id, f'node-{id}.pem')}"
        assert files_with_secrets(deployment, name, secrets) == {place}


def test_another_user_gets_no_secret_from_any_port_or_file(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    """The attack runs during the update that creates the cluster, and its validation."""
    attack = stack.attack
    assert attack.sockets and attack.answers and attack.exposed(stack.secrets) == []
    assert {socket.process for socket in attack.sockets.values()} <= documented_addresses().keys()
    if os.geteuid() == 0:
        assert attack.readable and attack.holders == set()


def files_with_secrets(stack: DockerStack, container: str, secrets: Mapping[str, str]) -> set[str]:
    """The files of a container, volumes included, that hold one of ``secrets``."""
    patterns = stack.folder / "patterns"
    patterns.write_text("\n".join(secrets.values()) + "\n")
    stack.engine.run("cp", str(patterns), f"{container}:/patterns")
    patterns.unlink()
    places = ("/etc/kafka", "/opt/kafka/config", "/opt/kafka/logs", "/tmp", "/var/lib/kafka")
    command = f"grep -rlFf /patterns {' '.join(places)}; rm /patterns"
    as_root = ("exec", "--user=root", container, "bash", "-c", command)
    return set(stack.engine.run(*as_root).split())


@pytest.mark.combination
def test_the_search_finds_what_is_planted(stack: SecuredClusterStack[DockerStack]) -> None:
    deployment, secret = stack.deployment, stack.store.password("app")
    file_name = f"{labels.STACK}={deployment.stack}"
    id = deployment.engine.run(
        "create", f"--label={file_name}", f"--label={labels.NODE}=9", f"--env=KAFKA_P={secret}",
        deployment.cluster["image"],
    ).strip()  # fmt: skip
    try:
        assert secret in engine_texts(deployment)
        deployment.engine.run(
            "exec", deployment.names[1], "bash", "-c", "cp -r /etc/kafka/secrets /tmp/copy"
        )
        paths = files_with_secrets(deployment, deployment.names[1], stack.secrets)
        file_name = file_of(deployment, 1, "node-1.pem")
        assert paths == {f"{FOLDER}/{file_name}", f"/tmp/copy/{file_name}"}
    finally:
        deployment.engine.run("rm", "--volumes", id)


def test_only_users_are_admitted(stack: SecuredClusterStack[DockerStack]) -> None:
    client = stack.client(listener="HOST")
    admin = AdminClient(client)
    admin.create_topics([NewTopic("app-orders", 3, 3)])["app-orders"].result(20)
    denied_topic = admin.create_topics([NewTopic("other", 3, 3)])["other"]
    assert denial(denied_topic) == "authorization"
    settings_without_login: dict[str, Any] = {"bootstrap.servers": client["bootstrap.servers"]}
    assert client_error(settings_without_login) != "authentication"
    assert client_error({**client, "sasl.password": "wrong"}) == "authentication"
    settings_without_user = {**client, "security.protocol": "SSL"}
    for key in ("sasl.username", "sasl.password", "sasl.mechanism", "sasl.mechanisms"):
        settings_without_user.pop(key, None)
    assert client_error(settings_without_user) != "authentication"


@pytest.mark.combination
def test_a_broker_that_has_lost_its_users_gets_them_again(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    """One is deleted by hand, and a broker restarts."""
    deployment, client = stack.deployment, stack.client(listener="HOST")
    delete(stack, "app", ScramMechanism.SCRAM_SHA_512)
    await_refusal(client)
    assert client_error(client) == "authentication"
    deployment.engine.run("kill", deployment.names[2])
    assert f"{deployment.names[2]} has lost its users" in deployment.up()
    assert accepted_by_each(client)
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}


def delete(stack: SecuredClusterStack[DockerStack], user: str, mechanism: ScramMechanism) -> None:
    """Deletes a credential as a node does: AlterUserScramCredentials 0."""
    deployment = stack.deployment
    name = deployment.names[1]
    deletion = bytes([2, len(user) + 1]) + user.encode() + bytes([mechanism.value, 0])
    keys = NodeKeys(str(deployment.root), "node-1", name)
    listener = InnerListener("127.0.0.1", deployment.inside_port, plaintext=False, keys=keys)
    with (
        contextlib.chdir(deployment.folder),  # keys are looked up in the project of this folder
        contextlib.closing(deployment.engine.client()) as client,
        opened(client, name, listener) as exchange,
    ):
        answer = exchange.request(51, 0, b"\0" + deletion + bytes([1, 0])).unread_bytes
    assert answer.endswith(user.encode() + b"\0\0\0\0\0"), answer  # no error, no message


@pytest.mark.combination
def test_a_validation_of_the_stack_needs_no_word_of_credentials(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    file = stack.deployment.folder / "host.json"
    arguments = ("--only", "host", "--records", "0", "--format", "json", "--output", str(file))
    completed = stack.earshot("validate", *arguments)
    assert completed.returncode == 3, completed.stdout  # the other vantages were not asked for
    report = read_report(file.read_bytes(), "host.json")
    host_verdicts = {cell.verdict for cell in report.cells if cell.vantage == "host"}
    assert host_verdicts == {Verdict.PASS} and len(report.cells) == 9


def test_destroy_removes_the_containers_and_keeps_the_data(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    deployment, volumes = stack.deployment, stack.deployment.volumes()
    deployment.destroy()
    assert deployment.containers() == {}
    assert volumes.keys() == {1, 2, 3} and deployment.volumes() == volumes


@pytest.mark.combination
def test_certificates_of_others_serve_as_well_and_wrong_ones_touch_nothing(
    stack: SecuredClusterStack[DockerStack],
) -> None:
    """The test creates the cluster again, and removes it."""
    deployment, (host,) = stack.deployment, stack.deployment.cluster["hosts"]
    hosts = {id: [name, "localhost", host["external"]] for id, name in deployment.names.items()}
    certs = deployment.folder / "certs"
    hand_over(certs, {**hosts, 2: ["elsewhere.example.com"]})
    deployment.cluster["security"]["tls"] = {"from": FILES}
    deployment.cluster["validation"]["records"] = 0
    deployment.destroy()
    output = deployment.refusal()
    assert "KL010" in output and "its certificate is for elsewhere.example.com" in output
    assert deployment.containers() == {}
    hand_over(certs, hosts)
    deployment.up()
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}
    files = deployment.engine.run("exec", deployment.names[1], "ls", FOLDER).split()
    file_names = ("ca.pem", "node-1.pem", "trusted.pem")
    assert files == [file_of(deployment, 1, name) for name in file_names]
    old_containers = deployment.containers()
    hand_over(certs, {2: hosts[2]})
    deployment.up()
    new_containers = deployment.containers()
    assert {id for id in new_containers if new_containers[id] != old_containers[id]} == {2}
    # certificates that no broker takes: node 1 gets its own files back, and any other starts again
    hand_over(certs, hosts, signs=False)
    deployment.cluster["gate"] = "off"
    output = deployment.refusal()
    assert "it was made again with its former settings and serves" in output, output
    del deployment.cluster["gate"]
    deployment.engine.run("restart", "--time", "10", deployment.names[2])
    hand_over(certs, hosts)
    deployment.up()
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}
    public_texts = [
        deployment.pulumi("stack", "export", "--show-secrets").stdout,
        engine_texts(deployment),
    ]
    secrets = [PASSWORD, *stack.secrets.values()]
    assert not [secret for secret in secrets if any(secret in text for text in public_texts)]
    deployment.destroy()
    kept_volumes = deployment.engine.run(
        "volume", "ls", "--quiet", "--filter", f"name=earshot-{deployment.stack}"
    )
    assert sorted(kept_volumes.split()) == sorted(
        f"earshot-{deployment.stack}-{name}" for name in deployment.names.values()
    )
