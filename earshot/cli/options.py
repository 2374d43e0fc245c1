"""The options and arguments of the commands: their names, help and limits."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from earshot.report import Format


class Document(StrEnum):
    """What a plan or the rules can be written as."""

    TEXT = "text"
    JSON = "json"


class TunnelKind(StrEnum):
    """How this machine distinguishes the brokers of a tunnel: by ports or by addresses."""

    PORTS = "ports"
    ADDRESSES = "addresses"


class GatewayFormat(StrEnum):
    """What the configuration of a gateway can be written for."""

    HAPROXY = "haproxy"
    NGINX = "nginx"
    JSON = "json"


class ClientScope(StrEnum):
    """The scope of a listener, as an option names it."""

    INTERNAL = "internal"
    HOST = "host"
    EXTERNAL = "external"


def _stacks(incomplete: str) -> list[str]:
    """Names of stacks for the shell's completion; none outside of a project."""
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
    help="A contract, as 'pulumi stack output contract --json' prints it; - is stdin.")]
Bootstrap = Annotated[str | None, Option(
    "--bootstrap", metavar="HOST:PORT,..",
    help="Where to connect first; without a contract, what brokers advertise is taken as is.")]
ClientConfig = Annotated[Path | None, Option(
    "--client-config", metavar="FILE",
    help="Kafka client properties, for TLS and SASL (as for --command-config).")]
Deadline = Annotated[float | None, Option(
    "--deadline", metavar="SECONDS", min=0.1, max=86400, help="For it all.")]
ReportFormat = Annotated[Format | None, Option(
    "--format", "-f", help="Default: text, or what the suffix of --output says.")]
Output = Annotated[list[Path] | None, Option(
    "--output", "-o", metavar="FILE",
    help="Write the report there as well (.txt, .json, .xml, .md, .html); - is stdout; "
    "may be repeated.")]
Force = Annotated[bool, Option("--force", help="Let --output replace any file.")]
DocumentFormat = Annotated[Document, Option("--format", "-f")]

# tunnel
TunnelVia = Annotated[str, Option(
    "--via", metavar="WAY",
    help="ssh://[USER@]HOST[:PORT], kubectl:NAMESPACE/POD or ssm:INSTANCE.")]
TunnelListener = Annotated[str | None, Option(
    "--listener", metavar="NAME", help="Of the contract. Default: one for external clients.")]
TunnelAs = Annotated[TunnelKind | None, Option(
    "--as", help="Default: addresses for a listener with TLS, else ports.")]
TunnelPort = Annotated[int, Option(
    "--port", min=1, max=65000, help="Of the bootstrap; brokers have the ports after it.")]
TunnelCommand = Annotated[list[str] | None, Argument(
    metavar="[-- COMMAND...]",
    help="Started once the tunnel is there, with EARSHOT_BOOTSTRAP; the tunnel ends with it.")]

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
    help="Print the steps from what that stack runs to this.")]

# doctor
ForScope = Annotated[ClientScope | None, Option(
    "--scope", help="Only the listeners for clients on this machine.")]
Produce = Annotated[bool, Option("--produce/--no-produce", help="Send a record to every broker.")]
Idle = Annotated[float | None, Option(
    "--idle", metavar="SECONDS", min=1, max=3600,
    help="Then hold a connection to every broker without traffic; it must still answer.")]

# validate
Records = Annotated[int | None, Option(
    "--records", min=0, help="In all, in equal shares per listener; 0: no Spark.")]
Jars = Annotated[str | None, Option(
    "--jars", metavar="FILE,..", help="The connector's jars, instead of Ivy.")]
JarsFolder = Annotated[Path | None, Option(
    "--jars-dir", metavar="FOLDER", help="A folder that holds these jars.")]
SparkProperties = Annotated[list[str] | None, Option(
    "--conf", metavar="KEY=VALUE", help="A Spark property; may be repeated.")]
Vantages = Annotated[Path | None, Option(
    "--vantages", metavar="FILE", help="From where to validate; a stack has its own.")]
Only = Annotated[list[str] | None, Option(
    "--only", metavar="NAME", help="Validate from this vantage alone; may be repeated.")]
ThisVantage = Annotated[str | None, Option(
    "--vantage", metavar="NAME", help="Validate from here, under this name.")]
Incarnations = Annotated[str | None, Option("--incarnations", hidden=True)]

# client
ClientUser = Annotated[str, Option("--user", metavar="NAME", help="One of its users.")]
ClientListener = Annotated[str, Option(
    "--listener", metavar="NAME", help="Through which the user comes in.")]
ClientOutput = Annotated[Path, Option(
    "--output", "-o", metavar="FILE",
    help="A new file, or an earlier one of this command, for its owner alone (0600); "
    "- is stdout.")]

# report, rules, adopt
Reports = Annotated[list[str] | None, Argument(
    metavar="[FILE]...", help="Reports in JSON; also s3://BUCKET/KEY.")]
RuleId = Annotated[str | None, Argument(metavar="[ID]", help="A rule's id, such as KL011.")]
Adopted = Annotated[Path, Argument(
    metavar="FILE", help="A docker-compose.yml or a server.properties.")]
EnvFile = Annotated[Path | None, Option(
    "--env-file", metavar="FILE", help="Default: .env beside the compose file.")]
Services = Annotated[list[str] | None, Option(
    "--service", metavar="NAME", help="Only this service; may be repeated.")]
Scopes = Annotated[list[str] | None, Option(
    "--scope", metavar="NAME=SCOPE",
    help="The scope of the listeners: internal, host or external; may be repeated.")]
StackOutput = Annotated[Path | None, Option(
    "--output", "-o", metavar="FILE", help="Write the stack file there, a new one; - is stdout.")]
# fmt: on
