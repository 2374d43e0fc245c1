"""A Kafka broker in a container of your own; earshot computes, checks and proves its listeners.

Cost: none beyond this machine. Removal: `pulumi destroy`.
"""

import pulumi
import pulumi_docker as docker
from earshot_pulumi import Listeners, Proof

config = pulumi.Config()
host = config.get("host") or "localhost"
port = config.get_int("port") or 9092
image = docker.RemoteImage(
    "kafka", name=config.get("image") or "apache/kafka:4.1.1", keep_locally=True
)
network = docker.Network("kafka")

kafka = Listeners(
    "kafka",
    {
        "vantage": "network",
        "listeners": [
            {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
            {"name": "HOST", "port": 9092, "scopes": ["host"]},
        ],
        "nodes": {
            "1": {
                "internal": "kafka-1",
                "host": host,
                "ports": {"HOST": port},
                "container": {"names": ["kafka-1"], "ports": {"9092": port}},
            }
        },
        "extra": {"log.cleaner.dedupe.buffer.size": "2097152"},
    },
)
broker = docker.Container(
    "broker-1",
    image=image.image_id,
    envs=kafka.environment.apply(
        lambda by_id: (
            [f"{name}={value}" for name, value in by_id["1"].items()] + ["KAFKA_HEAP_OPTS=-Xmx256m"]
        )
    ),
    ports=[docker.ContainerPortArgs(internal=9092, external=port)],
    networks_advanced=[
        docker.ContainerNetworksAdvancedArgs(name=network.name, aliases=["kafka-1"])
    ],
)
proof = Proof(
    "proof",
    {
        "contract": kafka.contract,
        "after": [broker.id],
        "scopes": ["host"],
        "client": {"client.id": "proof-of-kafka"},
    },
    pulumi.ResourceOptions(depends_on=[broker]),
)

pulumi.export("bootstrap", kafka.bootstrap)
pulumi.export("verdict", proof.verdict)
pulumi.export("report", proof.report)
pulumi.export("unproved", proof.unproved)
pulumi.export("broker", broker.id)
