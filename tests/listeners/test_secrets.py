import pytest

from earshot.listeners.secrets import revealed, without_secrets

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


OF_TYPE_PASSWORD = (
    "delegation.token.master.key",  # until 3.9
    "delegation.token.secret.key",
    "password.encoder.old.secret",  # until 3.9
    "password.encoder.secret",  # until 3.9
    "sasl.jaas.config",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.client.credentials.client.secret",
    "ssl.key.password",
    "ssl.keystore.key",
    "ssl.keystore.password",
    "ssl.truststore.password",
)
"""Of Kafka's ConfigDef, but for the certificates, which are public."""


@pytest.mark.parametrize("key", OF_TYPE_PASSWORD)
@pytest.mark.parametrize(
    "prefix", ["", "listener.name.external.", "listener.name.x.plain.", "a.b."]
)
def test_what_kafka_holds_for_a_password_is_a_secret(prefix: str, key: str) -> None:
    value = f'{PLAIN} username="b" password="x";' if key.endswith("jaas.config") else "x"
    assert revealed({prefix + key: value}) == [prefix + key]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.keystore.certificate.chain", "-----BEGIN CERTIFICATE----- MII"),
        ("ssl.truststore.certificates", "-----BEGIN CERTIFICATE----- MII"),
        ("listener.name.x.ssl.truststore.certificates", "-----BEGIN CERTIFICATE----- MII"),
        ("ssl.keystore.password", "${file:/run/kafka/secrets/tls:password}"),
        ("ssl.keystore.password", ""),
        ("ssl.keystore.location", "/run/kafka/secrets/broker.pem"),
        ("sasl.oauthbearer.token.endpoint.url", "https://login.example.com/token"),
        ("sasl.jaas.config", f'{SCRAM} username="b" password="${{file:/run/x:scram}}";'),
        ("sasl.jaas.config", f'{SCRAM} tokenauth="true";'),
        ("sasl.jaas.config", f"{SCRAM};"),
        ("metrics.url", "https://alice:${env:PASSWORD}@metrics.example.com/"),
        ("rsm.config.storage.aws.access.key.id", "AKIA"),
        ("sasl.oauthbearer.assertion.private.key.file", "/run/x"),
        ("delegation.token.expiry.time.ms", "1"),
    ],
)
def test_a_certificate_a_reference_and_a_place_are_no_secrets(key: str, value: str) -> None:
    assert revealed({key: value}) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ssl.key.password", "${file:/run/x:key}tail"),
        ("ssl.keystore.key", "-----BEGIN PRIVATE KEY----- MII"),
        ("listener.name.external.scram-sha-512.sasl.jaas.config", f'{SCRAM} password="x";'),
        ("sasl.jaas.config", f'{PLAIN} user_alice="x";'),
        ("SSL.Keystore.Password", "x"),
        ("rsm.config.storage.aws.secret.access.key", "x"),
        ("gcs.credentials.json", "{}"),
        ("basic.auth.user.info", "alice:x"),
        ("ssl.something", "-----BEGIN ENCRYPTED PRIVATE KEY----- MII"),
        ("metrics.url", "https://alice:x@metrics.example.com/"),
        ("rsm.config.storage.azure.connection.string", "AccountName=a;AccountKey=eA==;Suffix=b"),
        ("ssl.keystore.pasword", "x"),
        ("node.id", "1 ssl.key.password=x"),
        ("bridge.to", "Endpoint=sb://x/;SharedAccessKeyName=n;SharedAccessKey=eA=="),
    ],
)
def test_a_secret_is_told(key: str, value: str) -> None:
    assert revealed({key: value}) == [key]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("$(hostname -f)", "$(hostname -f)"),
        ("curl --token abc http://h", "curl --token ***"),
        ("curl -u me:abc http://h", "curl -u me:***"),
        ("curl -H 'Authorization: abc'", "curl -H 'Authorization: ***"),
        ("a --my-api-key=abc", "a --my-api-key=***"),
        ("['--password', 'abc']", "['--password', '***"),
        ("http://me:abc@h/x and redis://:abc@h", "http://***@h/x and redis://***@h"),
        ("${DB_PASSWORD-abc} ${HOST-h}", "${DB_PASSWORD-***"),
        ("{'a': {'password': 'abc'}}", "{'a': {'password': ***"),
        ("TOKEN://kafka:9092", "TOKEN://kafka:9092"),
        ("1@kafka1:9093,2@kafka2:9093", "1@kafka1:9093,2@kafka2:9093"),
        ("password=", "password="),
    ],
)
def test_a_line_up_to_what_may_be_a_secret(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
