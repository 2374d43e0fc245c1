"""Two Kafka clusters in one program, as processes of this machine.

Cost: none. Removal: `pulumi destroy`.
"""

import pulumi
from earshot_pulumi import LocalCluster, LocalClusterArgs

config = pulumi.Config()


def cluster(name: str, first: int) -> LocalClusterArgs:
    """One broker, with ports from ``first`` on; that for clients can be configured."""
    first = config.get_int(name) or first
    clients = config.get_int(f"{name}_clients") or first + 2
    return {
        "brokers": 1,
        "listeners": [
            {"name": "INTERNAL", "port": first, "scopes": ["internal"]},
            {"name": "CLIENTS", "port": clients, "scopes": ["host"]},
        ],
        "controllers": {"port": first + 1},
        "validation": {"records": config.get_int("records") or 0},
        "data": "delete",
    }


orders = LocalCluster("orders", cluster("orders", 21000))
after = pulumi.ResourceOptions(depends_on=[orders])
audit = LocalCluster("audit", cluster("audit", 22000), after)

for name, made in {"orders": orders, "audit": audit}.items():
    pulumi.export(f"{name}_bootstrap", made.bootstrap)
    pulumi.export(f"{name}_id", made.cluster_id)
    pulumi.export(f"{name}_proof", made.proof)
