"""The racks of brokers, and of the replicas of a new topic: `python -m tests.e2e.racks FILE TOPIC`.

FILE holds librdkafka's settings as JSON. The topic gets twelve partitions with two replicas each.
"""

import json
import sys
import time
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS = 12
KNOWN_SECONDS = 30.0


def main(file: str, topic: str) -> None:
    admin = AdminClient(json.loads(Path(file).read_text()))
    admin.create_topics([NewTopic(topic, PARTITIONS, 2)])[topic].result(30)
    nodes = admin.describe_cluster(request_timeout=30).result(30).nodes
    racks = {node.id: node.rack for node in nodes}
    end = time.monotonic() + KNOWN_SECONDS
    while (
        len(partitions_by_id := admin.list_topics(topic, 30).topics[topic].partitions) < PARTITIONS
    ):
        assert time.monotonic() < end, partitions_by_id
        time.sleep(0.2)
    partitions = [
        [racks[id] for id in partition.replicas] for partition in partitions_by_id.values()
    ]
    print(json.dumps({"racks": racks, "partitions": partitions}))


if __name__ == "__main__":
    main(*sys.argv[1:])
