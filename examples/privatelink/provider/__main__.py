"""Kafka brokers that other VPCs and accounts reach through an endpoint service.

Cost: README.md of examples/privatelink. Removal: first the consumers' stacks, then
`pulumi config set protected false`, `pulumi up`, `pulumi destroy`.
"""

import pulumi
from earshot_pulumi import AwsCluster

config = pulumi.Config()
region = config.require("region")

kafka = AwsCluster(
    "kafka",
    {
        "region": region,
        "brokers": config.get_int("brokers") or 3,
        "vpc": {"zones": [f"{region}{letter}" for letter in "abc"]},
        "listeners": [
            {"name": "INTERNAL", "port": 19092, "scopes": ["internal"]},
            {
                "name": "PARTNERS",
                "port": 9094,
                "scopes": ["external"],
                "protocol": config.get("protocol") or "SASL_SSL",
                "address": {"strategy": "port", "base_port": 9100},
            },
        ],
        "security": config.get_object("security"),
        "clear_text": config.get_object("clear_text") or {},
        "expose": {
            "kind": "privatelink",
            "name": config.require("name"),
            "principals": config.get_object("principals") or {},
            "acceptance": config.get("acceptance") or "required",
        },
        "archive": {"url": config.require("archive"), "sha512": config.require("sha512")},
        "data": config.get("data") or "keep",
        "deletion_protection": config.get_bool("protected") is not False,
        "policy": config.get_object("policy") or {},
    },
)

pulumi.export("contract", kafka.contract)
pulumi.export("endpoint_service", kafka.endpoint_service)
