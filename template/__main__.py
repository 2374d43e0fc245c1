"""The cluster that this stack's file describes: names, gate, brokers, proof."""

import pulumi
from earshot_pulumi import stack_cluster

cluster = stack_cluster()
for name, value in cluster.exports().items():
    pulumi.export(name, value)
