"""Which properties would put a secret into a text that is none: a stack file, a state, user data.

Everything that a setting is part of is read by more people than may know a password: the stack
file, Pulumi's state, a container's environment, an instance's user data.
"""

import re
import sys
from collections.abc import Mapping

from earshot.errors import without_users

INSTEAD = (
    "a reference that the broker itself resolves (`${file:/path:key}`, with `config.providers`), "
    "or a file that only the broker reads: a PEM key store needs no password"
)
"""What is allowed there."""

# Keys of secrets, whatever their prefix (`listener.name.x.`, `listener.name.x.plain.`, `ssl.`).
# Source: type PASSWORD in Kafka's ConfigDef of 3.9 and 4.1, certificates left out; and how the
# plugins that share a broker's properties call theirs (tiered storage, schema registry).
_SECRET = re.compile(
    r"(.+\.)?(secret|token|jaas\.config|credentials?(\.json)?|user\.info"
    r"|pas\w*|pwd|creds"  # also misspelt
    r"|(secret|master|keystore|private|access|account|api)\.key)",
    re.IGNORECASE,
)
# A reference that a config provider resolves on the machine itself: ${file:/run/x:key}.
_REFERENCE = re.compile(r"\$\{[A-Za-z0-9_]+:[^{}]*\}")
# Inside a JAAS line; server-side PLAIN keeps a password per user in user_<name>.
_JAAS_SECRET = re.compile(
    r"\b(\w*(password|secret|token)|user_\w+)\s*=\s*\"?[^\s\";]", re.IGNORECASE
)
# In a value of any key: a private key in PEM, a URL with a password, the key in one of Azure's
# connection strings (tiered storage), and another property, if two lines became one.
_IN_ANY_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----|\w://[^\s/:@]*:[^\s/@]+@"
    r"|\b(AccountKey|SharedAccessKey|SharedAccessSignature)=[^\s;]"
    r"|(password|passphrase|secret|token)\s*=\s*\"?[^\s\";]",
    re.IGNORECASE,
)

MASK = "***"
_WORDS = r"(?:PASS|PWD|PW\b|SECRET|TOKEN|JAAS|CRED|AUTH|KEY)"
# `KAFKA_SSL_KEY_PASSWORD: x`, `"sasl.jaas.config"=x`, but no listener's address (TOKEN://host);
# `{name: KAFKA_SSL_KEY_PASSWORD, value: x}`; `${DB_PASSWORD-x}`; `--password x`, `curl -u user:x`
_BEFORE_SECRET = re.compile(
    rf"{_WORDS}[\w.-]{{0,100}}[\"']?\s*(?:,\s*[\"']?value[\"']?\s*)?[:=](?!//)\s*"
    rf"|\$\{{\w{{0,100}}{_WORDS}\w{{0,100}}[-+?]"
    rf"|(?<![\w.-])--?[\w.-]{{0,100}}{_WORDS}[\w.-]{{0,100}}[\"']?[\s,]+[\"']?"
    r"|(?<!\S)(?:-u|--user)[\"']?[\s,=]+[\"']?[^\s:]{1,100}:"
    r"|\bAuthorization:\s*|\bBearer\s+",
    re.IGNORECASE,
)
SECRET_NAME = re.compile(rf"\bname[\"']?\s*:\s*[\"']?[\w.-]*{_WORDS}", re.IGNORECASE)
"""In a manifest, where a variable has the keys `name` and `value`."""


def before_secret(text: str, end: int = sys.maxsize) -> re.Match[str] | None:
    """What leads to a value that may be a secret in ``text``, of which so many characters count."""
    return _BEFORE_SECRET.search(text, 0, end)


def without_secrets(text: str) -> str:
    """One line up to what may be a secret in it, and `MASK` for the rest."""
    match = before_secret(text)
    head = without_users(text[: match.end()] if match else text)
    return head + MASK if match and match.end() < len(text) else head


def revealed(properties: Mapping[str, object]) -> list[str]:
    """The keys of ``properties`` that hold a secret itself, and no reference to one."""
    return [key for key, value in properties.items() if reveals(key, str(value))]


def reveals(key: str, value: str) -> bool:
    """Whether the property ``key`` shows a secret to all who can read its ``value``."""
    rest = _REFERENCE.sub("", value)
    if _IN_ANY_VALUE.search(rest):
        return True
    if not _SECRET.fullmatch(key.strip()):
        return False
    if key.strip().lower().endswith("jaas.config"):
        return _JAAS_SECRET.search(rest) is not None
    return bool(rest.strip())
