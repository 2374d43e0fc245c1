"""KL021: TLS listeners offer no broken versions or ciphers.

Sources: RFC 8996 (TLS 1.0 and 1.1 must not be used), RFC 7568 (SSL 3.0), RFC 9325, section 4.1 (no
NULL, no export, no RC4, less than 112 bits).
"""

import re
from collections.abc import Iterator

from earshot.facts.settings import KafkaSettings
from earshot.rules.objections import Objection, with_prefixes
from earshot.rules.rule import AppliedAt, Rule, Severity

_VERSIONS = re.compile(r"SSLv[23](?:Hello)?|TLSv1(?:\.1)?", re.ASCII), "TLSv1.2 and TLSv1.3"
_CIPHERS = (
    re.compile(r".*_(?:NULL|EXPORT|EXPORT40|RC4|RC4_40|DES|DES40|3DES|MD5|anon)(?:_.*)?", re.ASCII),
    "ciphers of TLS 1.3, or ECDHE with AES GCM",
)
_OLD = {
    "ssl.enabled.protocols": _VERSIONS,
    "ssl.protocol": _VERSIONS,
    "ssl.cipher.suites": _CIPHERS,
}
"""The broken values of each setting, and the sound ones as text."""


def objections(view: KafkaSettings) -> Iterator[Objection]:
    """Objections to settings of TLS listeners that name such a version or cipher."""
    protocols = view.protocols
    tls = [name for name in view.listeners if name in protocols and protocols[name].tls]
    for key, (outdated, sound) in _OLD.items():
        for full_key, listener in with_prefixes(view, key):
            versions = [value.strip() for value in view.text(full_key).split(",")]
            old_versions = [version for version in versions if outdated.fullmatch(version)]
            if old_versions and tls and listener in (None, *tls):
                observed = f"{full_key} names {', '.join(old_versions)}"
                yield Objection("old", full_key, observed, sound, listener=listener)


RULE = Rule(
    id="KL021",
    title="TLS listeners offer only sound versions and ciphers",
    reason="TLS before 1.2 and ciphers such as RC4 protect nothing any more, and current clients "
    "refuse them.",
    remedy="take them out of the list, or leave the setting at Kafka's default",
    source="https://www.rfc-editor.org/rfc/rfc9325",
    inputs=tuple(_OLD),
    severity=Severity.WARNING,
    needs="settings",
    applied_at=(AppliedAt.PLAN, AppliedAt.FILE, AppliedAt.PODS),
    objections=objections,
    weight=1,
)
