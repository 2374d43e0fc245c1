"""Which hosts a certificate is good for: ours against what clients of Java and OpenSSL say."""

import base64
import random
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from earshot.certificates.authority import IssuedCertificate
from earshot.certificates.names import SubjectNames
from earshot.jvm.java import find_java
from tests.certificates.handshakes import accepted, client_context, server_context
from tests.certificates.test_names import authority, plain, with_names

SEED = 20260504
CERTIFICATES = 300
HOSTS = 4
"""For each of them."""
_LABELS = (
    "a", "b1", "A", "x-y", "xn--bcher-kva", "XN--Bcher-kva", "kafka", "b_1", "com", "1", "co",
)  # fmt: skip
_ADDRESSES = ("10.0.0.1", "10.0.0.2", "::1", "0:0:0:0:0:0:0:1", "2001:db8::1", "2001:DB8::1")


def name(chance: random.Random, most: int = 4) -> str:
    return ".".join(chance.choice(_LABELS) for _ in range(chance.randint(1, most)))


def pattern(chance: random.Random) -> str:
    """What stands in a certificate: a name, an address, or a wildcard somewhere."""
    form = chance.random()
    if form < 0.15:
        return chance.choice(_ADDRESSES)
    if form < 0.45:
        return name(chance)
    if form < 0.85:
        return f"*.{name(chance, 3)}"
    odd = ("b*.{}", "*b.{}", "a.*.{}", "*.*.{}", "{}.*", "*{}", "{}.")
    return chance.choice(odd).format(name(chance, 2))


def host(chance: random.Random, patterns: Sequence[str]) -> str:
    """What a client asks for: mostly close to one of ``patterns``."""
    if not patterns or chance.random() < 0.2:
        return chance.choice((name(chance), chance.choice(_ADDRESSES)))
    near = chance.choice(patterns).replace("*", chance.choice(_LABELS))
    changes = (str, str.upper, str.swapcase, lambda it: f"{it}.", lambda it: f"a.{it}")
    if chance.random() < 0.5:
        near = chance.choice(changes)(near)
    return near if near.strip(".") else "a"


def cases(
    chance: random.Random, count: int
) -> Iterator[tuple[tuple[str, ...], IssuedCertificate, str]]:
    """Names, the certificate with them, and a host."""
    for _ in range(count):
        patterns = tuple(pattern(chance) for _ in range(chance.randint(0, 3)))
        made = with_names(patterns)
        for _ in range(HOSTS):
            yield patterns, made, host(chance, patterns)


def in_base64(pem: str) -> str:
    return "".join(line for line in pem.splitlines() if not line.startswith("-----"))


def java_accepts(
    listed: Sequence[tuple[object, IssuedCertificate, str]], folder: Path
) -> list[bool]:
    """What a Java client says of each, all of them in one JVM."""
    lines = [f"{in_base64(authority().certificate)} {in_base64(plain().key)}"]
    for _, made, asked in listed:
        reported = base64.b64encode(asked.encode()).decode()
        lines.append(f"{in_base64(made.certificate)} {reported}")
    file = folder / "cases.txt"
    file.write_text("\n".join(lines))
    source = Path(__file__).with_name("HostNames.java")
    done = subprocess.run(
        [str(find_java().executable), str(source), str(file)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [line == "1" for line in done.stdout.split()]


def compared(count: int, folder: Path) -> Mapping[tuple[bool, bool, bool], int]:
    """How often ours, OpenSSL and Java said what; fails where ours is not what both of them say."""
    listed = list(cases(random.Random(SEED), count))
    servers = {id(made): server_context(made) for _, made, _ in listed[::HOSTS]}
    client = client_context(authority())
    reported: Counter[tuple[bool, bool, bool]] = Counter()
    wrong = []
    for (patterns, made, asked), java in zip(listed, java_accepts(listed, folder), strict=True):
        ours = SubjectNames.of_hosts(patterns).covers(asked)
        openssl = accepted(client, servers[id(made)], asked)
        reported[ours, openssl, java] += 1
        if ours is not (openssl and java):
            wrong.append((patterns, asked, ours, openssl, java))
    assert wrong == [], wrong
    return reported


@pytest.mark.e2e
@pytest.mark.timeout(600)
def test_java_and_openssl_accept_what_is_covered(tmp_path: Path) -> None:
    reported = compared(CERTIFICATES, tmp_path)
    print(f"seed {SEED}: (covered, OpenSSL, Java): {dict(reported)}")
    assert reported[True, True, True] > CERTIFICATES // 10
    assert sum(reported.values()) == CERTIFICATES * HOSTS
