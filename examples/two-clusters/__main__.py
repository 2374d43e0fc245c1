"""Two Kafka clusters in one program, as processes of this machine.

Cost: none. Removal: `pulumi destroy`.
"""

import pulumi
from earshot_pulumi import LocalCluster, LocalClusterArgs

config = pulumi.Config()


def cluster(name: str, first_port: int) -> LocalClusterArgs:
    """One broker, with ports from ``first_port`` on; that for clients can be configured."""
    first_port = config.get_int(name) or first_port
    clients = config.get_int(f"{name}_clients") or first_port + 2
    return {
        "brokers": 1,
        "listeners": [
            {"name": "INTERNAL", "port": first_port, "scopes": ["internal"]},
            {"name": "CLIENTS", "port": clients, "scopes": ["host"]},
        ],
        "controllers": {"port": first_port + 1},
        "validation": {"records": config.get_int("records") or 0},
        "data": "delete",
    }


orders = LocalCluster("orders", cluster("orders", 21000))
after_orders = pulumi.ResourceOptions(depends_on=[orders])
audit = LocalCluster("audit", cluster("audit", 22000), after_orders)

for name, kafka_cluster in {"orders": orders, "audit": audit}.items():
    pulumi.export(f"{name}_bootstrap", kafka_cluster.bootstrap)
    pulumi.export(f"{name}_id", kafka_cluster.cluster_id)
    pulumi.export(f"{name}_proof", kafka_cluster.proof)
