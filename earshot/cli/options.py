"""The options and arguments of the commands: their names, help and limits."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from earshot.report import Format


class Document(StrEnum):
    """The output formats of a plan or the rules."""

    TEXT = "text"
    JSON = "json"


class TunnelKind(StrEnum):
    """How this machine distinguishes the brokers of a tunnel: by ports or by addresses."""

    PORTS = "ports"
    ADDRESSES = "addresses"


class GatewayFormat(StrEnum):
    """The software of a gateway whose configuration can be written."""

    HAPROXY = "haproxy"
    NGINX = "nginx"
    JSON = "json"


class ClientScope(StrEnum):
    """The scope of a listener, as an option names it."""

    INTERNAL = "internal"
    HOST = "host"
    EXTERNAL = "external"


def _stacks(incomplete: str) -> list[str]:
    """Names of stacks for the shell's completion; empty outside of a project."""
    from earshot.errors import EarshotError
    from earshot.project import Project

    try:
        return [name for name in Project.find().stacks if name.startswith(incomplete)]
    except (EarshotError, OSError):
        return []


# fmt: off
Stack = Annotated[str | None, Option(
    "--stack", "-s", metavar="NAME", autocompletion=_stacks,
    help="A stack of this project, such as local.")]
OneStack = Annotated[str, Option(
    "--stack", "-s", metavar="NAME", autocompletion=_stacks, help="A stack's name.")]
SecuredStack = Annotated[str, Option(
    "--stack", "-s", metavar="NAME", autocompletion=_stacks, help="A secured stack.")]
ContractFile = Annotated[str | None, Option(
    "--contract", metavar="FILE",
    help="A contract: the output of 'pulumi stack output contract --json'; - is stdin.")]
Bootstrap = Annotated[str | None, Option(
    "--bootstrap", metavar="HOST:PORT,..",
    help="Addresses to connect to first. Without a contract, advertised addresses are not "
    "compared.")]
ClientConfig = Annotated[Path | None, Option(
    "--client-config", metavar="FILE",
    help="Kafka client properties, for TLS and SASL (as for --command-config).")]
Deadline = Annotated[float | None, Option(
    "--deadline", metavar="SECONDS", min=0.1, max=86400, help="Time limit for the whole run.")]
ReportFormat = Annotated[Format | None, Option(
    "--format", "-f", help="Default: text, or the format for the suffix of --output.")]
Output = Annotated[list[Path] | None, Option(
    "--output", "-o", metavar="FILE",
    help="Also write the report to this file (.txt, .json, .xml, .md, .html); - is stdout; "
    "may be repeated.")]
Force = Annotated[bool, Option("--force", help="Let --output replace any file.")]
DocumentFormat = Annotated[Document, Option("--format", "-f")]

# tunnel
TunnelVia = Annotated[str, Option(
    "--via", metavar="WAY",
    help="ssh://[USER@]HOST[:PORT], kubectl:NAMESPACE/POD or ssm:INSTANCE.")]
TunnelListener = Annotated[str | None, Option(
    "--listener", metavar="NAME",
    help="A listener of the contract. Default: one for external clients.")]
TunnelAs = Annotated[TunnelKind | None, Option(
    "--as", help="Default: addresses for a listener with TLS, else ports.")]
TunnelPort = Annotated[int, Option(
    "--port", min=1, max=65000, help="Port of the bootstrap address; brokers get the next ports.")]
TunnelCommand = Annotated[list[str] | None, Argument(
    metavar="[-- COMMAND...]",
    help="Command to start when the tunnel is ready, with EARSHOT_BOOTSTRAP; the tunnel "
    "ends with it.")]

# gateway
GatewaySoftware = Annotated[GatewayFormat, Option(
    "--format", help="The gateway's software, or json for any other.")]
GatewayListeners = Annotated[list[str] | None, Option(
    "--listener", metavar="NAME", help="Only this listener. Repeatable.")]
Binds = Annotated[list[str] | None, Option(
    "--bind", metavar="LISTENER=PORT",
    help="With --contract: the port that brokers bind for this listener. Repeatable.")]

# plan
PlanFormat = Annotated[Document, Option("--format", "-f", help="json: the contract.")]
Render = Annotated[str | None, Option(
    "--render", metavar="NODE", help="Print the server.properties of a node, or of 'all'.")]
Check = Annotated[bool, Option(
    "--check", help="Look the names up and apply the rules, as the gate will.")]
Against = Annotated[str | None, Option(
    "--against", metavar="STACK", autocompletion=_stacks,
    help="Print the steps from the running brokers of that stack to this plan.")]

# doctor
ForScope = Annotated[ClientScope | None, Option(
    "--scope", help="Only the listeners for clients of this scope.")]
Produce = Annotated[bool, Option("--produce/--no-produce", help="Send a record to every broker.")]
Idle = Annotated[float | None, Option(
    "--idle", metavar="SECONDS", min=1, max=3600,
    help="Then keep an idle connection to every broker for this time, and test that it "
    "still works.")]

# validate
Records = Annotated[int | None, Option(
    "--records", min=0, help="Total number of records, in equal shares per listener; 0: no Spark.")]
Jars = Annotated[str | None, Option(
    "--jars", metavar="FILE,..",
    help="The jars of Spark's Kafka connector; default: fetched by Ivy.")]
JarsFolder = Annotated[Path | None, Option(
    "--jars-dir", metavar="FOLDER", help="A folder with these jars.")]
SparkProperties = Annotated[list[str] | None, Option(
    "--conf", metavar="KEY=VALUE", help="A Spark property; may be repeated.")]
Vantages = Annotated[Path | None, Option(
    "--vantages", metavar="FILE",
    help="JSON file of the vantages to validate from; default: the stack's own.")]
Only = Annotated[list[str] | None, Option(
    "--only", metavar="NAME", help="Validate only from this vantage; may be repeated.")]
ThisVantage = Annotated[str | None, Option(
    "--vantage", metavar="NAME",
    help="Validate only from this machine, with this name in the report.")]
Incarnations = Annotated[str | None, Option("--incarnations", hidden=True)]

# client
ClientUser = Annotated[str, Option("--user", metavar="NAME", help="A user of the stack.")]
ClientListener = Annotated[str, Option(
    "--listener", metavar="NAME", help="The listener that the user connects to.")]
ClientOutput = Annotated[Path, Option(
    "--output", "-o", metavar="FILE",
    help="Output file, created with mode 0600; only files of this command are replaced; "
    "- is stdout.")]

# report, rules, adopt
Reports = Annotated[list[str] | None, Argument(
    metavar="[FILE]...", help="Reports in JSON; also s3://BUCKET/KEY.")]
RuleId = Annotated[str | None, Argument(metavar="[ID]", help="A rule's id, such as KL011.")]
Adopted = Annotated[Path, Argument(
    metavar="FILE", help="A docker-compose.yml or a server.properties.")]
EnvFile = Annotated[Path | None, Option(
    "--env-file", metavar="FILE", help="Default: .env in the folder of the compose file.")]
Services = Annotated[list[str] | None, Option(
    "--service", metavar="NAME", help="Only this service; may be repeated.")]
Scopes = Annotated[list[str] | None, Option(
    "--scope", metavar="NAME=SCOPE",
    help="The scope of the listeners: internal, host or external; may be repeated.")]
StackOutput = Annotated[Path | None, Option(
    "--output", "-o", metavar="FILE", help="Write the stack file to this new file; - is stdout.")]
# fmt: on
