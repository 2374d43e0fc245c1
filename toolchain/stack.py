"""`make up`, `make down` and `make clean`: Pulumi commands, with checks before and after them."""

import argparse
import contextlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pulumi_python_host.orphans import end_orphans

from earshot.cli import run as earshot
from earshot.config.docker import DockerSpec
from earshot.config.document import Spec
from earshot.errors import EarshotError, remedy_of
from earshot.files import cache, umask
from earshot.files.stack_files import stack_name
from earshot.placement import plan_stack
from earshot.placement_registry import PLACEMENTS
from earshot.project import Project
from earshot.transition.change import Change
from toolchain.environment import variables
from toolchain.paths import ROOT, STATE
from toolchain.progress import exit_status, say
from toolchain.pulumi_cli import installation
from toolchain.pulumi_cli.installation import Origin
from toolchain.state_files import recover

SALT = re.compile(r"^encryptionsalt: .*\n?", re.MULTILINE)
SECRET = re.compile(r"^\s*secure: ", re.MULTILINE)
STATE_ROOM = 2**18
"""Bytes of the state of a few brokers and its copies."""


def main(arguments: Sequence[str]) -> int:
    """Runs one command and returns the exit status. An error is printed as one message."""
    parser = argparse.ArgumentParser(prog="python -m toolchain.stack", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "clean"))
    parser.add_argument("--stack", default="local", type=str)
    options = parser.parse_args(arguments)
    umask.restrict()

    def act() -> int:
        stack = Stack(stack_name("".join(options.stack)))  # argparse makes a list of `--`
        return {"up": stack.up, "down": stack.down, "clean": stack.clean}[options.command]()

    return exit_status(act, "the same command continues from here", "error: ")


class Stack:
    """One stack of this checkout, and the commands on it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.project = Project(ROOT)
        self.file = self.project.stack_file(name)
        self.environment = {**os.environ, **variables(name)}

    def up(self) -> int:
        """Check, refresh, update, validate, print the matrix."""
        self._from_template()
        self._check_needs()
        say(f"Checking {self.file.relative_to(ROOT)} ...")
        if code := self._earshot("plan"):
            return code
        former_run = self._run_id()
        say(f"Updating stack {self.name} ...")
        self._select()
        steps: tuple[str, ...] = ()
        while True:
            if code := self._update():
                return code
            former_steps, steps = steps, self._steps_left()
            if not steps:
                break
            if former_steps and len(steps) >= len(former_steps):
                raise EarshotError(
                    f"stack {self.name}, {steps[0]}",
                    observed="was not made, although the update succeeded",
                    remedy="run the same command again",
                )
            say(f"Updating stack {self.name}, {steps[0]} ...")
        if self._run_id() != former_run:
            return self._earshot("report")
        say("Nothing changed; validating what runs ...")
        return self._earshot("validate")

    def down(self) -> int:
        """Stop the brokers. Their data stays, unless the deployed stack has `data: delete`."""
        code = 0
        if self._exists():
            self._check_needs()
            code = self._pulumi("destroy", "--yes")
        if code == 0:  # otherwise another command may be changing the stack, with the same brokers
            self._stop_left_over()
        return code

    def clean(self) -> int:
        """Stop the brokers, forget the stack, remove its data."""
        from earshot_pulumi.local.data_root import remove

        code = self.down()
        if code == 0 and self._exists():
            code = self._pulumi("stack", "rm", "--yes", "--preserve-config")
        if code == 0:
            state = self.project.state_dir(self.name)
            self._make("remove_data", self.name, state, say)
            remove(state)
        return code

    def _update(self) -> int:
        self._make("repair", self.name, self.project.state_dir(self.name), say)
        # without a preview: the gate comes before any broker in the update as well
        return self._pulumi("up", "--yes", "--skip-preview", "--refresh", "--suppress-outputs")

    def _steps_left(self) -> tuple[str, ...]:
        """The remaining steps of the current change, a line per step."""
        if (spec := self._spec()) is None:
            return ()
        state = self.project.state_dir(self.name)
        return Change.of(state, plan_stack(spec, self.name, state).plan).lines

    def _check_needs(self) -> None:
        """Check the placement's needs before any resource is made."""
        self._make("check")
        if (spec := self._spec()) is None:
            return
        if PLACEMENTS[spec.placement].plugin:
            check_plugin(spec.placement, self.environment)
        if isinstance(spec, DockerSpec) and spec.provisioned:
            check_plugin("aws", self.environment)

    def _make(self, step: str, *arguments: object) -> None:
        """Call ``step`` of the module `make` in the placement's folder of components, if the stack
        has a file and the placement such a module. Raises EarshotError."""
        if (spec := self._spec()) is not None:
            name = f"earshot_pulumi.{spec.placement}.make"
            if importlib.util.find_spec(name) is not None:
                getattr(importlib.import_module(name), step)(spec, *arguments)

    def _spec(self) -> Spec | None:
        """The spec of the cluster; None if the stack has no file."""
        return self.project.read_cluster(self.name) if self.file.exists() else None

    def _earshot(self, command: str) -> int:
        # in this process: one interrupt, one handler
        os.chdir(ROOT)
        os.environ.update(self.environment)
        return earshot([command, "--stack", self.name])

    def _from_template(self) -> None:
        """Copy a missing stack file from the template with which the stack's name begins."""
        words = self.name.split("-")
        for count in range(len(words) - 1, 0, -1):
            template = self.project.stack_file("-".join(words[:count]))
            if not self.file.exists() and template.exists():
                say(f"Making {self.file.name} from the template {template.name} ...")
                cache.write(self.file, SALT.sub("", template.read_text()))

    def _select(self) -> None:
        self._refuse_unwritable_state()
        code = self._pulumi("stack", "select", "--create", quiet=True)
        if code != 0:
            raise EarshotError(
                f"stack {self.name}",
                observed=f"`pulumi stack select --create` ended with status {code} (see above)",
                remedy="check PULUMI_BACKEND_URL, `pulumi login` and PULUMI_CONFIG_PASSPHRASE",
            )

    def _refuse_unwritable_state(self) -> None:
        """Raises EarshotError if the disk has no room for a state: Pulumi would retry for 30 s."""
        if self.environment.get("PULUMI_BACKEND_URL") != STATE.as_uri():
            return
        try:
            STATE.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=STATE) as probe:
                probe.write(bytes(STATE_ROOM))
                probe.flush()
        except OSError as reason:
            raise EarshotError(
                f"Pulumi's state in {STATE}",
                observed=f"cannot be written ({reason.strerror})",
                remedy=remedy_of(reason) or "let this user write there",
            ) from None

    def _exists(self) -> bool:
        recover(self.environment, self.name)
        process = subprocess.run(
            ["pulumi", "stack", "ls", "--json"],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if process.returncode != 0:
            raise EarshotError(
                "the stacks of this project",
                observed=process.stderr.strip() or f"status {process.returncode}",
                remedy="check PULUMI_BACKEND_URL and `pulumi login`",
            )
        # without `stack_name`, which refuses names that stacks of other tools may have
        names = [str(stack["name"]).rpartition("/")[2] for stack in json.loads(process.stdout)]
        return self.name in names

    def _run_id(self) -> str:
        try:
            return str(json.loads(self.project.report_file(self.name).read_text())["run"])
        except (OSError, ValueError, KeyError):
            return ""

    def _pulumi(self, *words: str, quiet: bool = False) -> int:
        command = ["pulumi", *words, "--non-interactive", "--stack", self.name]
        recover(self.environment, self.name)
        content = self.file.read_bytes().decode() if self.file.exists() else None
        try:
            code = _run(command, self.environment, quiet)
        finally:
            self._remove_salt(content)
        if code < 0:  # a signal ended it
            end_orphans(self.environment, say)
        return code

    def _remove_salt(self, content: str | None) -> None:
        """Removes the salt from the stack file, and reverts the formatting that Pulumi has changed.

        ``content`` is that of the file before Pulumi ran. If it is None there was no file, and the
        one that Pulumi has written is removed.
        """

        def without_salt(new_content: bytes) -> bytes | None:
            text = _without_salt(content or "", new_content.decode())
            return None if text is None else text.encode()

        if content is not None:
            with contextlib.suppress(FileNotFoundError, UnicodeDecodeError):
                cache.rewrite(self.file, without_salt)
        elif self.file.exists() and _without_salt("", self.file.read_text(errors="replace")) == "":
            self.file.unlink()

    def _stop_left_over(self) -> None:
        """Stop brokers of an interrupted run that are not in Pulumi's state."""
        from earshot_pulumi.local.process import stop

        for directory in sorted(self.project.state_dir(self.name).glob("kafka/node-*")):
            if stop(directory, grace=3.0):
                say(f"Stopped {directory.name} of an interrupted run ...")


def check_plugin(name: str, environment: Mapping[str, str]) -> None:
    """Check that Pulumi has, or can download, its plugin ``name`` (docker, aws).

    Official CLIs download it. A CLI was built only if nothing could be downloaded. Raises
    EarshotError.
    """
    cli = installation.recorded()
    if cli.origin is not Origin.BUILT:
        return
    program = f"pulumi-resource-{name}"
    if shutil.which(program, path=environment.get("PATH")) is not None:
        return
    version = importlib.metadata.version(f"pulumi-{name}")
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    if (home / "plugins" / f"resource-{name}-v{version}").is_dir():
        return
    pulumi = cli.directory / "pulumi"
    install_command = f"PULUMI_HOME={home} {pulumi} plugin install resource {name} {version}"
    raise EarshotError(
        f"Pulumi's plugin {name} {version}",
        observed=f"is not in {home / 'plugins'}, and the CLI of this checkout does not download "
        "it: it was built here because Pulumi's sites could not be reached",
        remedy=f"if they can be reached now:\n    {install_command}\n"
        "  or copy the archive from another machine:\n"
        f"    {install_command} --file {program}-v{version}-{_platform()}.tar.gz",
    )


def _platform() -> str:
    """The name of this platform in the names of Pulumi's archives."""
    machine = platform.machine().lower()
    architectures = {"x86_64": "amd64", "aarch64": "arm64"}
    return f"{platform.system().lower()}-{architectures.get(machine, machine)}"


def _run(command: Sequence[str | Path], environment: dict[str, str], quiet: bool = False) -> int:
    """The exit code of ``command``, run in the foreground.

    On Ctrl-C and SIGTERM this waits for its end, and raises KeyboardInterrupt. A closed terminal
    has the same effect, unless nohup ignores SIGHUP.
    """
    ends_on_hangup = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL if quiet else None,
        # a terminal sends SIGHUP to the whole group, which would end Pulumi in the middle of an
        # update
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )
    interrupted = False

    def end(*_: object) -> None:
        nonlocal interrupted
        interrupted = True
        child.send_signal(signal.SIGINT)

    numbers = (signal.SIGTERM, signal.SIGHUP) if ends_on_hangup else (signal.SIGTERM,)
    handlers = {number: signal.signal(number, end) for number in numbers}
    try:
        while True:
            try:
                code = child.wait()
                break
            except KeyboardInterrupt:
                # the terminal signals the whole group: the child also gets it, cleans up and ends
                interrupted = True
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if interrupted:
        raise KeyboardInterrupt
    return code


def _without_salt(former_text: str, text: str) -> str | None:
    """``text`` of a stack file without the salt that Pulumi has added to ``former_text``.

    None if Pulumi has added no salt, or if the file has a secret that needs the salt. The result
    is ``former_text`` if all else differs only in white space. Otherwise the file was edited
    meanwhile, and only the salt's line is removed.
    """
    if SALT.search(former_text) or not SALT.search(text) or SECRET.search(text):
        return None
    saltless_text = SALT.sub("", text)
    return former_text if saltless_text.split() == former_text.split() else saltless_text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
