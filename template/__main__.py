"""The cluster that this stack's file describes: names, gate, brokers, proof."""

from earshot_pulumi.program import deploy

deploy()
