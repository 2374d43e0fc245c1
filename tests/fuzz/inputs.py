"""The files of the tests' examples, each with some damage.

All choices come from one `random.Random`, so that a seed gives the same files on any machine.
"""

import json
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

from toolchain.paths import ROOT

EXAMPLES = ("tests/rules/examples", "tests/adopt/files")
MANIFESTS = "tests/kubernetes/cases"
SUFFIXES = (".yml", ".yaml", ".properties", ".env")
LINES = ("  <<: *a", "- &a [*a]", "x: &a {b: *a}", "\t- x", "---", "...", "services:",
         "kind: Kafka", "environment: [KAFKA_LISTENERS]", "ports: [9092-9090:1]",
         "a: !!python/none x", "? [1]: 2",
         "extends: {file: compose.yml, service: kafka}", "env_file: /dev/null",
         "include: [compose.yml]", "listeners=A://:9092,", "process.roles=\\",
         "command: >-", "apiVersion: v1", "kind: List",
         "# earshot: ignore=KL015", "# earshot: ignore=", "profiles: {}", "networks: {a: null}",
         "volumes: [.:/mnt/shared/config]", "image: apache/kafka:${V}", "hostname: ''")  # fmt: skip
SCALARS: tuple[Any, ...] = (
    None, True, 0, -1, 9092, 10**30, 1.5, float("nan"), "", " ", "0", "${", "${A}", "${A:-${B:-}}",
    "$$", "{{ x }}", "A://h:1", "A://:99999999999,B", "9092:9092", "1-65535:1-65535",
    "0.0.0.0:1:2", "[::1]:1", "é", "\x00", "\ud800", "x" * 5000, "a,b=c", "kafka", "host",
    "service:kafka", [], {},
    [None], {"a": None}, [[]], {"": ""}, {1: 2}, [{"name": "KAFKA_LISTENERS"}], "1e999",
    "2026-01-01",
)  # fmt: skip
CHARACTERS = "\t\n\r :-#&*!|>'\"%@`{}[],?$\\=0aÉ\x00\x85\u2028\ufeff"


class Input(NamedTuple):
    """A file as it would lie on disk."""

    name: str
    content: bytes


def inputs(seed: int, count: int) -> Iterator[Input]:
    """``count`` files."""
    random = Random(seed)
    for _ in range(count):
        name, text = random.choice(random.choice((_examples(), _others())))
        for _ in range(random.choice((1, 1, 1, 2, 3, 5))):
            text = random.choice(CHANGES)(text, random)
        content = text[:50_000].encode(errors="surrogatepass")
        if random.random() < 0.02:
            at = random.randrange(len(content) + 1)
            content = content[:at] + random.randbytes(3) + content[at:]
        yield Input(name, content)


@cache
def _examples() -> tuple[tuple[str, str], ...]:
    """Names by which lint knows the kinds of the files, and their texts."""
    files = [file for folder in EXAMPLES for file in sorted((ROOT / folder).rglob("*"))]
    return tuple(
        (f"server{file.suffix}" if file.suffix == ".properties" else "compose.yml", _text(file))
        for file in files
        if file.suffix in SUFFIXES
    )


@cache
def _others() -> tuple[tuple[str, str], ...]:
    """Names and texts of the other kinds of files."""
    from tests.checks.test_kubernetes import SERVICE, broker, client
    from tests.lint import test_ci_files as ci
    from tests.lint import test_manifests as manifests
    from tests.lint import test_script_files as scripts
    from tests.lint import test_task_files as tasks
    from tests.lint import test_terraform_files as terraform

    started = scripts.broker("kafka:9092", "--network net") + scripts.ui("--network net")
    module = terraform.broker("localhost:9092") + terraform.instance("kafka:9092")
    module += terraform.task("kafka:9092") + terraform.properties("${var.host}:9092")
    cases = sorted((ROOT / MANIFESTS).glob("*.yaml"))
    return (
        ("main.tf", module + terraform.ui("kafka:9092")),
        ("main.tf", terraform.NETWORK + terraform.MAP),
        ("cdk.tf.json", terraform.as_json("localhost:9093")),
        ("taskdef.json", json.dumps(tasks.task(), indent=1)),
        ("ci.yml", ci.github("localhost:9092", job=ci.IN_CONTAINER, step=ci.OTHER_CONTAINER)),
        ("ci.yml", ci.steps(ci.NET, ci.run("kafka:9092", "--network net"), ci.CLIENT_ON_NET)),
        (".gitlab-ci.yml", ci.gitlab("kafka:9092", "kafka:9092")),
        (".gitlab-ci.yml", ci.IN_SCRIPT),
        ("kafka.container", ci.unit("kafka:9092", "PublishPort=9092:9092")),
        ("start.sh", f"#!/bin/bash\n{scripts.NETWORK}{started}"),
        ("Makefile", "up:\n" + textwrap.indent(started, "\t")),
        ("kafka.yaml", "---\n".join((broker(), SERVICE, client("kafka:9092")))),
        ("kafka.yaml", manifests.STRIMZI),
        *(("kafka.yaml", file.read_text()) for file in cases),
    )


def _text(file: Path) -> str:
    return file.read_text()


def _cut(text: str, random: Random) -> str:
    """Removes some lines."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    return "\n".join(lines[:at] + lines[at + random.randint(1, 4) :])


def _repeat(text: str, random: Random) -> str:
    lines = text.split("\n")
    at, end = sorted((random.randrange(len(lines)), random.randrange(len(lines))))
    return "\n".join(lines[:end] + lines[at : at + 6] + lines[end:])


def _line(text: str, random: Random) -> str:
    """Another line, as deep as the one before it."""
    lines = text.split("\n")
    at = random.randrange(len(lines))
    depth = len(lines[at]) - len(lines[at].lstrip()) + random.choice((0, 0, 2, -2))
    lines.insert(at, " " * depth + random.choice(LINES))
    return "\n".join(lines)


def _indent(text: str, random: Random) -> str:
    lines = text.split("\n")
    at = random.randrange(len(lines))
    lines[at] = random.choice((f"  {lines[at]}", f" {lines[at]}", lines[at].lstrip()))
    return "\n".join(lines)


def _slip(text: str, random: Random) -> str:
    at = random.randrange(len(text) + 1)
    inserted_text = random.choice(CHARACTERS) * random.choice((1, 1, 1, 2, 50))
    return text[:at] + random.choice((inserted_text, "")) + text[at + random.randint(0, 2) :]


def _splice(text: str, random: Random) -> str:
    """One file up to some line, another from there on."""
    _, other_text = random.choice(random.choice((_examples(), _others())))
    first_end, second_start = random.randrange(len(text) + 1), random.randrange(len(other_text) + 1)
    return text[:first_end] + random.choice(("\n---\n", "\n", "")) + other_text[second_start:]


def _graft(text: str, random: Random) -> str:
    """Replaces a value in the document."""
    try:
        document = yaml.load(text, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return _slip(text, random)
    at, key = document, None
    while isinstance(at, dict | list) and at and random.random() < 0.8:
        key = random.choice(list(at) if isinstance(at, dict) else range(len(at)))
        parent, at = at, at[key]
    if key is None:
        return _line(text, random)
    parent[key] = random.choice(
        (*SCALARS, [at], {"a": at}, document if random.random() < 0.1 else at)
    )
    try:
        if text.startswith("{"):
            return json.dumps(document, default=str, indent=1)
        return str(yaml.dump(document, None, yaml.CSafeDumper, allow_unicode=random.random() < 0.5))
    except (yaml.YAMLError, ValueError, RecursionError):
        return text


CHANGES: tuple[Callable[[str, Random], str], ...] = (
    _cut, _repeat, _line, _indent, _slip, _splice, *[_graft] * 9,
)  # fmt: skip
