"""The ports that the probes of a pod's container connect to before the pod is ready.

Source: the Kubernetes API reference, v1 Probe.
"""

import re
from collections.abc import Iterator, Mapping

from earshot.sources.pod_variables import as_map, list_of, text_in
from earshot.topology.cluster import ReadinessCheck

_KAFKA = re.compile(
    r"\bkafka-(?:broker-api-versions|topics|consumer-groups|configs|metadata-quorum|acls)\b.*?"
    r"--bootstrap-(?:server|controller)s?[= ][^\s,:]+:([0-9]{2,5})",
    re.ASCII | re.DOTALL,
)
_CONNECTION = re.compile(
    r"\bnc\b(?:\s+-\w+(?:\s+[0-9]{1,2})?)*\s+[\w.-]+\s+([0-9]{2,5})\b|/dev/tcp/[\w.-]+/([0-9]{2,5})\b",
    re.ASCII,
)


def readiness_checks(section: Mapping[str, object]) -> Iterator[ReadinessCheck]:
    """The readiness and startup probes of a container; both delay readiness."""
    ports = {
        text_in(port, "name"): text_in(port, "containerPort")
        for port in map(as_map, list_of(section.get("ports")))
        if text_in(port, "name")
    }
    for key in ("readinessProbe", "startupProbe"):
        probe = as_map(section.get(key))
        port = text_in(as_map(probe.get("tcpSocket")), "port")
        number = ports.get(port, port)
        if re.fullmatch(r"[0-9]{1,5}", number, re.ASCII):
            yield ReadinessCheck(int(number), is_kafka=False)
        words = list_of(as_map(probe.get("exec")).get("command"))
        text = " ".join(map(str, words))
        if match := _KAFKA.search(text):
            yield ReadinessCheck(int(match[1]), is_kafka=True)
        elif match := _CONNECTION.search(text):
            yield ReadinessCheck(int(match[1] or match[2]), is_kafka=False)
