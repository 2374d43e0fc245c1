"""Orders to change a cluster's users and ACLs, and the function that carries them out.

An order contains passwords, so its file must be readable only by its reader.
"""

from pydantic import ConfigDict, Field

from earshot.listeners.model import Frozen
from earshot.listeners.terms import Mechanism
from earshot.users.access import Grant, Login, UserAccess, await_logins
from earshot.validation.client import ClientSettings


class UsersOrder(Frozen):
    """ACLs to add and remove, and passwords to set and disable."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    bootstrap: str
    """`host:port,…` of the listener between brokers."""
    access: dict[str, str] = Field(repr=False)
    """librdkafka's settings for a connection as a node."""
    forbidden: tuple[Grant, ...] = ()
    allowed: tuple[Grant, ...] = ()
    mechanisms: tuple[Mechanism, ...]
    passwords: dict[str, str] = Field(default_factory=dict, repr=False)
    """The passwords of all users, by name, for each mechanism."""
    gone: tuple[tuple[str, Mechanism], ...] = ()
    """Former users, who must no longer log in by a password of that mechanism."""
    logins: tuple[Login, ...] = ()
    """All logins by password; empty if no listener uses SASL."""
    client: ClientSettings = Field(default_factory=dict, repr=False)
    """librdkafka's settings for a test login, without the mechanism of `Login`."""


def carry_out(order: UsersOrder) -> None:
    """Creates the users and ACLs of ``order``, and returns once every broker has them. Raises
    EarshotError."""
    access = UserAccess(order.bootstrap, order.access)
    access.forbid(order.forbidden)
    access.allow(order.allowed)
    if not order.logins:
        return
    for mechanism in order.mechanisms:
        access.set_passwords(order.passwords, mechanism)
    for mechanism in dict.fromkeys(kind for _, kind in order.gone):
        access.disable_logins([user for user, kind in order.gone if kind is mechanism], mechanism)
    await_logins(order.logins, order.client)
