"""Passwords of users in the stack's configuration, read by the program and the plugin."""

from collections.abc import Mapping

from pulumi.runtime.config import CONFIG, get_config, is_config_secret

from earshot.config.cluster import ClusterSpec
from earshot.config.passwords import KEY, check_names, check_passwords, read_passwords
from earshot.project import Project


def check_given(spec: ClusterSpec, project: Project, stack: str) -> None:
    """Raises SpecError if the stack's configuration has passwords that users cannot have."""
    file = project.stack_file(stack)
    check_names(CONFIG.get(), project.shown_file(stack))
    if (value := get_config(KEY)) is None:
        return
    if file.exists():
        project.read_cluster(stack)  # finds passwords in plain text next to secret ones
    source = f"{file.relative_to(project.root)}, {KEY}"
    check_passwords(value, spec, source, secret=is_config_secret(KEY))


def given_to(config: Mapping[str, object] | None = None) -> dict[str, str]:
    """Passwords by user, from an operation's ``config`` or the program's configuration."""
    value = get_config(KEY) if config is None else config.get(KEY)
    return {user: str(password) for user, password in read_passwords(value).items()}
