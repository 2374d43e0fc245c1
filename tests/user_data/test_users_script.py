"""The script by which an instance creates users and ACLs, with doubles of Kafka's tools."""

import subprocess
from pathlib import Path

import pytest

from earshot.listeners.model import SecurityPlan
from earshot.listeners.terms import Mechanism, Protocol
from earshot.user_data.render import user_data
from earshot.users.access import grants
from earshot.users.lines import lines
from tests.user_data.nodes import boot, cluster, node
from tests.user_data.properties import files_in

MECHANISM = Mechanism.SCRAM_SHA_512
PASSWORD = 'it\'s $HOME, \\ "quoted" ü='
TOOL = """#!/bin/bash
echo "$(basename "$0") $*" >>"$TOLD"
while (($#)); do
    [[ $1 != --add-config-file ]] || cat "$2" >>"$TOLD"
    shift
done
[[ $(basename "$0") != "$FAILS" ]]
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script, with its tools and its file in a folder of the test's own."""
    secured_node = node(protocol=Protocol.SSL)
    security = SecurityPlan(folder="/run/kafka/secrets", mechanism=MECHANISM)
    plan = cluster(secured_node).model_copy(update={"security": security})
    text = files_in(user_data(plan, secured_node, boot(makes_users=True)))[
        "/usr/local/sbin/kafka-users"
    ]
    for name in ("kafka-acls.sh", "kafka-configs.sh"):
        (tmp_path / name).write_text(TOOL)
        (tmp_path / name).chmod(0o755)
    text = text.replace("/opt/kafka/bin", str(tmp_path))
    script = tmp_path / "script"
    script.write_text(text.replace("/run/kafka/secrets", str(tmp_path)))
    return script


def run(script: Path, reported: str, fails: str = "") -> subprocess.CompletedProcess[str]:
    folder = script.parent
    (folder / "users").write_text(f"{reported}\n")
    environment = {"PATH": "/usr/bin:/bin", "TOLD": str(folder / "reported"), "FAILS": fails}
    return subprocess.run(["bash", script], env=environment, capture_output=True, text=True)


def test_tools_are_asked_for_each_line_and_no_argument_is_a_password(script: Path) -> None:
    text = lines(
        [], grants({"app": ["a-"]})[1:], {"app": PASSWORD}, [MECHANISM], [("old", MECHANISM)]
    )
    completed = run(script, text)
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.splitlines() == [
        "earshot: permissions app",
        "earshot: password app",
        "earshot: password old",
    ]
    acls, *configs = (script.parent / "reported").read_text().splitlines()
    connection_options = "--bootstrap-server broker-1.kafka.example.com:19092"
    connection_options += " --command-config /etc/kafka/client.properties"
    assert acls == (
        f"kafka-acls.sh {connection_options} --add --force --resource-pattern-type prefixed "
        "--allow-principal User:app --allow-principal User:CN=app,OU=clients --operation All "
        "--topic a- --group a- --transactional-id a-"
    )
    user = f"kafka-configs.sh {connection_options} --alter --entity-type users --entity-name"
    assert configs[0].startswith(f"{user} app --add-config-file /dev/fd/")
    assert configs[1].startswith("SCRAM-SHA-512=iterations") and "quoted" in configs[1]
    assert configs[2].startswith(f"{user} old --add-config-file /dev/fd/")
    assert "--delete-config" not in "".join(configs), "it can cost brokers that restart all users"


@pytest.mark.parametrize("tool", ["kafka-acls.sh", "kafka-configs.sh"])
def test_what_fails_is_tried_again_later(script: Path, tool: str) -> None:
    text = lines([], grants({}), {"app": PASSWORD}, [MECHANISM], [])
    assert run(script, text, fails=tool).returncode != 0


def test_an_empty_file_asks_for_nothing(script: Path) -> None:
    assert run(script, "").returncode == 0
    assert not (script.parent / "reported").exists()
