"""Random Compose topologies: listeners right, nearly right and wrong, on networks of every form."""

import random
from dataclasses import dataclass
from typing import Any

IMAGE = "confluentinc/cp-kafka:7.6.0"
"""The image of brokers in the file. On the engine every service runs `place.py`."""
Document = dict[str, Any]


@dataclass(frozen=True)
class Topology:
    """A Compose file as a document; ``machine`` is the address of the machine that it runs on."""

    seed: int
    document: Document
    machine: str


def topology(seed: int, machine: str, slot: int) -> Topology:
    """The topology of ``seed``, with ports of the machine that no other ``slot`` has."""
    return Topology(seed, Maker(random.Random(seed), seed, machine, slot).document(), machine)


class Maker:
    """Draws one topology."""

    image = IMAGE
    modes: tuple[str, ...] = ("",) * 85 + ("host",) * 8 + ("bridge",) * 7

    def __init__(self, chance: random.Random, seed: int, machine: str, slot: int) -> None:
        self.random = chance
        self.seed = seed
        self.machine = machine
        self.slot = slot
        self.next_port = 10_000 + slot * 100
        self.brokers = [f"kafka{i}" for i in range(1, chance.choice((1, 1, 2, 3)) + 1)]
        self.clients = [f"app{i}" for i in range(1, chance.choice((1, 2, 2, 3)) + 1)]
        self.keys = chance.choice((["default"], ["default"], ["front", "back"], ["front", "back"]))
        self.internal = {key for key in self.keys if chance.random() < 0.2}
        self.named_networks = {key for key in self.keys if chance.random() < 0.5}
        self.services: dict[str, Document] = {}
        self.listeners: dict[str, list[tuple[str, int]]] = {}
        self.extra_hosts: list[str] = []
        """Hosts beyond this machine that brokers may advertise and clients may have entries for."""
        self.has_fixed_addresses = chance.random() < 0.25
        self.ipv6 = chance.random() < 0.25

    def subnet(self, key: str) -> str:
        """The first two bytes and a half of the network's addresses."""
        return f"10.{100 + self.keys.index(key)}.{self.slot}"

    def prefix(self, key: str) -> str:
        """The first four parts of the network's IPv6 addresses."""
        return f"fd00:{100 + self.keys.index(key)}:{self.slot}:1"

    def document(self) -> Document:
        for number, name in enumerate(self.brokers, 1):
            self.services[name] = self.broker(name, number)
        for number, name in enumerate(self.clients, 1):
            self.services[name] = self.client(name, number)
        networks: Document = {}
        for key in self.keys:
            networks[key] = {"ipam": {"config": [{"subnet": f"{self.subnet(key)}.0/24"}]}}
            if self.ipv6:
                networks[key]["enable_ipv6"] = True
                networks[key]["ipam"]["config"].append({"subnet": f"{self.prefix(key)}::/64"})
            if key in self.internal:
                networks[key]["internal"] = True
            if key in self.named_networks:
                networks[key]["name"] = f"net{self.seed}{key}"
        return {"services": self.services, "networks": networks}

    def port(self) -> int:
        self.next_port += 1
        return self.next_port

    def broker(self, name: str, number: int) -> Document:
        service: Document = {"image": self.image}
        mode = self.random.choice(self.modes)
        if mode:
            service["network_mode"] = mode
        else:
            self.attach(service, name, number)
        if self.random.random() < 0.25:
            service["hostname"] = f"host-{name}"
        if self.random.random() < 0.25:
            service["container_name"] = f"box{self.seed}-{name}"
        listeners: list[str] = []
        advertised: list[str] = []
        ports: list[object] = []
        for position, listener in enumerate(("INNER", "OUTER")[: self.random.choice((1, 2, 2))]):
            bind = self.port() if mode == "host" else 9092 + 1000 * position
            listeners.append(f"{listener}://{self.bind(service, name)}:{bind}")
            outside = self.published(ports, bind, mode)
            host, port = self.advertised(name, service, bind, outside)
            advertised.append(f"{listener}://{host}:{port}")
            self.listeners.setdefault(name, []).append((host, port))
            self.listeners[name].append((name, bind))
            if outside:
                self.listeners[name].append(("localhost", outside))
        if ports and mode != "host":
            service["ports"] = ports
        service["environment"] = {
            "KAFKA_NODE_ID": str(number),
            "KAFKA_ZOOKEEPER_CONNECT": "zookeeper.test:2181",
            "KAFKA_LISTENERS": ",".join(listeners),
            "KAFKA_ADVERTISED_LISTENERS": ",".join(advertised),
            "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
            "KAFKA_INTER_BROKER_LISTENER_NAME": "INNER",
        }
        return service

    def attach(self, service: Document, name: str, number: int) -> None:
        """One network, or two; aliases, also one that several brokers have; fixed addresses."""
        keys = self.random.sample(self.keys, self.random.randint(1, len(self.keys)))
        networks: Document = {}
        for key in keys:
            network_config: Document = {}
            aliases = []
            if self.random.random() < 0.3:
                aliases.append(f"{name}.{key}.test" if self.random.random() < 0.3 else f"{name}-a")
            if self.random.random() < 0.15:
                aliases.append("brokers")
            if aliases:
                network_config["aliases"] = aliases
            if self.has_fixed_addresses:
                network_config["ipv4_address"] = f"{self.subnet(key)}.{100 + number}"
                if self.ipv6:
                    network_config["ipv6_address"] = f"{self.prefix(key)}::{100 + number}"
            networks[key] = network_config
        if keys != ["default"] or any(networks.values()):
            service["networks"] = networks

    def bind(self, service: Document, name: str) -> str:
        kinds = ["", "0.0.0.0", "127.0.0.1", "localhost", "[::]", "[::1]"]
        weights = [45, 40, 5, 3, *([10, 3] if self.ipv6 else [0, 0])]
        if not service.get("network_mode"):
            kinds.append(name)
            weights.append(7)
        return self.random.choices(kinds, weights)[0]

    def published(self, ports: list[object], bind: int, mode: str) -> int:
        """Publish a port in one of Compose's forms; the port of the machine, 0 where none is."""
        form = self.random.choices(
            (
                "no",
                "plain",
                "loopback",
                "any",
                "address",
                "range",
                "long",
                "random",
                "wrong",
                "six",
            ),
            (25, 30, 12, 5, 6, 5, 8, 4, 5, 6 if self.ipv6 else 0),
        )[0]
        if form == "no" or mode == "host":
            return 0
        outside = self.port()
        if form == "range":
            self.next_port += 1
            ports.append(f"{outside}-{outside + 1}:{bind}-{bind + 1}")
        elif form == "long":
            ports.append({"target": bind, "published": str(outside), "mode": "ingress"})
        elif form == "random":
            ports.append(str(bind))
        elif form == "wrong":
            ports.append(f"{outside}:{bind + 7}")
        else:
            address = {
                "plain": "", "loopback": "127.0.0.1:", "any": "0.0.0.0:",
                "address": f"{self.machine}:", "six": "[::1]:",
            }[form]  # fmt: skip
            ports.append(f"{address}{outside}:{bind}")
        return outside

    def advertised(self, name: str, service: Document, bind: int, outside: int) -> tuple[str, int]:
        hosts = [name, name, "localhost", "127.0.0.1", "host.docker.internal", self.machine]
        hosts += [self.random.choice(self.brokers), "nothing", "brokers", "kafka.example.com"]
        hosts += [str(service[key]) for key in ("hostname", "container_name") if key in service]
        hosts += self.extra_hosts
        for key, network_config in service.get("networks", {}).items():
            hosts += network_config.get("aliases", [])
            hosts += [network_config["ipv4_address"]] if "ipv4_address" in network_config else []
            hosts += (
                [f"[{network_config['ipv6_address']}]"] if "ipv6_address" in network_config else []
            )
            hosts.append(f"{name}.{key}")
            hosts += [f"{name}.net{self.seed}{key}"] if key in self.named_networks else []
        port = self.random.choice([bind, bind, outside or bind, outside or bind, 9999])
        return self.random.choice(hosts), port

    def client(self, name: str, number: int, mode: str | None = None) -> Document:
        """A client; ``mode`` is its `network_mode`, drawn without it."""
        service: Document = {"image": "example/app"}
        modes = [
            "",
            "host",
            "bridge",
            "none",
            *(f"service:{broker}" for broker in self.brokers[:1]),
        ]
        mode = self.random.choices(modes, (78, 6, 6, 2, 8))[0] if mode is None else mode
        if mode:
            service["network_mode"] = mode
        else:
            self.attach(service, name, 50 + number)
        if self.random.random() < 0.2 and not mode.startswith(("service", "none")):
            target = self.random.choice(
                ["host-gateway", self.machine, "127.0.0.1", *self.extra_hosts[:1]]
            )
            target = target if self.random.random() < 0.8 else f"{self.subnet(self.keys[0])}.101"
            host_names = [
                "host.docker.internal",
                "kafka.example.com",
                "kafka1",
                *self.extra_hosts[1:],
            ]
            host = self.random.choice(host_names)
            service["extra_hosts"] = [f"{host}:{target}"]
        if not mode and self.random.random() < 0.2:
            target = self.random.choice(self.brokers)
            if "network_mode" not in self.services[target]:
                service["links"] = [self.random.choice((target, f"{target}:linked"))]
        known_addresses = [broker for items in self.listeners.values() for broker in items]
        known_addresses += [("linked", 9092), ("brokers", 9092), ("host.docker.internal", 9999)]
        chosen = self.random.sample(
            known_addresses, min(len(known_addresses), self.random.choice((1, 1, 2)))
        )
        text = ",".join(f"{host}:{port}" for host, port in chosen)
        service["environment"] = {"KAFKA_BOOTSTRAP_SERVERS": text}
        return service
