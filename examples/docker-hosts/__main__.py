"""Two Docker hosts on EC2, and Kafka brokers in containers on them, in one update.

Cost: two m7g.large instances, two times 116 GiB of gp3 and a NAT gateway, at the prices of your
region. Removal: `pulumi config set protected false`, `pulumi up`, `pulumi destroy`.
"""

import pulumi
from earshot_pulumi import DockerCluster, DockerHosts

config = pulumi.Config()
region = config.require("region")

machines = DockerHosts(
    "machines",
    {
        "host_zones": {"a": f"{region}a", "b": f"{region}b"},
        "deployers": {"here": config.require("here")},
        "cidr": config.get("cidr") or "10.0.0.0/16",
        "volume": {"size_gib": config.get_int("gib") or 100},
        "instances": config.get_object("instances") or {},
        # in ECR, such as 123456789012.dkr.ecr.eu-central-1.amazonaws.com/kafka:4.1.1
        "images": config.get_object("images") or [],
        "data": config.get("data") or "keep",
        "ready_seconds": config.get_int("ready") or 900,
        "deletion_protection": config.get_bool("protected") is not False,
    },
)
kafka = DockerCluster(
    "kafka",
    {
        "hosts": machines.hosts,
        "brokers": 2,
        "image": config.get("image") or "apache/kafka:4.1.1",
        "validation": {"records": 0},
        "validator": {"base": config.get("base") or "debian:bookworm-slim"},
        "data": config.get("data") or "keep",
        "policy": config.get_object("policy") or {},
    },
)

pulumi.export("engines", machines.versions)
pulumi.export("instances", machines.instance_ids)
pulumi.export("hosts", machines.hosts)
pulumi.export("bootstrap", kafka.bootstrap)
pulumi.export("proof", kafka.proof)
