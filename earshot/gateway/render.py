"""Renders routes as configuration of HAProxy or nginx, or as JSON for other gateways.

TLS is forwarded unchanged: the gateway reads the server name of a client, and has no certificate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from operator import attrgetter

from earshot.gateway.routes import Route

CONNECT_SECONDS = 10
HELLO_SECONDS = 5
CHECK_SECONDS = 5


class Software(StrEnum):
    """The format of the configuration."""

    HAPROXY = "haproxy"
    NGINX = "nginx"
    JSON = "json"


def render(routes: Sequence[Route], software: Software, title: str) -> str:
    """The configuration of a gateway with ``routes``. ``title`` is one line about the cluster."""
    if software is Software.JSON:
        return json.dumps([_as_json(route) for route in routes], indent=2) + "\n"
    head = (
        f"# {title}, by `earshot gateway`.\n"
        "# After a change of brokers or listeners, write it again and reload the gateway, which\n"
        "# looks the brokers' names up when it starts.\n"
    )
    lines = _haproxy(routes) if software is Software.HAPROXY else _nginx(routes)
    return head + "\n".join(lines) + "\n"


def _as_json(route: Route) -> dict[str, object]:
    brokers = [
        {"id": backend.broker, "host": backend.address.host, "port": backend.address.port}
        for backend in route.backends
    ]
    return {
        "listener": route.listener,
        "port": route.port,
        "server_name": route.name or None,
        "bootstrap": route.is_bootstrap,
        "brokers": brokers,
        "idle_seconds": route.idle_seconds,
    }


def _by_port(routes: Sequence[Route]) -> Iterator[tuple[int, list[Route]]]:
    for port, of_port in groupby(sorted(routes, key=attrgetter("port")), key=attrgetter("port")):
        yield port, list(of_port)


def _idle(routes: Sequence[Route]) -> int:
    return min(route.idle_seconds for route in routes)


def _haproxy(routes: Sequence[Route]) -> Iterator[str]:
    yield "global"
    yield "    log stderr format raw daemon notice"
    yield ""
    yield "defaults"
    yield "    mode tcp"
    yield "    log global"
    yield "    option clitcpka"
    yield "    option srvtcpka"
    yield f"    timeout connect {CONNECT_SECONDS}s"
    yield f"    default-server check inter {CHECK_SECONDS}s"
    for port, of_port in _by_port(routes):
        yield ""
        yield f"frontend port-{port}"
        yield f"    bind :{port}"
        yield f"    timeout client {_idle(of_port)}s"
        if not of_port[0].name:
            yield f"    default_backend {of_port[0].label}"
            continue
        yield f"    tcp-request inspect-delay {HELLO_SECONDS}s"
        yield "    tcp-request content accept if { req.ssl_hello_type 1 }"
        yield "    tcp-request content reject"
        for route in of_port:
            yield f"    use_backend {route.label} if {{ req.ssl_sni -i {route.name} }}"
        yield "    # without a default backend, other names are refused"
    for route in routes:
        yield ""
        yield f"backend {route.label}"
        yield f"    timeout server {route.idle_seconds}s"
        for backend in route.backends:
            yield f"    server broker-{backend.broker} {backend.address}"


def _nginx(routes: Sequence[Route]) -> Iterator[str]:
    yield "# at the top level of nginx.conf, with the module ngx_stream"
    yield "stream {"
    yield "    map_hash_bucket_size 512;  # for long names"
    yield f"    map_hash_max_size {max(2048, 8 * len(routes))};"
    yield f"    proxy_connect_timeout {CONNECT_SECONDS}s;"
    yield "    proxy_socket_keepalive on;"
    yield f"    preread_timeout {HELLO_SECONDS}s;"
    for route in routes:
        yield f"    upstream {route.label} {{"
        yield from (f"        server {backend.address};" for backend in route.backends)
        yield "    }"
    for port, of_port in _by_port(routes):
        target = of_port[0].label
        if of_port[0].name:
            target = f"$backend_{port}"
            yield f"    map $ssl_preread_server_name {target} {{"
            yield from (f"        {route.name} {route.label};" for route in of_port)
            yield "        # without a default, other names are refused"
            yield "    }"
        yield "    server {"
        yield f"        listen {port} so_keepalive=on;"
        yield f"        proxy_timeout {_idle(of_port)}s;"
        if of_port[0].name:
            yield "        ssl_preread on;"
        yield f"        proxy_pass {target};"
        yield "    }"
    yield "}"
