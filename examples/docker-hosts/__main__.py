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
        "deletion_protection": config.get_bool("protected") is not False,
        **(config.get_object("machines") or {}),
    },
)
kafka = DockerCluster(
    "kafka", {"hosts": machines.hosts, "brokers": 2, **(config.get_object("kafka") or {})}
)

pulumi.export("engines", machines.versions)
pulumi.export("instances", machines.instance_ids)
pulumi.export("hosts", machines.hosts)
pulumi.export("bootstrap", kafka.bootstrap)
pulumi.export("proof", kafka.proof)
