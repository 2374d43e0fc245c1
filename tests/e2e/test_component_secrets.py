"""Secrets in inputs of components: ciphertext in the state, as are outputs that contain them."""

import json
from pathlib import Path

import pytest

from tests.e2e import project
from tests.rest import with_combinations

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
PLANTED = {"extra": "8765432187", "internal": "pl4nted-name", "declared": "pl4nted declaration"}
INPUTS = """
inputs = {
    "listeners": [
        {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
        {"name": "HOST", "port": 9092, "scopes": ["host"]},
    ],
    "nodes": {"1": {"internal": secret("internal"), "host": "localhost"}},
    "declared": {"internal": secret("declared"), "controller": "alias"},
    "extra": {"log.retention.ms": secret("extra")},
}
"""
PROGRAMS = {
    "imported": """
from earshot_pulumi import Listeners

kafka = Listeners("kafka", inputs)
""",
    "by schema": """
class Listeners(pulumi.ComponentResource):
    # as an SDK that is generated from the schema has it
    def __init__(self, name, inputs):
        outputs = dict.fromkeys(["properties", "environment", "envs", "bootstrap", "contract"])
        super().__init__("earshot:index:Listeners", name, inputs | outputs, remote=True)


kafka = Listeners("kafka", inputs)
""",
}
HEADER = f"""import pulumi

def secret(name):
    return pulumi.Output.secret({PLANTED!r}[name])

{INPUTS}
"""
EXPORTS = """
for name in ("properties", "environment", "envs", "bootstrap", "contract"):
    pulumi.export(name, getattr(kafka, name))
"""


@pytest.mark.parametrize("way", with_combinations("by schema", PROGRAMS))
def test_secret_inputs_of_listeners_are_nowhere_in_clear(way: str, tmp_path: Path) -> None:
    new_project = project.Project(tmp_path / "p", HEADER, project.prepare_home(tmp_path / "p", {}))
    new_project.run("stack", "init", project.STACK)
    new_project.write(PROGRAMS[way] + EXPORTS)
    output = new_project.up()
    state = new_project.run("stack", "export")
    files = [path for path in (new_project.folder / "state").rglob("*") if path.is_file()]
    state_texts = [path.read_text(errors="replace") for path in files]
    for input_name, secret in PLANTED.items():
        assert secret not in state, input_name
        assert not any(secret in text for text in state_texts), input_name
    assert PLANTED["extra"] not in output
    # they have arrived all the same
    outputs = json.loads(new_project.run("stack", "output", "--json", "--show-secrets"))
    settings = outputs["properties"]["1"]
    assert f"log.retention.ms={PLANTED['extra']}" in settings
    assert f"INTERNAL://{PLANTED['internal']}:19092" in settings
    new_project.destroy()
