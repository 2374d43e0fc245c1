"""Runs at one place of a topology: listens as its broker would, and tries addresses on demand.

Each listener greets with `SERVICE LISTENER`. Requests come in on a UNIX socket: one line of JSON,
a list of [host, port]; the answer is one line too, for each what it resolves to and who greeted.
Imports the standard library only: it also runs in containers that have nothing else.
"""

import json
import os
import re
import socket
import sys
import threading
import time
from pathlib import Path

SECONDS = 2.5
"""Maximum seconds of one connection, including the greeting."""
READY_SECONDS = 20
Greeting = str | None


def listen(service: str, name: str, host: str, port: int) -> None:
    """Accept and greet for good; an address that cannot be bound yet is tried again."""
    end = time.monotonic() + READY_SECONDS
    while True:
        try:
            if host in ("", "::"):
                family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
                server = socket.create_server(
                    ("", port), family=family, dualstack_ipv6=family is socket.AF_INET6, backlog=64
                )
            else:
                server = socket.create_server(
                    (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
                )
            break
        except OSError as error:
            if time.monotonic() > end:
                print(f"{name}://{host}:{port}: {error}", file=sys.stderr, flush=True)
                return
            time.sleep(0.1)
    while True:
        client, _ = server.accept()
        with client:
            try:
                client.sendall(f"{service} {name}\n".encode())
            except OSError:
                continue


def greeting(address: str, port: int) -> Greeting:
    """The greeting of a process at ``address``, or None."""
    try:
        with socket.create_connection((address, port), timeout=SECONDS) as connection:
            text = connection.makefile("r").readline().strip()
    except OSError:
        return None
    return text or None


def probed(host: str, port: int) -> dict[str, object]:
    """The greetings by address that the host resolves to."""
    try:
        address_infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        return {"error": str(error), "greetings": {}}
    addresses = list(dict.fromkeys(str(address_info[4][0]) for address_info in address_infos))
    return {"error": "", "greetings": {address: greeting(address, port) for address in addresses}}


def answer(connection: socket.socket) -> None:
    """One request and its answer."""
    with connection, connection.makefile("rw") as stream:
        addresses = [(str(host), int(port)) for host, port in json.loads(stream.readline())]
        answers: list[object] = [None] * len(addresses)

        def try_one(index: int) -> None:
            answers[index] = probed(*addresses[index])

        threads = [
            threading.Thread(target=try_one, args=(index,)) for index in range(len(addresses))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stream.write(json.dumps(answers) + "\n")
        stream.flush()


def main(folder: str, service: str) -> None:
    """Listen at KAFKA_LISTENERS, then answer requests until the process is ended."""
    for text in filter(None, os.environ.get("KAFKA_LISTENERS", "").split(",")):
        match = re.fullmatch(r"(\w+)://(.*):(\d+)", text)
        assert match is not None, text
        name, host, port = match.groups()
        arguments = (service, name, host.strip("[]"), int(port))
        threading.Thread(target=listen, args=arguments, daemon=True).start()
    with socket.socket(socket.AF_UNIX) as server:
        socket_path = Path(folder, f"{service or 'HOST'}.new")
        server.bind(str(socket_path))
        server.listen(16)
        socket_path.rename(socket_path.with_suffix(".sock"))
        while True:
            connection, _ = server.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
