"""A Kafka broker in a container, as programs had it before: nothing here comes from earshot."""

import pulumi
import pulumi_docker as docker

config = pulumi.Config()
host = config.get("host") or "localhost"
port = config.get_int("port") or 9092
image = docker.RemoteImage(
    "kafka", name=config.get("image") or "apache/kafka:4.1.1", keep_locally=True
)
network = docker.Network("kafka")
settings = {
    "CLUSTER_ID": "MkU3OEVBNTcwNTJENDM2Qk",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "INTERNAL://:19092,HOST://:9092,CONTROLLER://:9093",
    "KAFKA_ADVERTISED_LISTENERS": f"INTERNAL://kafka-1:19092,HOST://{host}:{port}",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": ",".join(
        f"{name}:PLAINTEXT" for name in ("INTERNAL", "HOST", "CONTROLLER")
    ),
    "KAFKA_INTER_BROKER_LISTENER_NAME": "INTERNAL",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@kafka-1:9093",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_HEAP_OPTS": "-Xmx256m",
    "KAFKA_LOG_CLEANER_DEDUPE_BUFFER_SIZE": "2097152",
}
broker = docker.Container(
    "broker",
    image=image.image_id,
    envs=[f"{name}={value}" for name, value in settings.items()],
    ports=[docker.ContainerPortArgs(internal=9092, external=port)],
    networks_advanced=[
        docker.ContainerNetworksAdvancedArgs(name=network.name, aliases=["kafka-1"])
    ],
)
pulumi.export("broker", broker.id)
