"""Passwords that the stack's configuration gives users, for the program and the plugin."""

from collections.abc import Mapping
from typing import Any

from pulumi.runtime.config import get_config, is_config_secret

from earshot.config.cluster import ClusterSpec
from earshot.config.passwords import KEY, check_passwords, read_passwords
from earshot.project import Project


def check_given(spec: ClusterSpec, project: Project, stack: str) -> None:
    """Raises SpecError where the program's stack gives passwords that cannot be users' own."""
    if (value := get_config(KEY)) is None:
        return
    file = project.stack_file(stack)
    if file.exists():
        project.read_cluster(stack)  # it alone shows which ones are in plain text beside secrets
    source = f"{file.relative_to(project.root)}, {KEY}"
    check_passwords(value, spec, source, secret=is_config_secret(KEY))


def given_to(config: Mapping[str, Any] | None = None) -> dict[str, str]:
    """By user; of an operation's ``config``, or the program's own."""
    value = get_config(KEY) if config is None else config.get(KEY)
    return {user: str(it) for user, it in read_passwords(value).items()}
