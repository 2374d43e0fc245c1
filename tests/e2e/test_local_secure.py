"""A secured local stack on the real engine: TLS everywhere, users, permissions, and no secret out.

What the stack is asked for is what `stacks/Pulumi.local-secure.yaml` says.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramMechanism,
    UserScramCredentialDeletion,
)

from earshot.certificates.authority import read_certificate
from earshot.config.passwords import KEY as PASSWORDS
from earshot.listeners.properties import read_properties
from earshot.listeners.security import own_access
from earshot.report.json import read_report
from earshot.validation.client import translate
from earshot.validation.result import Report
from earshot.validation.terms import Stage, Verdict
from tests.certificates.handed_over import FILES, PASSWORD, hand_over
from tests.certificates.private_root import new_private_ca
from tests.e2e.attack import attack_within
from tests.e2e.certificates_in_aws import aws_of, hand_over_there
from tests.e2e.engine import Deployment, deployment, local_cluster
from tests.e2e.open_sockets import documented_addresses
from tests.e2e.ports import consecutive_ports
from tests.e2e.secured import (
    SecuredClusterStack,
    accepted_by_each,
    client_error,
    denial,
    holders,
    watched_processes,
)
from tests.e2e.spark_history import plant_secret, web_pages
from tests.e2e.steady_producer import PER_SECOND
from tests.e2e.stranger import Stranger
from tests.e2e.tls_offer import accepted_ciphers
from tests.rest import with_combinations
from toolchain.paths import ROOT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TEMPLATE = ROOT / "stacks" / "Pulumi.local-secure.yaml"
PARTITIONS = 6
TOKENS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="broker";'
)


def secure_cluster() -> dict[str, Any]:
    """The template's cluster, on free ports."""
    cluster_settings = yaml.safe_load(TEMPLATE.read_text())["config"]["earshot:cluster"]
    free_cluster = local_cluster()
    for listener, free_listener in zip(
        cluster_settings["listeners"], free_cluster["listeners"], strict=True
    ):
        listener["port"] = free_listener["port"]
    cluster_settings["controllers"]["port"] = free_cluster["controllers"]["port"]
    extra = {
        **free_cluster["extra"],
        # Kafka's own module accepts unsigned tokens: it is for tests
        "listener.name.external.oauthbearer.sasl.jaas.config": TOKENS,
    }
    return {**cluster_settings, "extra": extra, "validation": free_cluster["validation"]}


@dataclass
class LocalSecured(SecuredClusterStack[Deployment]):
    """Like `SecuredClusterStack`, for brokers whose files are on this machine."""

    def settings(self, node: int) -> Mapping[str, str]:
        text = (self.deployment.root / f"node-{node}" / "server.properties").read_text()
        return read_properties(text).values

    def examine(self, contract: str, client: str) -> Report:
        """The doctor's report on ``contract`` with the properties in ``client``."""
        command = [sys.executable, "-m", "earshot", "doctor", "--contract", contract]
        process = subprocess.run(
            [*command, "--client-config", client, "--format", "json"],
            cwd=self.deployment.folder,
            stdout=subprocess.PIPE,
            timeout=120,
        )
        return read_report(process.stdout, "stdout")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSecured]:
    """Three brokers, up and proved by Spark once; each test leaves them up."""
    with deployment(tmp_path_factory.mktemp("secure") / "p", secure_cluster()) as new_stack:
        secured = LocalSecured(new_stack)
        event_logs = new_stack.folder / "spark" / "events"
        event_logs.mkdir(parents=True)
        (event_logs.parent / "spark-defaults.conf").write_text(
            f"spark.eventLog.enabled true\nspark.eventLog.dir {event_logs.as_uri()}\n"
            "spark.eventLog.compress false\nspark.eventLog.rolling.enabled false\n"
        )
        new_stack.environment["SPARK_CONF_DIR"] = str(event_logs.parent)
        with (
            watched_processes(secured.process_texts),
            attack_within(
                new_stack.folder, secured.current_secrets, lambda: new_stack.pids().values()
            ) as secured.attack,
        ):
            new_stack.up()
        new_stack.cluster["validation"]["records"] = 0  # the next update has the doctor alone
        yield secured


def test_every_listener_is_proved_and_secured(stack: LocalSecured) -> None:
    report = stack.report()
    assert len(report.cells) == 6 and {cell.verdict for cell in report.cells} == {Verdict.PASS}
    assert {replication.verdict for replication in report.replication} == {Verdict.PASS}
    assert {delivery.verdict for delivery in report.delivery} == {Verdict.PASS}
    output = {
        stage.detail
        for cell in report.cells
        for stage in cell.stages
        if stage.stage is Stage.SECURITY
    }
    assert {text.partition(";")[0] for text in output} == {
        "SSL, TLSv1.3, TLS_CHACHA20_POLY1305_SHA256",
        "SASL_SSL, TLSv1.3, TLS_CHACHA20_POLY1305_SHA256",
    }
    assert str(stack.deployment.outputs()["certificates_expire"]).startswith("20")


def test_the_outputs_say_how_a_user_comes_in_by_each_listener(stack: LocalSecured) -> None:
    folder, output = stack.deployment.folder, stack.deployment.outputs()["client_properties"]
    assert output.keys() == {"validator", "app"}
    for listener in ("INTERNAL", "EXTERNAL"):
        way = output["app"][listener]
        values = {
            key: str(folder / value) if key.endswith(".location") else value
            for key, value in way["properties"].items()
        }
        if "password_file" in way:
            password = (folder / way["password_file"]).read_text().strip()
            login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
            values["sasl.jaas.config"] = f'{login} username="app" password="{password}";'
        admin = AdminClient({**translate(values), "bootstrap.servers": values["bootstrap.servers"]})
        assert len(admin.list_topics(timeout=10).brokers) == 3


def test_listeners_offer_sound_versions_and_ciphers_alone(stack: LocalSecured) -> None:
    places = {}
    for node in stack.deployment.pids():
        for advertised_listener in stack.settings(node)["advertised.listeners"].split(","):
            name, _, address = advertised_listener.partition("://")
            host, _, port = address.rpartition(":")
            places[host, int(port)] = f"node {node} {name}"
    assert len(places) == 9  # three nodes, the quorum's listener too
    for (host, port_number), listener_name in places.items():
        ciphers = accepted_ciphers(host, port_number, stack.store.key_store("validator"))
        print(f"{listener_name} at {host}:{port_number}: {ciphers}")
        assert ciphers == {
            "TLSv1.2": [
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
            ],
            "TLSv1.3": ["TLS_CHACHA20_POLY1305_SHA256"],
        }


@pytest.mark.combination
def test_a_second_update_changes_nothing(stack: LocalSecured) -> None:
    old_pids = stack.deployment.pids()
    stack.deployment.up()
    output = stack.deployment.up("--refresh")
    assert "created" not in output and "updated" not in output
    assert stack.deployment.pids() == old_pids


def test_no_secret_is_anywhere_but_in_its_own_file(stack: LocalSecured) -> None:
    folder, secrets = stack.deployment.folder, stack.secrets
    assert len(secrets) == 8  # the authority's, three nodes', two users' with their passwords
    state = stack.deployment.pulumi("stack", "export", "--show-secrets").stdout
    preview = stack.deployment.pulumi("preview", "--diff", "--show-secrets").stdout
    public_texts = [state, preview, *stack.process_texts]
    assert not [
        name for name, secret in secrets.items() if any(secret in text for text in public_texts)
    ]
    events = "".join(path.read_text() for path in (folder / "spark" / "events").iterdir())
    assert "KafkaRelation" in events and "SaveIntoDataSourceCommand" in events
    secret_files = {f".earshot/stacks/test/kafka/security/{name}" for name in secrets}
    secret_files.add(".earshot/stacks/test/kafka/security/validator.properties")
    for id in (1, 2, 3):  # the copy that the node uses
        copy = Path(stack.settings(id)["ssl.keystore.location"])
        secret_files.add(str(copy.relative_to(folder)))
    assert holders(folder, secrets) == secret_files and len(secret_files) == len(secrets) + 4
    for name in secret_files:
        assert (folder / name).stat().st_mode & 0o777 == 0o600, name
    planted_file = folder / ".earshot" / "planted.log"
    planted_file.write_text(f"password={stack.store.password('app')}")
    try:
        assert holders(folder, secrets) == {*secret_files, ".earshot/planted.log"}
    finally:
        planted_file.unlink()


def test_another_user_gets_no_secret_from_any_port_or_file(stack: LocalSecured) -> None:
    """The attack runs during the update that creates the cluster, and Spark's job."""
    attack = stack.attack
    processes = {socket.process for socket in attack.sockets.values()}
    assert processes >= {"Kafka node", "Spark driver", "Pulumi engine", "earshot's plugin, gate"}
    assert attack.answers and attack.exposed(stack.secrets) == []
    documented_processes = documented_addresses()
    assert [
        socket for socket in attack.sockets.values() if socket.process not in documented_processes
    ] == []
    if os.geteuid() == 0:
        assert attack.readable and attack.holders == set()
        planted_file = stack.deployment.folder / "planted.txt"
        planted_file.write_text(stack.store.password("app"))
        with Stranger() as stranger:
            _, holders = stranger.readable(stack.deployment.folder, stack.secrets.values())
        planted_file.unlink()
        assert holders == ["planted.txt"]


@pytest.mark.combination
def test_no_secret_is_on_a_page_of_sparks(stack: LocalSecured, tmp_path: Path) -> None:
    """The pages are those of the history server for the job that proved the stack."""
    events = tmp_path / "events"
    shutil.copytree(stack.deployment.folder / "spark" / "events", events)
    copy = plant_secret(events, stack.store.password("app"))
    pages = web_pages(events, tmp_path)
    assert any("kafka" in text and "SQL/execution" in path for path, text in pages.items())
    pages_with_secrets = {
        path
        for path, text in pages.items()
        if any(secret in text for secret in stack.secrets.values())
    }
    assert any("/environment" in path for path in pages_with_secrets), "what was planted is found"
    assert all(copy.name in path for path in pages_with_secrets)


def test_the_doctor_of_the_stack_needs_no_word_of_credentials(stack: LocalSecured) -> None:
    output = stack.earshot("doctor")
    assert output.returncode == 0, output.stdout


def test_a_user_may_do_what_its_prefixes_say_and_nothing_else(stack: LocalSecured) -> None:
    client = stack.client()
    admin = AdminClient(client)
    admin.create_topics([NewTopic("app-orders", 3, 3)])["app-orders"].result(20)
    denied_topic = admin.create_topics([NewTopic("other", 3, 3)])["other"]
    assert denial(denied_topic) == "authorization"
    errors: list[object] = []
    producer = Producer({**client, "acks": "all"})
    producer.produce("app-orders", b"one", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0 and errors == [None]
    settings = {"group.id": "app-readers", "auto.offset.reset": "earliest"}
    consumer = Consumer({**client, **settings})
    try:
        consumer.subscribe(["app-orders"])
        message = consumer.poll(30)
        assert message is not None and message.value() == b"one"
    finally:
        consumer.close()
    by_certificate = AdminClient(stack.client(listener="INTERNAL")).list_topics(timeout=10)
    assert set(by_certificate.topics) == {"app-orders"}
    as_validator = AdminClient(stack.client("validator")).list_topics(timeout=10)
    assert "app-orders" not in as_validator.topics


@pytest.mark.combination
def test_tokens_are_taken_beside_passwords(stack: LocalSecured) -> None:
    settings_without_login = {
        key: value
        for key, value in stack.client(listener="EXTERNAL").items()
        if not key.startswith("sasl.")
    }
    token = {"sasl.mechanism": "OAUTHBEARER", "enable.sasl.oauthbearer.unsecure.jwt": True}

    def outcome(name: str) -> str:
        delivery_errors: list[Any] = []
        token_settings = {
            "sasl.oauthbearer.config": f"principal={name}",
            "message.timeout.ms": 20_000,
        }
        producer = Producer(settings_without_login | token | token_settings)
        producer.produce(
            "app-tokens", b"1", on_delivery=lambda error, _: delivery_errors.append(error)
        )
        producer.flush(25)
        (error,) = delivery_errors
        return "" if error is None else str(error.name())

    assert outcome("app") == ""
    assert outcome("other") == "TOPIC_AUTHORIZATION_FAILED"


def without_lines(settings: str, word: str) -> str:
    return "".join(line for line in settings.splitlines(True) if word not in line)


LOGINS = "SASL_SSL (SCRAM-SHA-512, OAUTHBEARER)"
DIAGNOSES: dict[str, dict[str, tuple[str, str]]] = {
    "wrong password, no certificate": {"EXTERNAL": ("authentication", "invalid credentials"),
                                       "INTERNAL": ("client-certificate", "bad certificate")},
    "another mechanism, a login for a certificate":
    {"EXTERNAL": ("mechanism", "supported mechanisms: SCRAM-SHA-512"),
     "INTERNAL": ("client-certificate", "bad certificate")},
    "another authority": {"EXTERNAL": ("certificate-untrusted", "local issuer")},
    "no TLS": {"EXTERNAL": ("protocol", f"it speaks {LOGINS}, and this client SASL_P")},
    "no login": {"EXTERNAL": ("protocol", f"it speaks {LOGINS}, and this client SSL")},
    "another name": {"EXTERNAL": ("certificate-name", "the certificate is for localhost, ")},
}  # fmt: skip
"""The cause and words of each listener, by mistake."""


@pytest.mark.parametrize("mistake", with_combinations("wrong password, no certificate", DIAGNOSES))
def test_the_doctor_names_what_is_wrong(stack: LocalSecured, mistake: str) -> None:
    """A client or a contract with mistakes, against the real brokers."""
    folder = stack.deployment.folder
    client = (stack.store.folder / "validator.properties").read_text()
    contract = json.loads((stack.deployment.root.parent / "contract.json").read_text())
    listener_by_name = {listener["name"]: listener for listener in contract["listeners"]}
    if mistake == "wrong password, no certificate":
        client = client.replace(stack.store.password("validator"), "wrong")
        client = without_lines(client, "keystore")
    elif mistake == "another mechanism, a login for a certificate":
        client = client.replace("SCRAM-SHA-512", "SCRAM-SHA-256")
        client = without_lines(client, "keystore")
        listener_by_name["INTERNAL"]["protocol"] = "SASL_SSL"
    elif mistake == "another authority":
        client = without_lines(client, "truststore")
    elif mistake == "no TLS":
        listener_by_name["EXTERNAL"]["protocol"] = "SASL_PLAINTEXT"
    elif mistake == "no login":
        listener_by_name["EXTERNAL"]["protocol"] = "SSL"
    else:
        advertised = [broker["advertised"]["EXTERNAL"] for broker in contract["brokers"]]
        for address in advertised:
            address["host"] = "127.0.0.1"
        addresses = [f"127.0.0.1:{address['port']}" for address in advertised]
        listener_by_name["EXTERNAL"]["bootstrap"] = ",".join(addresses)
    files = {"c.properties": client, "c.json": json.dumps(contract)}
    for name, text in files.items():
        (folder / name).write_text(text)
    try:
        report = stack.examine("c.json", "c.properties")
    finally:
        for name in files:
            (folder / name).unlink()
    for listener, (kind, observed_text) in DIAGNOSES[mistake].items():
        cells = [cell for cell in report.cells if cell.listener == listener]
        assert len(cells) == 3
        for cell in cells:
            assert cell.cause is not None and cell.failed_stage is Stage.SECURITY
            assert (cell.cause.kind, observed_text in cell.cause.observed) == (kind, True), (
                cell.cause
            )


def test_a_user_without_permission_is_told_what_it_lacks(stack: LocalSecured) -> None:
    folder = stack.deployment.folder
    stack.earshot("client", "--user", "app", "--listener", "EXTERNAL", "-o", "c.properties")
    contract = stack.deployment.root.parent / "contract.json"
    report = stack.examine(str(contract), "c.properties")
    (folder / "c.properties").unlink()
    kinds = {cell.cause.kind for cell in report.cells if cell.cause and cell.listener == "EXTERNAL"}
    assert kinds == {"topic-authorization"}


def test_who_says_nothing_of_itself_gets_not_even_names(stack: LocalSecured) -> None:
    client = stack.client()
    settings_without_login = {"bootstrap.servers": client["bootstrap.servers"]}
    assert client_error(settings_without_login) in (
        "protocol",
        "disconnected",
        "timeout",
        "unreachable",
    )
    assert client_error({**client, "sasl.password": "wrong"}) == "authentication"


@pytest.mark.combination
def test_a_password_from_configuration_logs_in_and_is_nowhere_to_be_seen(
    stack: LocalSecured,
) -> None:
    deployment, old_client, pids = stack.deployment, stack.client(), stack.deployment.pids()
    passwords = {"app": "Given,by=app's-hand", "validator": "Given-to:validator!"}
    set_by = ["pulumi", "config", "set", "--secret", "--path", "--stack", deployment.stack]
    for user, password in passwords.items():
        subprocess.run(
            [*set_by, f"{PASSWORDS}.{user}"],
            input=password,
            text=True,
            cwd=deployment.folder,
            env=deployment.environment,
            check=True,
        )
    output = deployment.pulumi("preview", "--diff").stdout
    process_texts: set[str] = set()
    with watched_processes(process_texts):
        output += deployment.up("--diff")
    assert deployment.pids() == pids
    new_client = stack.client()
    assert new_client["sasl.password"] == passwords["app"]
    assert len(AdminClient(new_client).list_topics(timeout=10).brokers) == 3
    assert client_error(old_client) == "authentication"
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}
    output += deployment.pulumi("stack", "export").stdout + stack.earshot("plan").stdout
    assert not [password for password in passwords.values() if password in output]
    state = json.loads(deployment.pulumi("stack", "export", "--show-secrets").stdout)
    resources = state["deployment"]["resources"]
    types_with_passwords = {
        resource["type"] for resource in resources if passwords["app"] in json.dumps(resource)
    }
    assert types_with_passwords == {"pulumi:providers:earshot"}  # as its configuration, encrypted
    texts_with_passwords = [
        text for text in process_texts if any(password in text for password in passwords.values())
    ]
    # Pulumi's own way to the program, the pack and the plugin, whose environments no other user can
    # read; a plugin is given its settings without their namespace
    key = PASSWORDS.partition(":")[2] + '"'
    assert {
        text for text in texts_with_passwords if not text.startswith("{") or key not in text
    } == set()
    secret_files = {f".earshot/stacks/test/kafka/security/{user}.password" for user in passwords}
    secret_files.add(".earshot/stacks/test/kafka/security/validator.properties")
    assert holders(deployment.folder, passwords) == secret_files
    subprocess.run(
        ["pulumi", "config", "rm", "--stack", deployment.stack, PASSWORDS],
        cwd=deployment.folder,
        env=deployment.environment,
        check=True,
    )
    deployment.up()
    assert stack.client() == new_client  # it stays until there is another one


def test_users_outlast_restarts(stack: LocalSecured) -> None:
    """A user is renamed, a broker ends, and the user gets its former name."""
    deployment, former_client = stack.deployment, stack.client()
    (user,) = users = deployment.cluster["security"]["users"]
    deployment.cluster["security"]["users"] = [{**user, "name": "app3"}]
    assert "no broker was restarted since" in deployment.up()
    assert client_error(former_client) == "authentication"
    client = stack.client("app3")
    psutil.Process(deployment.pids()[1]).kill()
    deployment.cluster["security"]["users"] = users
    assert LOST not in deployment.up()
    assert client_error(client) == "authentication"
    assert accepted_by_each(stack.client())
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}


@pytest.mark.combination
def test_users_outlast_restarts_where_one_was_deleted_by_hand(stack: LocalSecured) -> None:
    """A user is renamed and a broker ends; then the former one is deleted, and another ends."""
    deployment = stack.deployment
    (user,) = users = deployment.cluster["security"]["users"]
    deployment.cluster["security"]["users"] = [{**user, "name": "app3"}]
    deployment.up()
    psutil.Process(deployment.pids()[1]).kill()
    assert LOST not in deployment.up()
    assert accepted_by_each(stack.client("app3"))
    admin = AdminClient(
        {
            **own_access(stack.settings(1)),
            "bootstrap.servers": f"localhost:{deployment.cluster['listeners'][0]['port']}",
        }
    )
    deletion = UserScramCredentialDeletion("app", ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([deletion])["app"].result(20)
    psutil.Process(deployment.pids()[2]).kill()
    deployment.cluster["security"]["users"] = users
    assert f"node 2 {LOST}" in deployment.up()
    assert accepted_by_each(stack.client())
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}


LOST = "has lost its users"


@pytest.mark.combination
def test_a_name_changes_and_a_user_goes_and_both_come_back_with_another_mechanism(
    stack: LocalSecured,
) -> None:
    """A changed name is a changed certificate of that broker alone."""
    old_certificates, pids, client = certificates(stack), stack.deployment.pids(), stack.client()
    stack.deployment.cluster["listeners"][1]["advertised"] = {2: "127.0.0.1"}
    users = stack.deployment.cluster["security"].pop("users")
    try:
        stack.deployment.up()
        new_certificates = certificates(stack)
        assert {
            name for name in new_certificates if new_certificates[name] != old_certificates[name]
        } == {"node-2"}
        new_pids = stack.deployment.pids()
        assert {id for id in new_pids if new_pids[id] != pids[id]} == {2}
        pem = (stack.store.folder / "node-2.pem").read_text()
        assert read_certificate(pem).names.addresses == ("127.0.0.1",)
        one_broker_client = {
            **client,
            "bootstrap.servers": client["bootstrap.servers"].split(",")[0],
        }
        assert client_error(one_broker_client) == "authentication"
        assert not (stack.store.folder / "app.password").exists()
    finally:
        del stack.deployment.cluster["listeners"][1]["advertised"]
        stack.deployment.cluster["security"]["users"] = users
        stack.deployment.cluster["security"]["mechanism"] = "SCRAM-SHA-256"
        stack.deployment.up()
    new_client = stack.client()
    assert new_client["sasl.mechanism"] == "SCRAM-SHA-256"
    AdminClient(new_client).list_topics(timeout=10)
    assert client_error(client) == "mechanism"
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}


def certificates(stack: LocalSecured) -> dict[str, str]:
    """Fingerprints by the name of a node's key store."""
    return {
        path.stem: read_certificate(path.read_text()).fingerprint
        for path in stack.store.folder.glob("node-*.pem")
    }


@dataclass
class Traffic:
    """One producer and one consumer with the same settings, until ``has_ended`` is set."""

    settings: Mapping[str, Any]
    topic: str
    acknowledged: set[bytes] = field(default_factory=set)
    read_numbers: set[bytes] = field(default_factory=set)
    failed: list[str] = field(default_factory=list)
    has_ended: threading.Event = field(default_factory=threading.Event)
    login: tuple[str, str] | None = None
    """A user and a password that the clients are to take while they run."""

    def __post_init__(self) -> None:
        self.producer = Producer({**self.settings, "acks": "all"})
        consumer_settings = {"group.id": "app-traffic", "auto.offset.reset": "earliest"}
        self.consumer = Consumer({**self.settings, **consumer_settings})

    def produce(self) -> None:
        number, login, next_turn = 0, None, time.monotonic()
        while not self.has_ended.is_set():
            login = self._logged_in(self.producer, login)
            value, partition = b"%d" % number, number % PARTITIONS
            self.producer.produce(
                self.topic, value, partition=partition, on_delivery=self._delivered
            )
            number += 1
            next_turn = max(next_turn + 1 / PER_SECOND, time.monotonic())
            while (remaining_seconds := next_turn - time.monotonic()) > 0:
                self.producer.poll(remaining_seconds)
        assert self.producer.flush(60) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.add(message.value())
        else:
            self.failed.append(str(error))

    def consume(self) -> None:
        self.consumer.subscribe([self.topic])
        patience, login = 60, None
        while patience:
            login = self._logged_in(self.consumer, login)
            message = self.consumer.poll(1)
            if message is not None and not message.error():
                self.read_numbers.add(message.value() or b"")
            elif self.has_ended.is_set() and message is None:
                patience = 0 if self.acknowledged <= self.read_numbers else patience - 1
        self.consumer.close()

    def await_more(self) -> None:
        """Returns once records have gone both ways through every partition, and so broker."""
        for records in (self.acknowledged, self.read_numbers):
            old_count = len(records)
            while len(records) < old_count + 5 * PARTITIONS:
                assert not self.failed
                time.sleep(0.05)

    def _logged_in(self, client: Any, login: tuple[str, str] | None) -> tuple[str, str] | None:
        """By its own thread: another one that asks a client for something waits behind `poll`."""
        if self.login is not None and self.login != login:
            client.set_sasl_credentials(*self.login)
        return self.login


@contextlib.contextmanager
def traffic(settings: Mapping[str, Any], topic: str) -> Iterator[Traffic]:
    """Within, records are written and read; in the end, none that was acknowledged is lost."""
    admin = AdminClient(dict(settings))
    admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(20)
    new_traffic = Traffic(settings, topic)
    threads = [
        threading.Thread(target=target) for target in (new_traffic.produce, new_traffic.consume)
    ]
    for thread in threads:
        thread.start()
    try:
        yield new_traffic
    finally:
        new_traffic.has_ended.set()
        for thread in threads:
            thread.join()
        del new_traffic.producer, new_traffic.consumer  # their connections end with them
    assert new_traffic.failed == [] and len(new_traffic.acknowledged) > 100
    assert new_traffic.acknowledged - new_traffic.read_numbers == set()
    print(f"{topic}: {len(new_traffic.acknowledged)} records, none lost")


@pytest.mark.combination
def test_a_new_authority_new_passwords_and_renewal_under_traffic_lose_no_record(
    stack: LocalSecured,
) -> None:
    security, first_client = stack.deployment.cluster["security"], stack.client()
    old_certificates = certificates(stack)
    with traffic(first_client, "app-first"):
        security["tls"] = {"authorities": [1, 2]}
        restart_all(stack)
    assert certificates(stack) == old_certificates
    old_client = stack.client()
    with traffic(old_client, "app-second") as running_traffic:
        security["tls"] = {"authorities": [2, 1]}
        restart_all(stack)
        security["password_numbers"] = {"app": 2, "validator": 2}
        pids = stack.deployment.pids()
        stack.deployment.up()
        assert stack.deployment.pids() == pids
        assert client_error(old_client) == "authentication"
        running_traffic.await_more()  # connections that are open outlive the password
        running_traffic.login = ("app", stack.store.password("app"))
        running_traffic.await_more()
        second_certificates = certificates(stack)
        security["tls"] = {"authorities": [2], "days": 399, "renew_days": 398}
        restart_all(stack)
    new_certificates = certificates(stack)
    security["tls"] = {"authorities": [2]}
    assert (
        not old_certificates.items() & second_certificates.items()
        and not second_certificates.items() & new_certificates.items()
    )
    password = {"sasl.password": stack.store.password("app")}
    assert client_error({**first_client, **password}) == "tls"
    assert "app-second" in AdminClient({**old_client, **password}).list_topics(timeout=10).topics
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}
    assert not (stack.store.folder / "ca.key").exists()


def restart_all(stack: LocalSecured) -> None:
    """An update that restarts every node."""
    pids = stack.deployment.pids()
    stack.deployment.up()
    assert {id for id, pid in stack.deployment.pids().items() if pids[id] != pid} == {1, 2, 3}


def check_refused_certificates(stack: LocalSecured, hand: Callable[[bool], None]) -> None:
    """Certificates that no broker takes reach node 1; every node can still start as it was."""
    deployment = stack.deployment
    old_pids, hosts = deployment.pids(), {id: stack.settings(id) for id in (1, 2)}
    hand(False)
    output = deployment.refusal()
    assert "KL010" in output and "key usage of its certificate lacks digitalSig" in output
    assert deployment.pids() == old_pids
    deployment.cluster["gate"] = "off"
    output = deployment.refusal()
    del deployment.cluster["gate"]
    assert "it was started again with its former settings and serves" in output, output
    assert {id for id, pid in deployment.pids().items() if old_pids[id] != pid} == {1}
    assert {id: stack.settings(id) for id in (1, 2)} == hosts, "each by the names of its own files"
    second_process = psutil.Process(old_pids[2])
    command, folder = second_process.cmdline(), second_process.cwd()
    second_process.kill()
    psutil.wait_procs([second_process], 10)
    subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode = 0  # it outlives this handle
    end = time.monotonic() + 90
    while (examination := stack.earshot("doctor")).returncode:
        assert time.monotonic() < end, examination.stdout
    hand(True)
    deployment.up()
    assert {path.name for path in deployment.root.glob("node-*/files/*")} == {
        Path(value).name for id in old_pids for value in file_locations(stack.settings(id))
    }, "nothing is kept that no node runs with"


def file_locations(settings: Mapping[str, str]) -> list[str]:
    return [value for key, value in settings.items() if key.endswith(".location")]


SUBJECT = "CN=b{node},O=Example\\, Inc."


@pytest.mark.combination
def test_certificates_of_others_serve_as_well_and_wrong_ones_touch_nothing(
    stack: LocalSecured, tmp_path: Path
) -> None:
    """The test creates the cluster again. A listener requires certificates and passwords."""
    hosts: dict[int, list[str]] = {}
    for node in stack.deployment.pids():
        advertised_listeners = stack.settings(node)["advertised.listeners"].split(",")
        hosts[node] = sorted(
            {
                advertised_listener.partition("://")[2].rpartition(":")[0]
                for advertised_listener in advertised_listeners
            }
        )
    files, certs = dict(FILES), stack.deployment.folder / "certs"
    stack.deployment.cluster["security"]["tls"] = {"from": files}
    assert "certs/ca.pem: cannot be read (No such file or directory)" in stack.deployment.refusal()
    hand_over(certs, {**hosts, 2: ["elsewhere.example.com"]}, SUBJECT)
    pids = stack.deployment.pids()
    assert "certificates from another source while brokers run" in stack.deployment.refusal()
    assert stack.deployment.pids() == pids
    stack.deployment.destroy()
    output = stack.deployment.refusal()
    assert "KL010" in output and "its certificate is for elsewhere.example.com" in output
    assert stack.deployment.pids() == {}
    hand_over(certs, hosts, SUBJECT)
    external = stack.deployment.cluster["listeners"][1]
    external["client_auth"] = "required"
    common = stack.deployment.cluster["security"]["mechanism"]
    external["mechanism"] = ({"SCRAM-SHA-256", "SCRAM-SHA-512"} - {common}).pop()
    with aws_of(stack.deployment, tmp_path) as aws:
        files |= hand_over_there(certs, aws)
        stack.deployment.up()
        check_refused_certificates(
            stack, lambda signs: hand_over(certs, hosts, SUBJECT, signs=signs)
        )
    assert {cell.verdict for cell in stack.report().cells} == {Verdict.PASS}
    assert {replication.verdict for replication in stack.report().replication} == {Verdict.PASS}
    certificate = read_certificate((stack.store.folder / "node-2.pem").read_text())
    assert certificate.names.dns + certificate.names.addresses == tuple(hosts[2])
    state = stack.deployment.pulumi("stack", "export", "--show-secrets").stdout
    assert not [secret for name, secret in stack.secrets.items() if secret in state]
    assert PASSWORD not in state
    client = stack.client()
    assert client["sasl.mechanism"] == external["mechanism"]
    AdminClient(client).list_topics(timeout=10)
    client_without_certificate = {
        key: value for key, value in client.items() if not key.startswith(("ssl.key", "ssl.cert"))
    }
    assert client_error(client_without_certificate) == "client-certificate"
    del external["client_auth"], external["mechanism"]


@pytest.mark.combination
def test_tls_comes_to_brokers_in_plain_text_by_steps_and_no_record_is_lost(
    stack: LocalSecured, tmp_path: Path
) -> None:
    """Last, for it stops the other cluster. The quorum's listener stays as it is until the cluster
    is stopped; then certificates come from a private CA, too."""
    stack.deployment.stop_all()
    ports = consecutive_ports(3, 5)
    plain_listeners = [
        {"name": "BETWEEN", "port": ports[3], "scopes": ["internal"]},
        {"name": "PUBLIC", "port": ports[4], "scopes": ["host"]},
    ]
    cluster = secure_cluster()
    cluster["controllers"]["protocol"] = "PLAINTEXT"
    for endpoint, port in zip((*cluster["listeners"], cluster["controllers"]), ports, strict=False):
        endpoint["port"] = port
    plain_cluster = {key: setting for key, setting in cluster.items() if key != "security"} | {
        "listeners": plain_listeners
    }
    with deployment(tmp_path / "p", plain_cluster) as new_stack:
        new_stack.cluster["validation"]["records"] = 0
        new_stack.up()
        secured = LocalSecured(new_stack)
        clients = {"bootstrap.servers": str(new_stack.outputs()["bootstrap_PUBLIC"])}
        with traffic(clients, "app-plain"):
            new_stack.cluster = cluster
            assert TO_TLS[0] in new_stack.up()
            login = secured.client()
            with traffic(login, "app-secured"):
                assert TO_TLS[1] in new_stack.up()
        with traffic(login, "app-after"):
            assert TO_TLS[2] in new_stack.up()
        report = secured.report()
        assert {cell.listener for cell in report.cells} == {"INTERNAL", "EXTERNAL"}
        assert {cell.verdict for cell in report.cells} == {Verdict.PASS}
        assert "unchanged" in new_stack.up()
        assert client_error({**login, "sasl.password": "wrong"}) == "authentication"
        admin = AdminClient(login)
        visible_topics = admin.list_topics(timeout=10).topics
        assert {"app-plain", "app-secured", "app-after"} <= set(visible_topics)
        denied_topic = admin.create_topics([NewTopic("other", 3, 3)])["other"]
        assert denial(denied_topic) == "authorization"
        assert "User:ANONYMOUS" in secured.settings(1)["super.users"].split(";")
        new_stack.stop_all()
        output = new_stack.refusal()
        assert "found PLAINTEXT with `security` and no running node" in " ".join(output.split())
        assert new_stack.pids() == {}
        del cluster["controllers"]["protocol"]
        with aws_of(new_stack, tmp_path) as aws:
            arn = new_private_ca(aws("acm-pca"))
            cluster["security"]["tls"] = {"from": {"private_ca": arn}}
            new_stack.up()
        assert {cell.verdict for cell in secured.report().cells} == {Verdict.PASS}
        unit = f"nodes by {arn.rpartition('/')[2][:8]} of {new_stack.stack}"
        assert secured.settings(1)["super.users"] == f"User:CN=node,OU={unit}"
        assert "app-plain" in AdminClient(secured.client()).list_topics(timeout=10).topics
        assert "PRIVATE KEY" not in new_stack.pulumi("stack", "export", "--show-secrets").stdout


TO_TLS = (
    ("step 1 of 3: INTERNAL and EXTERNAL added next to BETWEEN and PUBLIC; nodes get "
     "certificates, and clients users; run again"),
    "step 2 of 3: brokers reach each other through INTERNAL; run again",
    "step 3 of 3: BETWEEN and PUBLIC removed",
)  # fmt: skip
