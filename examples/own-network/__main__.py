"""A Kafka cluster on a Docker network of this program, and a client beside it.

Cost: none beyond this machine. Removal: `pulumi destroy`.
"""

import pulumi
import pulumi_docker as docker
from earshot_pulumi import DockerCluster

config = pulumi.Config()
image = config.get("image") or "apache/kafka:4.1.1"
port = config.get_int("port") or 9092
network = docker.Network("shop")

kafka = DockerCluster(
    "kafka",
    {
        "brokers": 1,
        "image": image,
        "network": network.name,
        "hosts": [{"engine": config.get("engine")}],
        "listeners": [
            {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
            {"name": "HOST", "port": port, "scopes": ["host"]},
        ],
        "validation": {"records": 0},
        "validator": {"base": config.get("base") or "debian:bookworm-slim"},
        "data": "delete",
    },
)
client = docker.Container(
    "client",
    image=image,
    entrypoints=["sleep"],
    command=["infinity"],
    envs=[kafka.bootstrap.apply(lambda addresses: f"BOOTSTRAP_SERVERS={addresses['INTERNAL']}")],
    networks_advanced=[docker.ContainerNetworksAdvancedArgs(name=network.name)],
    destroy_grace_seconds=1,
)

pulumi.export("bootstrap", kafka.bootstrap)
pulumi.export("network", network.name)
pulumi.export("client", client.name)
pulumi.export("proof", kafka.proof)
