"""Lines by which an instance makes users and permissions with Kafka's own tools."""

import base64

from hypothesis import given
from hypothesis import strategies as st

from earshot.listeners.properties import read_properties
from earshot.listeners.terms import Mechanism
from earshot.users.access import ITERATIONS, grants
from earshot.users.lines import lines

MECHANISM = Mechanism.SCRAM_SHA_512


def test_permissions_are_arguments_of_kafkas_tool() -> None:
    def line(user: str, action: str, *words: str) -> str:
        principals = f"--allow-principal User:{user} --allow-principal User:CN={user},OU=clients"
        start = f"permissions {user} --{action} --force --resource-pattern-type prefixed"
        return " ".join((start, principals, *words))

    def of_prefix(prefix: str) -> str:
        return f"--topic {prefix} --group {prefix} --transactional-id {prefix}"

    text = lines(grants({"old": ["o-"]})[1:], grants({"app": ["a-", "b."]}), {}, [MECHANISM], [])
    operations = ("Create", "Delete", "Describe", "Alter", "Read", "Write")
    assert text.splitlines() == [
        line("old", "remove", "--operation All", of_prefix("o-")),
        line(
            *("validator", "add"),
            *(f"--operation {operation}" for operation in operations),
            "--topic __earshot-",
        ),
        line("app", "add", "--operation All", of_prefix("a-"), of_prefix("b.")),
    ]


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1))
def test_any_password_reaches_kafka_as_it_is(password: str) -> None:
    (line,) = lines([], [], {"app": password}, [MECHANISM], []).splitlines()
    kind, user, text = line.split(" ")
    assert (kind, user) == ("password", "app")
    values = read_properties(base64.b64decode(text).decode()).values
    assert values == {"SCRAM-SHA-512": f"iterations={ITERATIONS},password={password}"}


def test_a_password_is_given_for_each_mechanism_at_once() -> None:
    (line,) = lines([], [], {"app": "secret"}, list(Mechanism), []).splitlines()
    values = read_properties(base64.b64decode(line.split(" ")[2]).decode()).values
    assert values == dict.fromkeys(Mechanism, f"iterations={ITERATIONS},password=secret")


def test_who_is_gone_gets_a_password_that_is_kept_nowhere_and_is_never_deleted() -> None:
    """A deletion would cost brokers that restart all users: KAFKA-20774."""
    removed_users = [("old", Mechanism.SCRAM_SHA_256)]
    first_lines, second_lines = (
        lines([], [], {}, [MECHANISM], removed_users).splitlines() for _ in range(2)
    )
    assert [line.split()[:2] for line in first_lines] == [["password", "old"]]
    assert first_lines[0] != second_lines[0]
    values = read_properties(base64.b64decode(first_lines[0].split()[2]).decode()).values
    assert list(values) == ["SCRAM-SHA-256"]
