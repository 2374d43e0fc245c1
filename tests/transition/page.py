"""The page about changes, generated: `python -m tests.transition.page > docs/changes.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from earshot.errors import EarshotError
from earshot.listeners.model import ClusterPlan, Listener, Node
from earshot.listeners.terms import Protocol, Role, Scope
from earshot.transition.rehearsal import Rehearsed, rehearsed
from earshot.transition.steps import transition

_HEAD = """\
# What a change of listeners costs

Brokers are restarted one after the other, so that some run with the old listeners and some with the
new ones. A broker connects to another through the listener that its own `inter_broker` names: each
must offer what the others use, in every mixture. Where one rolling restart cannot keep to that, a
change is made in steps: what is new beside what is there, then what brokers use among themselves,
then away with what is not wanted.

- `pulumi up` makes the next step and says which one it is, in its preview too. `make up` repeats
  until the wanted listeners run. `earshot plan --stack NAME --against NAME` prints the steps with
  what each broker offers in each.
- A step is complete when every listener was proved; the next one begins no sooner. After an
  interrupt the next run goes on with the step. With the old listeners in the stack's file again, it
  returns.
- The contract marks what a later step takes away (`leaving`). Its clients are to move to a listener
  that stays: its bootstrap is an output from the step that adds it.
- A listener goes once no client is connected to it: the update stops, and names how many are and
  from where. `remove: anyway` in the stack's file does not look; `remove: 2030-12-31` looks until
  that day begins (UTC) and not from then on. On `aws` instances report it every 15 s, from the step
  on that marks the listener as leaving. One that goes in a change of one step is not watched: there
  it goes when one of these says so.
- What was made last is remembered: on `local` in the stack's folder, beside its brokers; on
  `docker` and `aws` in Pulumi's state, from which every checkout with the same backend goes on.
- Where brokers that run have other listeners than what is remembered (a state was put back from a
  copy, say), an update on `local` and `docker` says so and begins with what they run. It compares
  their listeners, protocols and advertised addresses; nodes that do not run are taken to be as
  remembered. On `aws` the listeners of brokers are not compared: instances report their state, not
  their listeners. After `pulumi stack import` there, run `earshot doctor` before you change
  listeners: it compares the contract with what brokers answer.
- A listener that gets another name and port together is added and taken away. One that keeps its
  port gets another name in two changes: to a free port first, and then back.
- Clients that are connected follow a listener to another port or host by themselves: as long as one
  broker serves where they know it, it tells them where the others are. One that begins with the old
  addresses meanwhile needs the new ones once the step is complete.
- On `local` without `security`, `client_config` names the client properties that prove a listener
  with SASL, from the step that adds it to the one that takes it away.
- A broker that ends while a step is made is started by the next run before any other one is
  stopped; until then the run stops no second one (on `local` and `docker`).
- A broker that does not come up in a step is started again as it was, on `local` and `docker`, and
  the step ends as failed. On `aws` the one before it is gone: take the change back, and run again.
- A `kafka_version` or properties in `extra` that change along are applied with the first step.

Run on three brokers of placement `local` (Kafka 4.1.1, three replicas, two in sync), on two busy
cores: the listener between brokers gets another name and port, and another protocol (PLAINTEXT to
SASL_PLAINTEXT, and back); one listener is split into two, two are joined, and EXTERNAL gets another
host and port. A producer with `acks=all`, a transactional producer and a consumer group stayed on
EXTERNAL. `make change-interrupts` interrupts every step of each of these changes by Ctrl-C, by
killing Pulumi and by killing a broker (SIGKILL), and goes on or takes the step back by turns. The
group read every acknowledged record, and none of a transaction twice.

- A partition was without an acknowledgement for 0.3 to 2.7 s at most. What is above half a second
  is mostly one wait of the brokers: one that asks the next leader for records before that one knows
  of it asks again a second later (`replica.fetch.backoff.ms`). With 100 ms, as the templates set
  it, nine restarts cost 0.8 s at most, and interrupted steps 0.8 to 2.3 s on a machine that did
  much else; `extra: {replica.fetch.backoff.ms: "100"}` does it in a stack file of your own. Clients
  have no part in it: a producer wrote to the next leader within a quarter of a second.
- Where a broker was killed while another one was restarted, it was 10 to 18 s: Kafka waits 9 s
  (`broker.session.timeout.ms`) before others lead its partitions, and before it takes the broker in
  again.

On a Docker engine the listener between brokers got another name and port while EXTERNAL moved to
another host and port, with Ctrl-C in the first step, a killed broker in the second and a killed CLI
in the third. Neither a producer on the listener that stayed nor one on EXTERNAL, which left its old
address before the last step, lost an acknowledged record; up to 9.5 s went by without one. Three
secured brokers and a controller in [a box](aws.md#a-cloud-in-a-box), which stands for AWS, did the
same with EXTERNAL at another port, and lost none; up to 20 s went by. (The name of EXTERNAL there
follows from an Elastic IP, and stays.)

Below, three brokers offer INTERNAL (scope internal, between brokers too) and EXTERNAL (scope host).
"Meanwhile" are the listeners through which a client reaches every broker at each moment of the
step.

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
    "EXTERNAL takes TLS": _plan(_INTERNAL, _with(_EXTERNAL, protocol=Protocol.SSL)),
    "Brokers use another listener, on a port of its own": _plan(_REPL, _EXTERNAL, between="REPL"),
    "Brokers use a listener with another protocol": _plan(
        _with(_REPL, protocol=_SASL), _EXTERNAL, between="REPL"
    ),
    "INTERNAL changes its protocol, where there is another internal listener": _plan(
        _with(_INTERNAL, protocol=_SASL), _EXTERNAL, _REPL
    ),
    "INTERNAL changes its protocol, and is the only internal listener": _plan(
        _with(_INTERNAL, protocol=_SASL), _EXTERNAL
    ),
    "INTERNAL gets another name, and keeps its port": _plan(
        _with(_INTERNAL, "REPL"), _EXTERNAL, between="REPL"
    ),
    "A broker is added": _plan(_INTERNAL, _EXTERNAL, brokers=4),
    "The controllers get another port": _plan(_INTERNAL, _EXTERNAL, quorum=29192),
}
_BEFORE = {
    "Two listeners become one": _plan(_INTERNAL, _EXTERNAL, _with(_EXTERNAL, "OFFICE", 9192)),
    "INTERNAL changes its protocol, where there is another internal listener": _plan(
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
        steps = rehearsed(current, transition(current, wanted))
    except EarshotError as refusal:
        return f"## {title}\n\nRefused: {refusal.observed}.\n\nInstead: {refusal.remedy}.\n"
    restarts = sum(len(step.restarts) for step in steps)
    head = ("step", "restarts", "between brokers", "clients meanwhile", "clients after it")
    rows = [head, ("---",) * len(head), *(_row(*it) for it in enumerate(steps, start=1))]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return (
        f"## {title}\n\n{len(steps)} step{'s' * (len(steps) > 1)}, {restarts or 'no'} "
        f"restart{'s' * (restarts != 1)}.\n\n{table}\n"
    )


def _row(number: int, step: Rehearsed) -> Iterator[str]:
    yield f"{number}: {step.text}"
    yield ", ".join(map(str, step.restarts)) or "none"
    yield step.through
    for served in (step.meanwhile, step.after):
        yield "; ".join(f"{scope}: {', '.join(names) or 'none'}" for scope, names in served.items())


if __name__ == "__main__":
    sys.stdout.write(page())
