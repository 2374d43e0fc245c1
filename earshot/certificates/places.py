"""Places of the user's own certificates and keys, as texts.

A place is a path, a name in one of two AWS services, or the ARN of a private CA.
"""

import re
from typing import Final

NODE: Final = "{node}"
"""The placeholder for a node's id in a place."""
SSM: Final = "ssm:"
SECRETS: Final = "secretsmanager:"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_NAMES: Final = {
    SSM: (
        re.compile(r"[A-Za-z0-9_.:/-]{1,2048}", re.ASCII),
        "letters, digits and . - _ / as the name of a parameter, or its ARN",
    ),
    SECRETS: (
        re.compile(r"[A-Za-z0-9_+=.@!:/-]{1,2048}", re.ASCII),
        "letters, digits and / _ + = . @ - as the name of a secret, or its ARN",
    ),
}
"""Names and ARNs that AWS allows: `GetParameters` and `GetSecretValue` in its references."""


_PRIVATE_CA: Final = re.compile(
    r"arn:(aws[a-z-]*):acm-pca:([a-z0-9-]+):\d{12}:certificate-authority/([A-Za-z0-9-]{8,64})",
    re.ASCII,
)


def is_private_ca(arn: str) -> bool:
    return bool(_PRIVATE_CA.fullmatch(arn))


def parts_of_ca(arn: str) -> tuple[str, str, str]:
    """The partition, region and id in a private CA's ARN."""
    match = _PRIVATE_CA.fullmatch(arn)
    assert match is not None  # the stack file allows no other text
    return match[1], match[2], match[3]


def is_in_aws(place: str) -> bool:
    return place.startswith(tuple(_NAMES))


def of_node(place: str, id: int) -> str:
    """The place of the node with this ``id``."""
    return place.replace(NODE, str(id))


def problem(place: str) -> str:
    """Why ``place`` is invalid, without the text after its scheme; empty if it is valid."""
    if "-----BEGIN" in place or "\n" in place:  # may be a key, so no message shows it
        return "found a text; allowed: its place, as a path or a name in AWS"
    scheme = _SCHEME.match(place)
    if scheme is None:
        return ""
    if scheme[0] not in _NAMES:
        return (
            f"found {scheme[0]}…; allowed: a path (with ./ before it where it has a colon), "
            f"{SSM}NAME or {SECRETS}NAME"
        )
    pattern, allowed = _NAMES[scheme[0]]
    if pattern.fullmatch(of_node(place.removeprefix(scheme[0]), 1)):
        return ""
    return f"found {place[:60]!r}; allowed after {scheme[0]} {allowed}"
