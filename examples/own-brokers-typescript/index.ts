// A Kafka broker in a container of your own; earshot computes, checks and proves its listeners.
// Cost: none beyond this machine. Removal: `pulumi destroy`.
import * as docker from "@pulumi/docker";
import * as earshot from "@pulumi/earshot";
import * as pulumi from "@pulumi/pulumi";

const config = new pulumi.Config();
const host = config.get("host") ?? "localhost";
const port = config.getNumber("port") ?? 9092;
const image = new docker.RemoteImage("kafka", {
    name: config.get("image") ?? "apache/kafka:4.1.1",
    keepLocally: true,
});
const network = new docker.Network("kafka");

const kafka = new earshot.Listeners("kafka", {
    vantage: "network",
    listeners: [
        { name: "INTERNAL", port: 19092, scopes: ["internal"] },
        { name: "HOST", port: 9092, scopes: ["host"] },
    ],
    nodes: {
        "1": {
            internal: "kafka-1",
            host: host,
            ports: { HOST: port },
            container: { names: ["kafka-1"], ports: { "9092": port } },
        },
    },
    extra: { "log.cleaner.dedupe.buffer.size": "2097152" },
});
const broker = new docker.Container("broker-1", {
    image: image.imageId,
    envs: kafka.envs.apply((byId) => [...byId["1"], "KAFKA_HEAP_OPTS=-Xmx256m"]),
    ports: [{ internal: 9092, external: port }],
    networksAdvanced: [{ name: network.name, aliases: ["kafka-1"] }],
});
const proof = new earshot.Proof(
    "proof",
    {
        contract: kafka.contract,
        after: [broker.id],
        scopes: ["host"],
        client: { "client.id": "proof-of-kafka" },
    },
    { dependsOn: [broker] },
);

export const bootstrap = kafka.bootstrap;
export const verdict = proof.verdict;
export const report = proof.report;
export const unproved = proof.unproved;
export const brokerId = broker.id;
