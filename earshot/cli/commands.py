"""The commands with their options and help; their modules are imported when they are called."""

from typing import Annotated, NoReturn

import typer
from typer import Option

from earshot.cli.lint_options import SUMMARY as LINT
from earshot.cli.options import (
    Adopted,
    Against,
    Binds,
    Bootstrap,
    Check,
    ClientConfig,
    ClientListener,
    ClientOutput,
    ClientUser,
    ContractFile,
    Deadline,
    Document,
    DocumentFormat,
    EnvFile,
    Force,
    ForScope,
    GatewayFormat,
    GatewayListeners,
    GatewaySoftware,
    Idle,
    Incarnations,
    Jars,
    JarsFolder,
    OneStack,
    Only,
    Output,
    PlanFormat,
    Produce,
    Records,
    Render,
    ReportFormat,
    Reports,
    RuleId,
    Scopes,
    SecuredStack,
    Services,
    SparkProperties,
    Stack,
    StackOutput,
    ThisVantage,
    TunnelAs,
    TunnelCommand,
    TunnelListener,
    TunnelPort,
    TunnelVia,
    Vantages,
)

app = typer.Typer(
    name="earshot",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from earshot import __version__

        typer.echo(f"earshot {__version__}")
        raise typer.Exit


@app.callback()
def earshot(
    version: Annotated[
        bool, Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[
        bool, Option("--debug", help="Show the trace of an error; anywhere on the line.")
    ] = False,
) -> None:
    """Is anyone listening? Computes, checks and proves the listeners of Kafka brokers.

    [bold]Begin with[/bold]

      earshot plan --stack local       what brokers will bind and advertise
      earshot doctor --stack local     every broker, through every listener
      earshot validate --stack local   the doctor, then records sent by Spark
      earshot lint docker-compose.yml  mistakes in the files that you have

    [bold]Exit codes[/bold]  0 all well; 1 a rule or a cell failed;
    2 usage or configuration; 3 inconclusive: something was skipped or could
    not be decided, and nothing failed.
    """


@app.command()
def plan(
    stack: OneStack,
    format: PlanFormat = Document.TEXT,
    render: Render = None,
    check: Check = False,
    against: Against = None,
) -> None:
    """Show what the brokers of a stack will bind and advertise. Changes nothing.

    Reads the stack's file and this machine's names. With --check it evaluates the
    rules with the resolvers of the pack's configuration (policies/config), and
    exits with 1 if the gate would stop an update. With --against it prints the
    steps in which running brokers get these listeners, and the cost of each.

      earshot plan --stack local
      earshot plan --stack local --check
      earshot plan --stack local --against local
      earshot plan --stack local --render 1
      earshot plan --stack local --format json > contract.json
    """
    from earshot.cli import plan as command

    as_json = format is Document.JSON
    _exit(command.run(stack, json=as_json, render=render, check=check, against=against))


@app.command()
def doctor(
    stack: Stack = None,
    contract: ContractFile = None,
    bootstrap: Bootstrap = None,
    scope: ForScope = None,
    client_config: ClientConfig = None,
    deadline: Deadline = None,
    produce: Produce = True,
    idle: Idle = None,
    format: ReportFormat = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Examine every broker through every listener, from here, within seconds.

    Each cell goes through bootstrap, metadata, resolve, TCP, TLS/SASL, produce
    and consume; the first stage that fails names the cause. With a contract the
    answers are compared with it (drift); --bootstrap replaces its bootstrap
    addresses.

      earshot doctor --stack local -o report.html
      earshot doctor --stack docker --scope host
      earshot doctor --bootstrap kafka.example.com:9092 --no-produce
      pulumi stack output contract --json | earshot doctor --contract -
    """
    from earshot.cli import doctor as command

    looked_at = (stack, contract, bootstrap)
    chosen = scope and scope.value
    arguments = (looked_at, chosen, client_config, deadline, produce, format, output or [])
    _exit(command.run(*arguments, idle=idle, force=force))


@app.command(context_settings={"ignore_unknown_options": True})
def tunnel(
    command: TunnelCommand = None,
    via: TunnelVia = "",
    stack: Stack = None,
    contract: ContractFile = None,
    bootstrap: Bootstrap = None,
    listener: TunnelListener = None,
    kind: TunnelAs = None,
    port: TunnelPort = 19092,
) -> None:
    """Reach the brokers of a private cluster from here, through one machine.

    Each broker has an address of this machine. Without TLS, these are ports of
    127.0.0.1, and Kafka's answers are rewritten on the way. With TLS (or --as
    addresses) nothing is rewritten: brokers keep their names, which resolve to
    loopback addresses for a COMMAND that is started here, or for a JVM with the
    printed hosts file. See docs/tunnel.md.

      earshot tunnel --via ssh://me@bastion --contract contract.json
      earshot tunnel --via kubectl:kafka/client --bootstrap kafka-0.kafka:9092
      earshot tunnel --via ssm:i-0123456789abcdef0 --stack aws-prod
      earshot tunnel --via ssh://bastion --stack prod -- kcat -L -b kafka-1:9094
    """
    from earshot.cli import tunnel as work

    chosen = kind and kind.value
    _exit(work.run((stack, contract, bootstrap), via, listener, chosen, port, command or []))


@app.command()
def gateway(
    stack: Stack = None,
    contract: ContractFile = None,
    bind: Binds = None,
    listener: GatewayListeners = None,
    format: GatewaySoftware = GatewayFormat.HAPROXY,
) -> None:
    """Print the configuration of a gateway that forwards clients to the brokers.

    For listeners with address strategy sni or port. The gateway forwards each
    advertised name or port to its broker, and TLS unchanged. A stack of this
    project has the ports that brokers bind; with a contract, --bind sets them.

      earshot gateway --stack prod > /etc/haproxy/haproxy.cfg
      earshot gateway --stack prod --listener PARTNERS --format nginx
      earshot gateway --contract contract.json --bind PARTNERS=9095
    """
    from earshot.cli import gateway as work

    _exit(work.run(stack, contract, bind or [], listener or [], format.value))


@app.command()
def validate(
    stack: Stack = None,
    contract: ContractFile = None,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    records: Records = None,
    deadline: Deadline = None,
    jars: Jars = None,
    jars_dir: JarsFolder = None,
    conf: SparkProperties = None,
    vantages: Vantages = None,
    only: Only = None,
    vantage: ThisVantage = None,
    incarnations: Incarnations = None,
    format: ReportFormat = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Prove with Spark that records travel through every listener to every broker and back.

    Runs the doctor, then a Spark job: every listener writes to every broker, and
    every listener reads everything back. Its topic is removed at the end, also
    after a failure.

    Listeners of a stack on Docker hosts are validated from where their clients
    are: host from this machine, internal in a container on the brokers'
    network, external in one on another network. There is one report for all; the
    cells of a vantage that cannot be used are undecided (exit 3).
    With --vantage everything is validated from here instead.

      earshot validate --stack local
      earshot validate --stack docker --only host
      earshot validate --contract contract.json --vantage laptop
      earshot validate --contract contract.json --records 100000 --deadline 600
      earshot validate --stack local -o junit.xml -o report.html
      spark-submit --master yarn earshot/__main__.py validate --contract c.json
    """
    from earshot.cli import validate as command

    looked_at = (stack, contract, bootstrap)
    effort = (records, deadline, jars, jars_dir, conf or ())
    choice = command.Choice(*effort, vantages, vantage, tuple(only or ()))
    arguments = (looked_at, client_config, choice, incarnations, format, output or [])
    _exit(command.run(*arguments, force=force))


@app.command()
def client(
    stack: SecuredStack,
    user: ClientUser,
    listener: ClientListener,
    output: ClientOutput,
    force: Force = False,
) -> None:
    """Write the client properties of a user of a secured stack.

    They contain the addresses, the trusted authorities, and the user's password
    or the file with its certificate. Kafka's own tools read them with
    --command-config, a Java client as its properties. The command replaces
    only files that it wrote itself.

      earshot client -s local-secure --user app --listener EXTERNAL -o FILE
      earshot doctor -s local-secure --client-config FILE
    """
    from earshot.cli import client as command

    _exit(command.run(stack, user, listener, output, force=force))


@app.command()
def report(
    files: Reports = None,
    stack: Stack = None,
    format: ReportFormat = None,
    output: Output = None,
    force: Force = False,
) -> None:
    """Print a saved report in any format; several become one, a matrix for each vantage.

    The exit code is the report's own, as if the run had just ended. Reports of
    one vantage are not added up: the later one counts.

      earshot report --stack local --format html > report.html
      earshot report laptop.json vpc.json container.json
      earshot report laptop.json s3://BUCKET/reports/latest.json
    """
    from earshot.cli import report as command

    _exit(command.run(files or [], stack, format, output or [], force=force))


@app.command()
def rules(id: RuleId = None, format: DocumentFormat = Document.TEXT) -> None:
    """List the rules for advertised listeners, or show one in full.

    The policy pack applies them at every preview and update, and reports the ids
    of broken rules.

      earshot rules
      earshot rules KL011
    """
    from earshot.cli import rules as command

    command.run(id, json=format is Document.JSON)


@app.command()
def adopt(
    file: Adopted,
    env_file: EnvFile = None,
    service: Services = None,
    scope: Scopes = None,
    output: StackOutput = None,
    force: Force = False,
    format: DocumentFormat = Document.TEXT,
) -> None:
    """Turn a compose file or a server.properties into a stack file, and name its mistakes.

    Prints the scope of every listener, with the reason. If the file does not show
    a scope, the command asks for it (--scope) and writes nothing.

      earshot adopt docker-compose.yml
      earshot adopt docker-compose.yml --scope PARTNER=external -o ours.yaml
      earshot adopt server.properties --format json
    """
    from earshot.cli import adopt as command

    as_json = format is Document.JSON
    arguments = (file, env_file, service or [], scope or [], output)
    _exit(command.run(*arguments, json=as_json, force=force))


@app.command("policy-pack")
def policy_pack() -> None:
    """Print a folder with the policy pack, for any Pulumi program.

    Pulumi reads policy packs from folders. This one is in the user's cache, and
    runs with the Python of this command. Needs the extra `deploy`.

      pulumi preview --policy-pack "$(earshot policy-pack)"
    """
    from earshot.cli import policy_pack as command

    command.run()


@app.command()
def schema() -> None:
    """Print the JSON Schema of a stack file, for editors and for checks in CI.

    It describes every key of `earshot:cluster`, with its type, its default and
    the allowed values. Save it next to a stack file, and name it in the first
    line:

      earshot schema > stacks/earshot.schema.json
      # yaml-language-server: $schema=earshot.schema.json
    """
    from earshot.cli import schema as command

    command.run()


@app.command(
    help=LINT,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
def lint(context: typer.Context) -> None:
    # only for the help: `lint_options` handles command lines that begin with lint
    from earshot.cli.lint_options import main

    _exit(main(context.args))


def _exit(code: int) -> NoReturn:
    raise typer.Exit(code)
