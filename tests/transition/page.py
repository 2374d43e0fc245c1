"""The page about changes, generated: `python -m tests.transition.page > docs/changes.md`."""

import sys
from collections.abc import Iterator

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Role, Scope
from earshot.transition.rehearsal import RehearsedStep, rehearsed_steps
from earshot.transition.steps import transition

_HEAD = """\
<!-- generated: python -m tests.transition.page -->
# Change listeners while brokers run

During a rolling restart some brokers run with the old listeners and some with the new ones. A
broker connects to the others through the listener in its own `inter_broker`, so each broker must
offer the listener that the others use, in every mixture. If one rolling restart cannot guarantee
that, the change is made in steps: first add the new listeners to the old ones, then switch the
traffic between brokers, then remove the old listeners.

## Make a change

1. Edit the listeners in the stack's file. `earshot plan --stack NAME --against NAME` prints the
   steps, and the listeners of each broker in each step.
2. `pulumi up` makes the next step. Its output and its preview show which step it is. `make up`
   repeats until all steps are made.
3. A step is complete when every listener was proved. The next step begins after that.
4. Move clients away from each listener that the contract marks as `leaving`: a later step removes
   it. The bootstrap addresses of its replacement are an output from the step that adds it.

After an interrupt the next run continues with the same step. To go back, restore the old
listeners in the stack's file and run again.

## When a listener is removed

A listener is removed only when no clients are connected. Otherwise the update stops and shows how
many clients are connected, and from where. Set `remove: anyway` in the stack's file to allow the
removal, or `remove: 2030-12-31` from that day (UTC): the update then names the clients that it
disconnects (on `local` and `docker`). On `aws`, instances report connected clients every 15 s,
from the step that marks the listener as leaving. In a change of a single step there is no such
report, so the listener is removed only if one of these settings allows it.

## Rules of a change

- A listener that gets another name and another port is added and removed. To change only the
  name, make two changes: first to a free port, then back.
- Connected clients follow a listener to another port or host: while one broker serves at an
  address that they know, it returns the addresses of the others. A client that starts with the
  old addresses needs the new ones when the step is complete.
- On `local` without `security`, `client_config` is the file of client properties that prove a
  listener with SASL, from the step that adds it to the step that removes it.
- If a broker ends during a step, no second broker is stopped (on `local` and `docker`). The next
  run first starts the broker that has ended.
- On `local` a broker is stopped only when all others are in sync, also after an interrupted run.
- If a broker does not come up in a step, it is started again with its earlier settings (on
  `local` and `docker`), and the step fails. On `local` it also gets the earlier content of the
  files that these settings name, directly or by `${file:...}`. On `aws` its predecessor is gone:
  revert the change, and run again.
- A `kafka_version` or properties in `extra` that change at the same time are applied in the first
  step.

## Where the state of a change is stored

The last completed step is stored in the stack's folder on `local`, and in Pulumi's state on
`docker` and `aws`. Every checkout with the same backend continues from that state. If the file on
`local` is lost or cannot be read, an update starts from the running listeners.

If running brokers have other listeners than the stored ones, for example because a state was
restored from a copy, an update on `local` and `docker` says so and starts from the running
listeners. It compares listeners, protocols and advertised addresses; for nodes that do not run,
it uses the stored ones. On `aws` listeners are not compared, because instances report their
state, not their listeners. After `pulumi stack import` there, run `earshot doctor` before you
change listeners: it compares the contract with the brokers' metadata.

## What a change costs

Measured on three brokers of placement `local` (Kafka 4.1.1, three replicas, two in sync), on two
busy cores. In these changes the listener between brokers gets another name and port, or another
protocol (PLAINTEXT to SASL_PLAINTEXT, and back); one listener is split into two, two are joined,
and EXTERNAL gets another host and port. A producer with `acks=all`, a transactional producer and
a consumer group used EXTERNAL all the time. `make change-interrupts` interrupts every step of
each change by Ctrl-C, by killing Pulumi and by killing a broker (SIGKILL), and alternately
continues or reverts the step. The group read every acknowledged record, and none of a transaction
twice.

- The longest time of a partition without an acknowledgement was 0.3 to 2.7 s. Most of the time
  above half a second is one wait of a broker: if it asks the next leader for records before that
  leader is ready, it asks again a second later (`replica.fetch.backoff.ms`). With 100 ms, as in
  the templates, nine restarts cost 0.8 s at most, and interrupted steps 0.8 to 2.3 s on a machine
  with much other work. In your own stack file set `extra: {replica.fetch.backoff.ms: "100"}`.
  Clients do not add to it: a producer wrote to the next leader within a quarter of a second.
- If a broker was killed while another one was restarted, the time was 10 to 18 s: Kafka waits 9 s
  (`broker.session.timeout.ms`) before others lead its partitions, and before it accepts the
  broker again.

On a Docker engine the listener between brokers got another name and port while EXTERNAL moved to
another host and port, with Ctrl-C in the first step, a killed broker in the second and a killed
CLI in the third. One producer used the listener that stayed, the other used EXTERNAL and left its
old address before the last step. Neither lost an acknowledged record; the longest time without an
acknowledgement was 9.5 s.

Three secured brokers and a controller in [a box](aws.md#a-cloud-in-a-box), which simulates AWS,
made the same change with EXTERNAL at another port, and lost no record; the longest time was 20 s.
(The name of EXTERNAL there depends on an Elastic IP, and does not change.)

## The steps of each change

Below, three brokers offer INTERNAL (scope internal, also between brokers) and EXTERNAL (scope
host). "Clients meanwhile" are the listeners through which a client reaches every broker at each
moment of the step.

This page is generated from the function that plans changes (`python -m tests.transition.page`).
"""

_INTERNAL = ("INTERNAL", 19092, Scope.INTERNAL, Protocol.PLAINTEXT)
_REPL = ("REPL", 19192, Scope.INTERNAL, Protocol.PLAINTEXT)
_EXTERNAL = ("EXTERNAL", 9092, Scope.HOST, Protocol.PLAINTEXT)

Sketch = tuple[str, int, Scope, Protocol]
"""A listener's name, port, scope and protocol."""


def _plan(
    *listeners: Sketch, between: str = "INTERNAL", brokers: int = 3, quorum: int = 29092
) -> ClusterPlan:
    def bound(sketch: Sketch, id: int) -> Listener:
        name, port, scope, protocol = sketch
        host = f"broker-{id}.{scope}.example"
        return Listener(
            name=name, protocol=protocol, scopes=(scope,), bind_port=port, host=host, port=port
        )

    sockets = (*listeners, ("CONTROLLER", quorum, Scope.CONTROLLER, Protocol.PLAINTEXT))
    return ClusterPlan(
        kafka_version="4.1.1",
        inter_broker=between,
        controller="CONTROLLER",
        replication_factor=3,
        min_insync_replicas=2,
        nodes=tuple(
            Node(
                id=id,
                roles=(Role.BROKER, Role.CONTROLLER) if id <= 3 else (Role.BROKER,),
                listeners=tuple(bound(it, id) for it in (sockets if id <= 3 else listeners)),
            )
            for id in range(1, brokers + 1)
        ),
    )


def _with(
    sketch: Sketch, name: str = "", port: int = 0, protocol: Protocol | None = None
) -> Sketch:
    return (name or sketch[0], port or sketch[1], sketch[2], protocol or sketch[3])


_SASL = Protocol.SASL_PLAINTEXT
_WANTED = {
    "A listener is added": _plan(_INTERNAL, _EXTERNAL, _with(_EXTERNAL, "PUBLIC", 9192)),
    "EXTERNAL gets another port or host": _plan(_INTERNAL, _with(_EXTERNAL, port=9192)),
    "EXTERNAL gets another name and port": _plan(_INTERNAL, _with(_EXTERNAL, "PUBLIC", 9192)),
    "EXTERNAL becomes two listeners": _plan(
        _INTERNAL, _with(_EXTERNAL, "OFFICE", 9192), _with(_EXTERNAL, "PARTNERS", 9292)
    ),
    "Two listeners become one": _plan(_INTERNAL, _with(_EXTERNAL, "PUBLIC", 9292)),
    "EXTERNAL changes to TLS": _plan(_INTERNAL, _with(_EXTERNAL, protocol=Protocol.SSL)),
    "Brokers use another listener, on another port": _plan(_REPL, _EXTERNAL, between="REPL"),
    "Brokers use a listener with another protocol": _plan(
        _with(_REPL, protocol=_SASL), _EXTERNAL, between="REPL"
    ),
    "INTERNAL changes its protocol, with another internal listener": _plan(
        _with(_INTERNAL, protocol=_SASL), _EXTERNAL, _REPL
    ),
    "INTERNAL changes its protocol, without another internal listener": _plan(
        _with(_INTERNAL, protocol=_SASL), _EXTERNAL
    ),
    "INTERNAL gets another name on the same port": _plan(
        _with(_INTERNAL, "REPL"), _EXTERNAL, between="REPL"
    ),
    "A broker is added": _plan(_INTERNAL, _EXTERNAL, brokers=4),
    "The controllers get another port": _plan(_INTERNAL, _EXTERNAL, quorum=29192),
}
_BEFORE = {
    "Two listeners become one": _plan(_INTERNAL, _EXTERNAL, _with(_EXTERNAL, "OFFICE", 9192)),
    "INTERNAL changes its protocol, with another internal listener": _plan(
        _INTERNAL, _EXTERNAL, _REPL
    ),
}
CHANGES = {
    title: (_BEFORE.get(title, _plan(_INTERNAL, _EXTERNAL)), wanted)
    for title, wanted in _WANTED.items()
}


def page() -> str:
    """The page as Markdown."""
    return "\n".join((_HEAD, *(_section(title, *pair) for title, pair in CHANGES.items())))


def _section(title: str, current: ClusterPlan, wanted: ClusterPlan) -> str:
    try:
        steps = rehearsed_steps(current, transition(current, wanted))
    except EarshotError as refusal:
        return f"### {title}\n\nRefused: {refusal.observed}.\n\nInstead: {refusal.remedy}.\n"
    restarts = sum(len(step.restarts) for step in steps)
    head = ("step", "restarts", "between brokers", "clients meanwhile", "clients after it")
    rows = [head, ("---",) * len(head), *(_row(*it) for it in enumerate(steps, start=1))]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"### {title}\n\n{len(steps)} step{'s' * (len(steps) > 1)}, {restarts or 'no'} "
        f"restart{'s' * (restarts != 1)}.\n\n{table}\n"
    )


def _row(number: int, step: RehearsedStep) -> Iterator[str]:
    yield f"{number}: {step.text}"
    yield ", ".join(map(str, step.restarts)) or "none"
    yield step.through
    for served in (step.meanwhile, step.after):
        yield "; ".join(f"{scope}: {', '.join(names) or 'none'}" for scope, names in served.items())


if __name__ == "__main__":
    sys.stdout.write(page())
