"""Kafka's client properties for a user of a secured stack."""

from pathlib import Path

from earshot.certificates.store import Store
from earshot.listeners.properties import NodeSettings, write_properties
from earshot.listeners.terms import Mechanism, Protocol

_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"


def client_properties(
    store: Store,
    user: str,
    mechanism: Mechanism,
    protocol: Protocol | None = None,
    bootstrap: str = "",
    *,
    certified: bool = False,
    whole: bool = False,
) -> str:
    """The text of a client properties file with the credentials of ``user``; a secret.

    It is for listeners of ``protocol``; if that is None, for all of the stack's listeners and
    without `security.protocol`. ``bootstrap`` is `host:port,…`. With ``certified`` it has a
    certificate in addition to a password. With ``whole`` it contains PEM texts rather than paths.
    Raises EarshotError if the user has no credentials.
    """
    values = {"bootstrap.servers": bootstrap} if bootstrap else {}
    if protocol is not None:
        values["security.protocol"] = str(protocol)
    values |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": store.authority()}
    if protocol is None or not protocol.sasl or certified:
        values["ssl.keystore.type"] = "PEM"
        file = store.key_store(user)
        if whole:
            key, begin, certificate_text = file.read_text().partition("-----BEGIN CERTIFICATE")
            values["ssl.keystore.key"] = key
            values["ssl.keystore.certificate.chain"] = begin + certificate_text
        else:
            values["ssl.keystore.location"] = str(file)
    if protocol is None or protocol.sasl:
        # in quotes, Java's JAAS reads \\ and \" as the character itself
        password = store.password(user).replace("\\", "\\\\").replace('"', '\\"')
        login = f'{_LOGIN} required username="{user}" password="{password}";'
        values |= {"sasl.mechanism": str(mechanism), "sasl.jaas.config": login}
    return write_properties(NodeSettings(values))


def public_properties(
    folder: Path,
    trusted: str,
    user: str,
    mechanism: Mechanism,
    protocol: Protocol,
    bootstrap: str,
    *,
    certified: bool = False,
) -> dict[str, str]:
    """Like `client_properties` for one listener, without secrets and with paths in ``folder``.

    `sasl.jaas.config` is left out. ``trusted`` is the name of the file with the authorities.
    """
    values = {
        "bootstrap.servers": bootstrap,
        "security.protocol": str(protocol),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / trusted),
    }
    if certified or not protocol.sasl:
        file = str(folder / f"{user}.pem")
        values |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": file}
    return values | ({"sasl.mechanism": str(mechanism)} if protocol.sasl else {})
