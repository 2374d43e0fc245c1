"""`earshot tunnel`: makes a private cluster reachable from this machine, through another one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Final

from earshot.cli.output import emit
from earshot.cli.target import Target, target
from earshot.errors import EarshotError
from earshot.files.streams import to_stderr
from earshot.listeners.address import Address
from earshot.listeners.terms import Scope
from earshot.tunnel.tunnel import Tunnel, tunnel
from earshot.tunnel.via import FORMS, read_via
from earshot.validation.contract import ContractListener
from earshot.visible import visible

BOOTSTRAP_VARIABLE: Final = "EARSHOT_BOOTSTRAP"
COMMAND_SECONDS: Final = 5.0
_SWITCH: Final = "/etc/nsswitch.conf"
_HOSTS_FIRST: Final = "hosts: files dns\n"
_ENTER: Final = """
mount --bind "$1" /etc/hosts || exit 125
if [ -f "$2" ]; then mount --bind "$2" "$3" || exit 125; fi
shift 3
exec "$@"
"""
"""Mounts a hosts file with the brokers' names, and makes lookups read it first."""


def run(
    looked_at: tuple[str | None, str | None, str | None],
    way: str,
    listener: str | None,
    kind: str | None,
    port: int,
    command: Sequence[str],
) -> int:
    """Runs a tunnel until it is interrupted, or until ``command`` has ended; the exit code.

    ``looked_at`` is stack, contract and bootstrap. Raises EarshotError.
    """
    if not way:
        raise EarshotError("--via", observed="is not given", allowed=FORMS)
    via = read_via(way)
    run_target = target(*looked_at)
    chosen = _listener(run_target, listener)
    has_tls = chosen is not None and chosen.protocol.value.endswith("SSL")
    kind = kind or ("addresses" if has_tls else "ports")
    if kind == "ports" and has_tls and chosen is not None:
        raise EarshotError(
            "--as ports",
            observed=f"{chosen.name} is {chosen.protocol}, and nothing can be rewritten in it",
            allowed="--as addresses",
        )
    if kind == "addresses" and run_target.contract is None:
        raise EarshotError(
            "--as addresses",
            observed="only a contract has the names of all brokers",
            remedy="name a --stack or a --contract",
        )
    if kind == "addresses" and command:
        _check_mounts()
    brokers = _brokers(run_target, chosen)
    title = str(chosen.name) if chosen is not None else "brokers"
    seed = run_target.contract.cluster if run_target.contract is not None else ""
    if command:
        seed += f" {os.getpid()}"  # distinct names, as another tunnel may run at the same time
    first_port = port if kind == "ports" else None
    is_ready = asyncio.Event()

    async def work(folder: Path) -> int:
        async with tunnel(
            via, brokers, folder, _note, first=first_port, seed=seed, tls=has_tls
        ) as opened_tunnel:
            text = _addresses_text(opened_tunnel, title)
            if command:
                to_stderr(text)  # stdout is the command's
                return await _ended(opened_tunnel, command, folder)
            emit(f"{text}\n")
            is_ready.set()
            await asyncio.Event().wait()  # until it is cancelled
            return 0

    with tempfile.TemporaryDirectory(prefix="earshot-tunnel-") as name:
        return asyncio.run(_until_signal(work(Path(name)), is_ready))


async def _until_signal(work: Coroutine[None, None, int], is_ready: asyncio.Event) -> int:
    """The result of ``work``. If a signal ends it: 0 for a tunnel that was ready, else 128 and the
    signal's number."""
    loop = asyncio.get_running_loop()
    signal_future: asyncio.Future[int] = loop.create_future()

    def stop(number: int) -> None:
        if not signal_future.done():
            signal_future.set_result(number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            loop.add_signal_handler(number, stop, number)
    task = asyncio.ensure_future(work)
    await asyncio.wait({task, signal_future}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return 0 if is_ready.is_set() else 128 + signal_future.result()


async def _ended(opened_tunnel: Tunnel, command: Sequence[str], folder: Path) -> int:
    """Runs ``command``, which reaches the brokers by their names or ports; its exit code."""
    full_command = [*_with_names(opened_tunnel.hosts, folder), *command]
    try:
        process = await asyncio.create_subprocess_exec(
            *full_command, env={**os.environ, BOOTSTRAP_VARIABLE: opened_tunnel.bootstrap}
        )
    except OSError as fault:
        raise EarshotError(command[0], observed=fault.strerror or str(fault)) from None
    try:
        code = await process.wait()
    except asyncio.CancelledError:  # a terminal's Ctrl-C has reached it as well
        with contextlib.suppress(TimeoutError, ProcessLookupError):
            process.terminate()
            async with asyncio.timeout(COMMAND_SECONDS):
                await process.wait()
        if process.returncode is None:
            process.kill()
        raise
    return code if code >= 0 else 128 - code


def _with_names(hosts: Path | None, folder: Path) -> list[str]:
    """The prefix that runs a command with that hosts file mounted; empty without one."""
    if hosts is None:
        return []
    switch = folder / "nsswitch.conf"
    if Path(_SWITCH).exists():
        lines = Path(_SWITCH).read_text(errors="replace").splitlines(keepends=True)
        kept_lines = (line for line in lines if not line.lstrip().startswith("hosts:"))
        switch.write_text("".join([*kept_lines, _HOSTS_FIRST]))
    arguments = [str(hosts), str(switch), _SWITCH]
    return [*_unshare(), "sh", "-c", _ENTER, "sh", *arguments]


def _unshare() -> list[str]:
    if os.geteuid() == 0:
        return ["unshare", "--mount", "--propagation", "private", "--"]
    return ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "--"]


def _check_mounts() -> None:
    """Raises EarshotError if this machine does not allow a command separate mounts."""
    why = "there is no unshare on PATH"
    if shutil.which("unshare") is not None:
        trial = [*_unshare(), "sh", "-c", "mount --bind /etc/hosts /etc/hosts"]
        process = subprocess.run(trial, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if process.returncode == 0:
            return
        why = process.stderr.strip() or "unshare failed"
    raise EarshotError(
        "a COMMAND with --as addresses",
        observed=f"needs Linux and a mount namespace: {why}",
        remedy="start the tunnel without COMMAND, and give its file of hosts to the JVM "
        "(-Djdk.net.hosts.file=FILE), or its lines to /etc/hosts",
    )


def _listener(target: Target, name: str | None) -> ContractListener | None:
    """The listener of the tunnel; None without a contract. Raises EarshotError."""
    if target.contract is None:
        if name is not None:
            raise EarshotError("--listener", observed="needs a --stack or a --contract")
        return None
    listeners = {str(listener.name): listener for listener in target.contract.listeners}
    if name is not None:
        if name not in listeners:
            allowed = ", ".join(listeners)
            raise EarshotError("--listener", observed=f"found {name!r}", allowed=allowed)
        return listeners[name]
    for scope in (Scope.EXTERNAL, Scope.INTERNAL):
        usable = [
            listener
            for listener in target.contract.listeners
            if scope in listener.scopes and not listener.leaving
        ]
        if len(usable) == 1:
            return usable[0]
        if usable:
            allowed = ", ".join(str(listener.name) for listener in usable)
            raise EarshotError("--listener", observed="is not given", allowed=allowed)
    raise EarshotError(
        "--contract", observed="has no listener for clients on other machines", allowed="one"
    )


def _brokers(target: Target, chosen: ContractListener | None) -> list[Address]:
    """The brokers' addresses for the tunnel; those of --bootstrap are first."""
    if target.contract is None or chosen is None:
        return list(target.bootstrap)
    ordered = sorted(target.contract.brokers, key=lambda broker: broker.id)
    return [
        broker.advertised[chosen.name].address
        for broker in ordered
        if chosen.name in broker.advertised
    ]


def _addresses_text(opened_tunnel: Tunnel, title: str) -> str:
    """The local addresses as text."""
    lines = [f"{title} through {opened_tunnel.via.text}"]
    width = max(len(str(route.local)) for route in opened_tunnel.routes)
    for route in opened_tunnel.routes:
        if route.broker is None:
            lines.append(f"  {route.local!s:<{width}}  bootstrap")
            continue
        why = opened_tunnel.problems.get(route.broker)
        state = f"  NOT REACHED: {why}" if why else ""
        lines.append(f"  {route.local!s:<{width}}  {route.broker}{state}")
    lines.append(f"clients: bootstrap.servers={opened_tunnel.bootstrap}")
    if opened_tunnel.hosts is not None:
        lines.append(
            f"names: in {opened_tunnel.hosts}; for a JVM -Djdk.net.hosts.file={opened_tunnel.hosts}"
        )
    lines.append("ready; Ctrl-C ends it")
    return "\n".join(map(visible, lines))


def _note(text: str) -> None:
    to_stderr(visible(text))
