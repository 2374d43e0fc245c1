"""Evidence for the names of 1,000 brokers, some listeners each, from a DNS server of the run.

Run by itself (`python -m bench.names LISTENERS SERVER TIMEOUT`) it prints what it took as JSON: a
process of its own tells its memory.
"""

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace

from earshot.config.document import read_spec
from earshot.listeners.terms import Scope
from earshot.names.evidence import EvidenceKind, gather
from earshot.names.policy import ResolverPolicy
from earshot.placement.plan import NodeNames, plan
from toolchain.paths import ROOT

BROKERS = 1000


@dataclass(frozen=True)
class Measurement:
    """Time and memory of one batch of names in its own process, without the process's start."""

    seconds: float
    megabytes: int
    """The most memory that the process had."""
    live: int
    """Names with evidence from the server."""


def measure(listeners: int, server: str, timeout: float) -> Measurement:
    """Measures ``listeners`` of each broker, with ``timeout`` seconds at most for all."""
    command = [sys.executable, "-m", "bench.names", str(listeners), server, str(timeout)]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        sys.exit(
            f"{' '.join(command)} ended with {completed.returncode}:\n{completed.stderr[-2000:]}"
        )
    return Measurement(**json.loads(completed.stdout))


def main(count: int, server: str, timeout: float) -> None:
    ids = range(1, BROKERS + 1)
    listeners = [
        {
            "name": f"L{number}",
            "port": 9092 + number,
            "scopes": ["external" if number else "internal"],
            "advertised": {id: f"listener{number}-{id}.example.com" for id in ids},
        }
        for number in range(count)
    ]
    document = {"placement": "local", "brokers": BROKERS, "listeners": listeners}
    spec = read_spec(document | {"controllers": {"count": 3}}, "bench")
    address = NodeNames(hosts=dict.fromkeys(Scope, "192.0.2.1"))
    cluster_plan = plan(spec, {id: replace(address, machine=str(id)) for id in spec.node_ids})
    policy = ResolverPolicy(resolvers=dict.fromkeys(Scope, (server,)), timeout=timeout)
    start_time = time.perf_counter()
    evidence = gather(cluster_plan, policy, "local")
    seconds = time.perf_counter() - start_time
    evidence_of_names = [
        name_evidence for (_, _, host), name_evidence in evidence.items() if not host[0].isdigit()
    ]
    assert len(evidence_of_names) == BROKERS * count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    live = sum(name_evidence.kind is EvidenceKind.LIVE for name_evidence in evidence_of_names)
    print(json.dumps(asdict(Measurement(seconds, peak, live))))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
