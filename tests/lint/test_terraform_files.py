"""Containers and user data of Terraform files are checked, with the module around them."""

import json
from pathlib import Path

import pytest

from earshot.lint.check import check
from earshot.lint.files import choose
from tests.lint.test_ci_files import KRAFT, write

NETWORK = 'resource "docker_network" "net" {\n  name = "net"\n}\n'
PORTS = "  ports {\n    internal = 9092\n    external = 9092\n  }\n"
HIDDEN = PORTS.replace("external = 9092", "external = var.port")
JOINED = "  networks_advanced {\n    name = docker_network.net.name\n  }\n"
ELSEWHERE = JOINED + "  provider = docker.b\n"


def broker(advertised: str, rest: str = PORTS, name: str = "kafka") -> str:
    env = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    entries = "".join(f'    "{key}={value}",\n' for key, value in env.items())
    return (
        f'resource "docker_container" "kafka" {{\n  name  = "{name}"\n'
        f'  image = "apache/kafka:4.1.1"\n  env = [\n{entries}  ]\n{rest}}}\n'
    )


def ui(bootstrap: str, rest: str = JOINED) -> str:
    return (
        'resource "docker_container" "ui" {\n  name = "ui"\n  image = "kafbat/kafka-ui:v1.3.0"\n'
        f'  env = ["KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS={bootstrap}"]\n{rest}}}\n'
    )


TOPICS = (
    'resource "docker_container" "topics" {\n  image = "apache/kafka:4.1.1"\n'
    f'  command = ["kafka-topics.sh", "--list", "--bootstrap-server", "gone:9092"]\n{JOINED}}}\n'
)


IN_DEV = broker("localhost:9092", PORTS + "count = var.dev ? 1 : 0\n")
IN_PROD = IN_DEV.replace('"docker_container" "kafka"', '"docker_container" "other"').replace(
    "? 1 : 0", "? 0 : 1"
)


def instance(advertised: str, port: str = "9092") -> str:
    """An instance whose user data start a broker."""
    variables = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    words = "".join(f"      -e {key}={value} \\\n" for key, value in variables.items())
    return (
        'resource "aws_instance" "kafka" {\n  user_data = <<-EOT\n    #!/bin/bash\n'
        f"    docker run -p {port}:9092 \\\n{words}      apache/kafka:4.1.1\n  EOT\n}}\n"
    )


def task(
    advertised: str, definitions: str = "jsonencode({})", image: str = "apache/kafka:4.1.1"
) -> str:
    """A task of ECS; its ``definitions`` are an expression around JSON."""
    env = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    entries = [{"name": name, "value": value} for name, value in env.items()]
    container = {"name": "kafka", "image": image, "cpu": 256, "environment": entries}
    expression = definitions.format(json.dumps([container], indent=2))
    return (
        'resource "aws_ecs_task_definition" "kafka" {\n  family = "kafka"\n'
        f"  container_definitions = {expression}\n}}\n"
    )


DOCUMENT = "<<-EOT\n{}\nEOT"


def properties(advertised: str) -> str:
    return (
        'resource "aws_instance" "kafka" {\n  user_data = <<-EOT\n    #!/bin/bash\n'
        "    cat > /opt/kafka/server.properties <<KAFKA\n    node.id=1\n"
        f"    advertised.listeners=PLAINTEXT://{advertised}\n    KAFKA\n    EOT\n}}\n"
    )


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (broker("localhost:9092"), []),
        (broker("kafka:9092"), ["KL017"]),
        ("\ufeff" + broker("kafka:9092"), ["KL017"]),  # Terraform skips the mark
        (broker("localhost:9093"), ["KL017"]),
        (broker("kafka:9092", HIDDEN), ["KL017"]),
        (broker("localhost:${var.port}", HIDDEN), []),
        (broker("localhost:9092", HIDDEN) + 'variable "port" {\n  default = 9093\n}\n', ["KL017"]),
        (broker("kafka:9092", 'dynamic "ports" {\n  for_each = var.ports\n}\n'), []),
        (NETWORK + broker("kafka:9092", JOINED) + ui("kafka:9092"), []),
        (NETWORK + broker("localhost:9092", JOINED + PORTS) + ui("kafka:9092"), ["KL015"]),
        (NETWORK + broker("missing:9092", JOINED) + ui("kafka:9092"), ["KL015"]),
        (NETWORK + broker("localhost:9092", JOINED) + ui("${docker_container.kafka.name}:9092"),
         ["KL015"]),
        (NETWORK + broker("kafka:9092", JOINED) + TOPICS, ["KL015"]),
        ("locals {\n  at = { kafka = \"localhost\" }\n}\n" + broker("${local.at.kafka}:9093"),
         ["KL017"]),
        (IN_DEV + IN_PROD, []),
        (IN_DEV.replace("localhost:9092", "localhost:9093") + IN_PROD, ["KL017"]),
        (IN_DEV + IN_PROD.replace("? 0 : 1", "? 1 : 0"), ["KL017"]),
        (broker("localhost:9092").replace("env = [", "env = [1, [2], "), []),
        (broker("localhost:9092").replace("env = [", "env = { KAFKA_NODE_ID = [1] }\nlist = ["),
         ["KL002"]),
        # a network of elsewhere, and other modules, may have more names
        (broker("missing:9092", JOINED) + ui("kafka:9092"), []),
        (NETWORK + broker("missing:9092", JOINED) + ui("kafka:9092") + 'module "other" {}\n', []),
        (broker("kafka:9092", "") + ui("kafka:9092", 'links = ["kafka"]\n'), []),
        (broker("localhost:9092", "") + ui("k:9092", 'links = ["kafka:k"]\n'), ["KL015"]),
        # one provider is one engine
        (NETWORK + broker("localhost:9092", JOINED) + ui("kafka:9092", ELSEWHERE),
         []),
        # names that are not known
        (NETWORK + broker("kafka:9092", JOINED, "${var.a}-kafka") + ui("${var.a}-kafka:9092"), []),
        (broker("kafka-${count.index}:9092", PORTS + "count = 3\n", "kafka-${count.index}"), []),
        (instance("localhost:9092"), []),
        (instance("localhost:9092", "9093"), ["KL017"]),
        (properties("10.0.0.1:9092"), []),
        (properties("${aws_eip.kafka.public_ip}:9092"), []),
        (properties("0.0.0.0:9092"), ["KL002"]),
        (task("kafka.example.com:9092"), []),
        (task("0.0.0.0:9092"), ["KL002"]),
        (task("0.0.0.0:9092", DOCUMENT), ["KL002"]),
        (task("${aws_lb.kafka.dns_name}:9092"), []),
        (task("${var.host}:9092") + 'variable "host" {\n  default = "0.0.0.0"\n}\n', ["KL002"]),
    ],
)  # fmt: skip
def test_a_terraform_file(tmp_path: Path, text: str, rules: list[str]) -> None:
    report = check(write(tmp_path, "main.tf", text), {})
    assert report.kind == "Terraform file"
    assert [mistake.finding.rule for mistake in report.mistakes] == rules


@pytest.mark.parametrize("name", ["override.tf", "a_override.tf"])
def test_an_override_file_is_merged_into_the_others(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(broker("kafka:9092", ""))
    report = check(write(tmp_path, "main.tf", broker("localhost:9092")), {})
    assert [mistake.finding.rule for mistake in report.mistakes] == ["KL017"]
    assert check(tmp_path / name, {}).mistakes == ()  # of the block in main.tf
    (tmp_path / name).write_text(
        broker("localhost:9092", PORTS.replace("external = 9092", "external = 9093"))
    )
    assert len(check(write(tmp_path, "main.tf", broker("localhost:9092")), {}).mistakes) == 1


ENTRIES = "".join(f'    {name} = "{value}"\n' for name, value in KRAFT.items())
MAP = (
    f"""locals {{
  env = {{
    KAFKA_ADVERTISED_LISTENERS = "PLAINTEXT://localhost:9093"
{ENTRIES}  }}
}}
"""
    """
resource "docker_image" "kafka" {
  name = "apache/kafka:4.1.1"
}
resource "docker_container" "kafka" {
  name  = "kafka"
  image = docker_image.kafka.image_id
  env   = [for k, v in local.env : "${k}=${v}"]
  ports {
    internal = 9092
    external = 9092
  }
}
"""
)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (broker("localhost:9093"), (11, 6)),
        (MAP, (3, 5)),
        (instance("localhost:9092", "9093"), (11, 10)),
        (properties("0.0.0.0:9092"), (6, 5)),
        (task("0.0.0.0:9092"), (34, 18)),
    ],
)
def test_a_mistake_is_placed_at_its_variable(
    tmp_path: Path, text: str, place: tuple[int, int]
) -> None:
    (mistake,) = check(write(tmp_path, "main.tf", text), {}).mistakes
    assert (mistake.place.line, mistake.place.column) == place


def test_a_module_is_read_as_a_whole_and_each_file_has_its_mistakes(tmp_path: Path) -> None:
    write(tmp_path, "variables.tf", 'variable "host" {\n  default = "kafka"\n}\n')
    write(tmp_path, "network.tf", NETWORK)
    kafka = write(tmp_path, "kafka.tf", broker("${var.host}:9092", JOINED))
    clients = write(tmp_path, "clients.tf", ui("missing:9092"))
    assert not check(kafka, {}).mistakes
    assert [one.finding.rule for one in check(clients, {}).mistakes] == ["KL015"]
    write(tmp_path, "terraform.tfvars", 'host = "localhost"\n')
    write(tmp_path, "clients.tf", ui("kafka:9092"))
    assert [one.finding.rule for one in check(kafka, {}).mistakes] == ["KL015"]
    write(tmp_path, "terraform.tfvars", "")
    write(tmp_path, "b.auto.tfvars.json", '{"host": "localhost"}')
    assert [one.finding.rule for one in check(kafka, {}).mistakes] == ["KL015"]
    assert {file.name for file in choose([tmp_path]).files} == {
        "clients.tf", "kafka.tf", "variables.tf",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (task("kafka:9092", 'file("task.json")'), "container_definitions could not be read"),
        (task("kafka:9092", "jsonencode(concat({}, []))"), "container_definitions could not be"),
        (
            task("kafka:9092", "jsonencode([module.kafka.container])"),
            "a container of container_def",
        ),
        (task("kafka:9092", image="nginx:1").replace("KAFKA", "WEB"), "declares no container"),
    ],
)
def test_a_task_that_is_not_judged_says_why(tmp_path: Path, text: str, reason: str) -> None:
    report = check(write(tmp_path, "main.tf", text), {})
    assert not report.kind and reason in report.unchecked[0]


@pytest.mark.parametrize("environment", ["concat(local.env, [])", "[local.kafka]"])
def test_a_task_may_have_variables_that_are_not_read(tmp_path: Path, environment: str) -> None:
    container = f'{{ name = "kafka", image = "apache/kafka:4.1.1", environment = {environment} }}'
    text = task("kafka:9092", f"jsonencode([{container.replace('{', '{{').replace('}', '}}')}])")
    report = check(write(tmp_path, "main.tf", text), {})
    assert not report.mistakes and "variables could not be read" in report.unchecked[0]


def as_json(advertised: str) -> str:
    """A module in JSON: a broker, and an instance whose user data start another."""
    env = KRAFT | {"KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{advertised}"}
    words = " ".join(f"-e {key}={value}" for key, value in env.items())
    container = {
        "name": "kafka",
        "image": "${docker_image.kafka.image_id}",
        "env": [f"{key}={value}" for key, value in env.items()],
        "ports": [{"internal": 9092, "external": "${var.port}"}],
    }
    script = f"#!/bin/bash\ndocker run -p 9092:9092 {words} apache/kafka:4.1.1\n"
    resources = {
        "docker_image": {"kafka": {"name": "apache/kafka:4.1.1"}},
        "docker_container": {"kafka": container},
        "aws_instance": {"kafka": {"user_data": script}},
    }
    return json.dumps({"variable": {"port": {"default": 9092}}, "resource": resources}, indent=1)


def test_maps_of_locals_in_json_are_values(tmp_path: Path) -> None:
    document = json.loads(as_json("${local.at.kafka}:9093"))
    document["locals"] = {"at": {"kafka": "localhost"}}
    report = check(write(tmp_path, "cdk.tf.json", json.dumps(document, indent=1)), {})
    assert "localhost:9093" in report.mistakes[0].finding.observed


def test_json_is_read_like_the_language(tmp_path: Path) -> None:
    file = write(tmp_path, "cdk.tf.json", as_json("localhost:9092"))
    assert check(file, {}).kind == "Terraform file" and not check(file, {}).mistakes
    text = as_json("localhost:9093")
    (line,) = (
        n for n, one in enumerate(text.splitlines(), 1) if '"KAFKA_ADVERTISED_LISTENERS' in one
    )
    mistakes = check(write(tmp_path, "cdk.tf.json", text), {}).mistakes
    assert [(one.finding.rule, one.place.line) for one in mistakes] == [
        ("KL017", line),
        ("KL017", 0),
    ]
    for text in ("[]", "{", '{"resource": [1, {"docker_container": "user_data"}]}', "[" * 99_999):
        assert not check(write(tmp_path, "cdk.tf.json", text), {}).kind


POD = 'resource "kubernetes_pod" "k" {\n  container {\n    image = %s\n  }\n}\n%s'
CHART = 'resource "helm_release" "k" {\n  chart = "%s"\n}\n'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('resource "docker_container" "db" {\n  image = "redis:7"\n}\n', "declares no container"),
        ('resource "aws_msk_cluster" "kafka" {}\n', "declares no container"),
        ('resource "aws_instance" "kafka" {\n  user_data = file("boot.sh")\n}\n',
         "aws_instance.kafka: user_data could not be read"),
        (POD % ("var.image", 'variable "image" {\n  default = "apache/kafka:4.1.1"\n}\n'),
         "kubernetes_pod.k: has the image"),
        (POD % ('"confluentinc/cp-schema-registry:7.6.0"', ""), "declares no container"),
        ('module "k" {\n  tasks = { a = [{ image = "apache/kafka:4.1.1" }] }\n}\n',
         "module.k: has the image"),
        (CHART % "bitnami/kafka", "helm_release.k: has the image or the chart"),
        (CHART % "kafka-ui", "declares no container"),
        ('resource "kubectl_manifest" "k" {\n  yaml_body = "a:\\n- image: \'apache/kafka\'"\n}\n',
         "kubectl_manifest.k: has the image"),
        ('resource "docker_image" "k" {\n  image = "apache/kafka"\n}\n', "declares no container"),
        ("", "declares no container"),
        ("resource {{{ \"", "declares no container"),
    ],
)  # fmt: skip
def test_a_file_without_a_broker_is_not_judged(tmp_path: Path, text: str, reason: str) -> None:
    report = check(write(tmp_path, "main.tf", text), {})
    assert report.kind == "" and report.unchecked[0].startswith(reason)


def test_a_broker_of_a_kind_that_is_not_read_is_named_beside_one_that_is_read(
    tmp_path: Path,
) -> None:
    pod = POD % ('"apache/kafka:4.1.1"', "")
    report = check(write(tmp_path, "main.tf", broker("localhost:9092", "") + pod), {})
    assert report.kind == "Terraform file"
    assert report.unchecked == (
        "kubernetes_pod.k: has the image or the chart of a broker, and its kind is not read",
    )


def test_what_the_listeners_leave_open_is_said(tmp_path: Path) -> None:
    text = broker("localhost:9092", "").replace("  env = [", "  env = concat(var.a, [")
    report = check(write(tmp_path, "main.tf", text.replace("  ]", "  ])")), {})
    assert report.unchecked == ("container kafka: env could not be read",)
    assert report.open_listeners == (
        "container kafka: env could not be read, and may set its listeners",
    )


@pytest.mark.parametrize(
    ("env", "rules"),
    [("", ["KL017"]), ('"ADV_HOST=kafka"', ["KL017"]), ('"ADV_HOST=localhost"', [])],
)
def test_an_image_with_variables_of_its_own(tmp_path: Path, env: str, rules: list[str]) -> None:
    text = (
        'resource "docker_container" "kafka" {\n  name  = "kafka"\n'
        f'  image = "lensesio/fast-data-dev"\n  env   = [{env}]\n{PORTS}}}\n'
    )
    report = check(write(tmp_path, "main.tf", text), {})
    assert [mistake.finding.rule for mistake in report.mistakes] == rules
