"""Where certificates and keys of others lie or come from, as texts.

A path, a name in one of two services of AWS, or the ARN of a private CA.
"""

import re
from typing import Final

NODE: Final = "{node}"
"""In a place, what a node's id takes the place of."""
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
"""What AWS allows in a name or ARN: `GetParameters` and `GetSecretValue` in its references."""


_PRIVATE_CA: Final = re.compile(
    r"arn:(aws[a-z-]*):acm-pca:([a-z0-9-]+):\d{12}:certificate-authority/([A-Za-z0-9-]{8,64})",
    re.ASCII,
)


def is_private_ca(arn: str) -> bool:
    return bool(_PRIVATE_CA.fullmatch(arn))


def parts_of_ca(arn: str) -> tuple[str, str, str]:
    """The partition, region and id in a private CA's ARN."""
    match = _PRIVATE_CA.fullmatch(arn)
    assert match is not None  # as the stack file allows no other
    return match[1], match[2], match[3]


def is_in_aws(place: str) -> bool:
    return place.startswith(tuple(_NAMES))


def of_node(place: str, id: int) -> str:
    """The place of the node with this ``id``."""
    return place.replace(NODE, str(id))


def problem(place: str) -> str:
    """Why ``place`` is none, without what follows its scheme; an empty text where it is one."""
    if "-----BEGIN" in place or "\n" in place:  # a key, perhaps, which no message shows
        return "found a text of its own; allowed: where it lies, as a path or a name in AWS"
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
