"""No password of any input is shown: in no format, in no message, and not in a baseline."""

import base64
from pathlib import Path

import pytest

from earshot.cli import lint, run
from earshot.cli.lint import Choice
from earshot.lint.formats import LintFormat

PLANTED = "Pl4ntedS3cret"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required password="{PLANTED}";'
MISTAKEN = """
services:
  kafka:
    image: apache/kafka:3.9.0
    ports: ["9092:9092"]
    environment:
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_LISTENERS: SASL_SSL://localhost:9092,CONTROLLER://:9093
      KAFKA_ADVERTISED_LISTENERS: SASL_SSL://localhost:9092
      KAFKA_CONTROLLER_LISTENER_NAMES: CONTROLLER
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@localhost:9093
"""
SHORT = """
services:
  kafka:
    image: apache/kafka:3.9.0
    environment: """
POD = """
apiVersion: v1
kind: Pod
metadata: {name: kafka}
spec:
  containers:
    - name: kafka
      image: apache/kafka:3.9.0
      env:
"""
STRIMZI = """
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: k}
spec:
  kafka:
    listeners:
      - {name: plain, port: 9092, type: nodeport, tls: false, configuration: {advertisedHost: x}, \
authentication: {type: custom, listenerConfig: {password: """
CLIENT = """
  ui:
    image: ui
    environment:
"""
USER_DATA = f"""#!/bin/bash
curl -u admin:{PLANTED} http://u:{PLANTED}@h/x
cat > /etc/kafka/server.properties <<EOF
process.roles=broker,controller
node.id=x
ssl.keystore.password={PLANTED}
sasl.jaas.config=x required password="{PLANTED}$(date)";
listeners=PLAINTEXT://u:{PLANTED}@:9092,PLAINTEXT://:9093
advertised.listeners=PLAINTEXT://$(curl -H 'Authorization: {PLANTED}' http://h):9092
EOF
"""
ENCODED = base64.b64encode(PLANTED.encode()).decode()
SECRET = f"""
apiVersion: v1
kind: Secret
metadata: {{name: kafka}}
data: {{KAFKA_SSL_KEY_PASSWORD: {ENCODED}}}
stringData:
  KAFKA_SASL_JAAS_CONFIG: {JAAS}
"""

INPUTS = {
    "jaas.yml": f"{MISTAKEN}      KAFKA_LISTENER_NAME_SASL_SSL_PLAIN_SASL_JAAS_CONFIG: {JAAS}\n",
    "above.yml": MISTAKEN.replace("NODE_ID: 1", f"NODE_ID: 1 # password {PLANTED}"),
    "one-line.yml": f"{SHORT}{{KAFKA_SSL_KEYSTORE_PASSWORD: {PLANTED}, KAFKA_NODE_ID: x}}\n",
    "user.yml": f"{SHORT}[KAFKA_LISTENERS=PLAINTEXT://u:{PLANTED}@kafka:9092]\n",
    "voter.yml": f"{SHORT}[KAFKA_NODE_ID=1, KAFKA_PROCESS_ROLES=broker,\n"
    f"      KAFKA_CONTROLLER_QUORUM_VOTERS=1@u:{PLANTED}@kafka:9093]\n",
    "client.yml": f"{MISTAKEN}{CLIENT}      BOOTSTRAP_SERVERS: u:{PLANTED}@kafka:9092\n"
    f"      KAFKA_URL: kafka://u:{PLANTED}@kafka:9092\n"
    f"      A_BOOTSTRAP_SERVERS: nobody:9092 # {PLANTED}\n".replace(f" # {PLANTED}", ""),
    "command.yml": f"{MISTAKEN}{CLIENT.replace('environment:', 'command:')}"
    f"      run --password {PLANTED} --bootstrap-server localhost:9092\n",
    "json.yml": f"{MISTAKEN}{CLIENT}      CONFIG: |\n"
    f'        {{bootstrap.servers: "localhost:9092", password: {PLANTED}}}\n',
    "dotenv.yml": MISTAKEN + "      KAFKA_SSL_KEYSTORE_PASSWORD: ${PASSWORD}\n",
    "env-file.yml": f"{SHORT}{{KAFKA_NODE_ID: x}}\n    env_file: [given.env]\n",
    "item.yml": f"{SHORT}[{{KAFKA_SSL_KEY_PASSWORD: {PLANTED}}}]\n",
    "list.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: [{PLANTED}]}}\n",
    "text.yml": f"{SHORT}{PLANTED}: 1\n",
    "alias.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: *{PLANTED}}}\n",
    "anchor.yml": f"{SHORT}{{A: &{PLANTED} x, B: &{PLANTED} y, C: [*{PLANTED}x]}}\n",
    "tag.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: !{PLANTED}}}\n",
    "quote.yml": f'{SHORT}{{KAFKA_SSL_KEY_PASSWORD: "{PLANTED}}}\n',
    "variable.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: '${{X:?{PLANTED}}}'}}\n",
    "template.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: {{{{ {PLANTED} }}}}}}\n",
    "server.properties": "process.roles=broker\nnode.id=x\nlisteners=SASL_SSL://u:"
    f"{PLANTED}@:9092\nadvertised.listeners=SASL_SSL://0.0.0.0:9092\n"
    f"ssl.key.password={PLANTED}\nsasl.jaas.config={JAAS}\n",
    "pod.yaml": f"{POD}        - {{name: KAFKA_SSL_KEY_PASSWORD, value: {PLANTED}}}\n"
    f'        - {{name: KAFKA_LISTENERS, value: "PLAINTEXT://u:{PLANTED}@:9092"}}\n',
    "strimzi.yaml": f"{STRIMZI}{PLANTED}}}}}}}\n",
    **{
        f"{number}-beside.yml": f"{MISTAKEN}      {line}\n{CLIENT}"
        f"      {line}\n      BOOTSTRAP_SERVERS: kafka:9092\n"
        for number, line in enumerate(
            [
                f"SASL_PASSWORD: {PLANTED}",
                f"DATABASE_URL: http://u:{PLANTED}@db/x",
                f"REDIS: redis://:{PLANTED}@db/x",
                f"X: 'a ${{PW:-{PLANTED}}}'",
                f"DB_PASS: {PLANTED}",
                f"CREDS: {PLANTED}",
                f"ANYTHING: {PLANTED}",
            ]
        )
    },
    **{
        f"{number}-command.yml": f"{MISTAKEN}  ui:\n    image: ui\n    command: {command}\n"
        for number, command in enumerate(
            [
                f"run --bootstrap-server localhost:9092 --password {PLANTED}",
                f"run --password {PLANTED} --bootstrap-server nobody:9092",
                f"run --bootstrap-server nobody:9092 --ssl.key.pass={PLANTED}",
                f"[run, --bootstrap-server, 'nobody:9092', --api-key, {PLANTED}]",
                f"sh -c 'curl -u admin:{PLANTED} http://x && run --bootstrap-server nobody:9092'",
            ]
        )
    },
    "override.yml": f"{SHORT}{{A: b}}\n    command: kafka-server-start x --override node.id=x "
    f"--override ssl.keystore.password={PLANTED} --override listeners=A://u:{PLANTED}@:9092\n",
    "port.yml": MISTAKEN.replace('["9092:9092"]', f'["9092:9092", "u:{PLANTED}@1:1"]'),
    "number.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: !!int {PLANTED}}}\n",
    "needed.yml": f"{SHORT}{{KAFKA_SSL_KEY_PASSWORD: '${{NO_PASSWORD?{PLANTED}}}'}}\n",
    "given.env": f"KAFKA_NODE_ID=x\nSASL_PASSWORD={PLANTED}\nKAFKA_LISTENERS=A://u:{PLANTED}@:1,\n",
    "user-data.sh": USER_DATA,
    "secret.yaml": f"{SECRET}---{POD}        - {{name: KAFKA_SSL_KEY_PASSWORD, value: {PLANTED}}}\n"
    '        - {name: KAFKA_NODE_ID, value: "x"}\n      envFrom: [{secretRef: {name: kafka}}]\n',
    "broken-secret.yaml": f"{SECRET}  kafka: [{ENCODED}\n",
}
ENDS = {"override.yml": 1, "user-data.sh": 1, "given.env": 1, "0-command.yml": 1}
"""Exit codes of some: their mistakes are found."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "500")
    Path(".env").write_text(f"PASSWORD={PLANTED}\n")
    Path("given.env").write_text(f"KAFKA_SSL_KEY_PASSWORD={PLANTED}\nKAFKA_LISTENERS=x\n")


@pytest.mark.parametrize("name", INPUTS)
def test_in_no_format(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(name)
    file.write_text(INPUTS[name])
    baseline = Path("baseline.json")
    for format in LintFormat:
        code = lint.run([file], Choice(write_baseline=baseline), format, ())
        output = "".join(capsys.readouterr()) + baseline.read_text()
        assert file.name in output or code == 0
        assert PLANTED not in output and ENCODED not in output
    code = lint.run([file], Choice(), LintFormat.TEXT, ())
    assert code == ENDS.get(name, code)
    for arguments in (["lint", name, "--diff"], ["--debug", "lint", name], ["adopt", name]):
        run(arguments)
        output += "".join(capsys.readouterr())
    assert PLANTED not in output and ENCODED not in output


@pytest.mark.parametrize("name", [".env", "given.env"])
def test_in_no_message_about_a_file_of_variables(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).write_text(f"no assignment {PLANTED}\nKAFKA_SSL_KEY_PASSWORD='{PLANTED}\n")
    Path("env-file.yml").write_text(INPUTS["env-file.yml"])
    for format in LintFormat:
        assert lint.run([Path("env-file.yml")], Choice(), format, ()) == 2
        assert PLANTED not in "".join(capsys.readouterr())
