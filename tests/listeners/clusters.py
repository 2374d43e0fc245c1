"""Hypothesis strategies for what a user may write and a placement may yield."""

from typing import Any

from hypothesis import strategies as st

from earshot.config.local import LocalSpec
from earshot.listeners.model import ClusterPlan
from earshot.listeners.owned import owner_of
from earshot.listeners.secrets import reveals
from earshot.listeners.terms import CLIENT_SCOPES, Protocol, Scope
from earshot.placement.plan import NodeNames, plan
from tests.config.read import read_local

_ALNUM = "abcdefghijklmnopqrstuvwxyz0123456789"

ports = st.integers(1, 65535)
labels = st.text(_ALNUM, min_size=1, max_size=12) | st.from_regex(
    r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True
)
dns_names = st.builds(
    ".".join, st.tuples(labels, labels, st.sampled_from(["example", "org", "internal", "x1"]))
)
addresses = st.ip_addresses().map(str).filter(lambda text: "%" not in text)
hosts = st.sampled_from(["localhost", "127.0.0.1", "::1"]) | dns_names | addresses

names = st.sampled_from(
    ["INTERNAL", "EXTERNAL", "LISTENER_BOB", "LISTENER_FRED", "LISTENER_ALICE", "PLAINTEXT", "X_1"]
) | st.from_regex(r"[A-Z][A-Z0-9_]{0,11}", fullmatch=True).filter(
    lambda name: name not in ("CONTROLLER", "QUORUM") and name not in list(Protocol)
)
protocols = st.sampled_from(list(Protocol))
scopes = st.lists(st.sampled_from(CLIENT_SCOPES), min_size=1, max_size=3, unique=True)

kafka_versions = st.sampled_from(["3.9.2", "4.0.0", "4.1.1", "4.3.1"])

property_keys = st.builds(
    lambda words, joints: "".join(
        word + joint for word, joint in zip(words, [*joints, ""], strict=True)
    ),
    st.lists(st.text(_ALNUM, min_size=1, max_size=6), min_size=3, max_size=3),
    st.lists(st.sampled_from("._-"), min_size=2, max_size=2),
).filter(lambda key: not owner_of(key) and not reveals(key, "x") and "kafka" not in key)
"""The script of apache/kafka 3 takes each `KAFKA_` out of a variable's name."""
property_values = st.text(
    st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="\\"), max_size=30
).map(str.strip)
"""What survives a properties file and an image's variables alike."""
odd_properties = st.dictionaries(property_keys, property_values, max_size=4)
any_properties = st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=4)
"""What only a properties file can hold."""


@st.composite
def documents(
    draw: st.DrawFn,
    *,
    versions: st.SearchStrategy[str] = kafka_versions,
    extra: st.SearchStrategy[dict[str, str]] = odd_properties,
    hosts: st.SearchStrategy[str] = hosts,
    listener_protocols: st.SearchStrategy[Protocol] = protocols,
) -> dict[str, Any]:
    """What may stand under `earshot:cluster`, and `read_spec` must take."""
    brokers = draw(st.integers(1, 5))
    listener_names = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    controller = draw(st.sampled_from(["CONTROLLER", "QUORUM"]))
    steps = draw(st.permutations(range(len(listener_names) + 1)))
    listeners: list[dict[str, Any]] = []
    for name, step in zip(listener_names, steps[1:], strict=True):
        listener: dict[str, Any] = {
            "name": name,
            "port": 9092 + 100 * step,
            "scopes": draw(scopes),
            "protocol": (
                Protocol(name) if name in list(Protocol) else draw(listener_protocols)
            ).value,
        }
        if draw(st.booleans()):
            listener["bind"] = draw(st.sampled_from(["0.0.0.0", "::", "10.1.2.3", "localhost"]))
        if draw(st.booleans()):
            ids = draw(st.sets(st.integers(1, brokers), max_size=2))
            key = draw(st.sampled_from([int, str]))
            listener["advertised"] = {
                key(id): f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                for id in sorted(ids)
                for host, port in [(draw(hosts), draw(ports))]
            }
        listeners.append(listener)
    if not any("internal" in item["scopes"] for item in listeners):
        listeners[draw(st.integers(0, len(listeners) - 1))]["scopes"].append("internal")
    mode = draw(st.sampled_from(["combined", "separate"]))
    counts = [1, 3, 5] if mode == "separate" else [n for n in (1, 3, 5) if n <= brokers]
    return {
        "placement": "local",
        "brokers": brokers,
        "kafka_version": draw(versions),
        "listeners": listeners,
        "inter_broker": draw(st.none() | st.sampled_from(listener_names)),
        "controllers": {
            "mode": mode,
            "count": draw(st.none() | st.sampled_from(counts)),
            "name": controller,
            "port": 9092 + 100 * steps[0],
            "protocol": draw(listener_protocols).value,
        },
        "extra": draw(extra),
    }


def provisioned(
    draw: st.DrawFn, spec: LocalSpec, hosts: st.SearchStrategy[str] = hosts
) -> dict[int, NodeNames]:
    """Names for every node of ``spec``, on one machine or on one each."""
    shared = draw(st.booleans())
    bind = draw(st.sampled_from([{}, {Scope.INTERNAL: "10.0.0.1"}, {Scope.CONTROLLER: "::1"}]))
    return {
        id: NodeNames(
            hosts={scope: draw(hosts) for scope in Scope},
            binds=bind,
            machine="this machine" if shared else "",
            port_offset=index if shared else 0,
            log_dir=draw(st.sampled_from(["/var/lib/kafka/data", f"/data/{id}", "/a,/b"])),
            rack=draw(st.sampled_from(["", "eu-central-1a"])),
        )
        for index, id in enumerate(spec.node_ids)
    }


@st.composite
def specs(draw: st.DrawFn) -> LocalSpec:
    return read_local(draw(documents()), "generated")


@st.composite
def plans(
    draw: st.DrawFn,
    document: st.SearchStrategy[dict[str, Any]] | None = None,
    hosts: st.SearchStrategy[str] = hosts,
) -> ClusterPlan:
    spec = read_local(draw(document if document is not None else documents()), "generated")
    return plan(spec, provisioned(draw, spec, hosts))
