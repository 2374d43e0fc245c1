"""Recognizes files of kinds that earshot does not read, for the reason in a report."""

import re

from earshot.listeners.images import is_broker

_KINDS = (
    ("is a CloudFormation template, which is not read", r"^[\"']?AWSTemplateFormatVersion\b"),
    (
        "has tasks of Ansible, which are not read: check the files that they write",
        r"^(?:-|[ \t])[ \t]+(?:hosts|tasks)[ \t]*:|\b(?:ansible\.builtin|community\.docker)\.",
    ),
    ("is a job of Nomad, which is not read", r"^[ \t]*job[ \t]+[\"\w-]+[ \t]*\{"),
)
"""A reason for each kind, and the pattern of its signs."""
_IMAGE = re.compile(
    r"(?:^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*"
    r"|(?:^[ \t{-]*|[,{][ \t]*)[\"']?image[\"']?[ \t]*[:=][ \t]*)[\"']?([^\s\"',}]+)",
    re.MULTILINE,
)
"""An image in YAML, JSON, HCL or a Dockerfile."""


def why_unread(text: str, otherwise: str) -> str:
    """The reason why a file with ``text`` is not judged, if it is of one of these kinds or has the
    image of a broker; else ``otherwise``."""
    for reason, sign in _KINDS:
        if re.search(sign, text, re.MULTILINE):
            return reason
    if names_broker(text):
        return "has the image of a broker, but files of its kind are not read"
    return otherwise


def names_broker(text: str) -> bool:
    """Whether ``text``, of any kind, has the image of a broker."""
    return any(is_broker(image, {}) for image in _IMAGE.findall(text))
