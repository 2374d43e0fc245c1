"""Jars by Maven coordinates, through the Ivy that PySpark ships: no Maven needed.

Each set of jars has a folder in the per-user cache, with a manifest of sizes and SHA-256 sums. A
set that differs from its manifest is fetched again. Ivy compares each download with the
repository's published checksums.
"""

from __future__ import annotations

import errno
import hashlib
import importlib.metadata
import json
import logging
import os
import re
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from earshot.errors import EarshotError, remedy_of
from earshot.extras import folder_of
from earshot.files import cache
from earshot.jvm.java import find_java, jvm_environment

KAFKA_VERSION = "4.1.1"
SCALA = "2.13"
# SLF4J 1.x bindings, without which a broker logs nothing
LOG4J_BINDING = "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3"
RELOAD4J_BINDING = "org.slf4j:slf4j-reload4j:1.7.36"
# dependencies of the connector that PySpark already has
SHIPPED_WITH_PYSPARK = (
    "com.google.code.findbugs:jsr305",
    "org.apache.hadoop:hadoop-client-api",
    "org.apache.hadoop:hadoop-client-runtime",
    f"org.apache.spark:spark-tags_{SCALA}",
    "org.lz4:lz4-java",
    f"org.scala-lang.modules:scala-parallel-collections_{SCALA}",
    "org.scala-lang:scala-library",
    "org.slf4j:slf4j-api",
    "org.xerial.snappy:snappy-java",
)
# Spark's own variable for a mirror of Maven's central repository
REPOSITORY_VARIABLE = "DEFAULT_ARTIFACT_REPOSITORY"
ATTEMPTS = 3
FULL = (errno.ENOSPC, errno.EDQUOT)
ATTEMPT_SECONDS = 600
MANIFEST = "manifest.json"
FETCH = "python -m earshot.jvm jars"
_NOT_FOUND = re.compile(r":: ([^#\s]+)#([^;\s]+);(\S+): not found")
_NO_ANSWER = re.compile(r"SERVER ERROR|Server access error|Host \S+ not found|Exception|timed out")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Coordinate:
    """A module of a Maven repository; without a version, all versions of it."""

    group: str
    artifact: str
    version: str = ""

    @classmethod
    def parse(cls, text: str) -> Coordinate:
        """The coordinate ``group:artifact:version`` or ``group:artifact``; raises EarshotError."""
        fields = text.split(":")
        if len(fields) not in (2, 3) or not all(fields):
            raise EarshotError(
                "Maven coordinate", observed=repr(text), allowed="group:artifact[:version]"
            )
        return cls(*fields)


def kafka_broker_jars(version: str = KAFKA_VERSION, *, fetching: bool = True) -> tuple[Path, ...]:
    """A broker's class path: Apache Kafka ``version`` with a logging binding."""
    major = version.partition(".")[0]
    binding = LOG4J_BINDING if major.isdigit() and int(major) >= 4 else RELOAD4J_BINDING
    kafka = f"org.apache.kafka:kafka_{SCALA}:{version}"
    return fetch(f"kafka-{version}", [kafka, binding], fetching=fetching)


def spark_connector_jars(*, fetching: bool = True) -> tuple[Path, ...]:
    """The four jars that PySpark lacks to read and write Kafka, for the PySpark installed here."""
    folder_of("pyspark", "jars of Spark's connector")
    version = importlib.metadata.version("pyspark")
    connector = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version}"
    name = f"spark-kafka-{version}"
    return fetch(name, [connector], excludes=SHIPPED_WITH_PYSPARK, fetching=fetching)


def class_path(jars: Iterable[Path]) -> str:
    """``jars`` as a class path. Raises EarshotError if a path contains the separator."""
    return _joined(jars, os.pathsep, "Java's class path")


def spark_jars(jars: Iterable[Path]) -> str:
    """``jars`` for `spark.jars`. Raises EarshotError if a path contains the separator."""
    return _joined(jars, ",", "Spark's `spark.jars`")


def _joined(jars: Iterable[Path], separator: str, list_name: str) -> str:
    paths = [str(path) for path in jars]
    for path in paths:
        if separator in path:
            raise EarshotError(
                f"jar {path}",
                observed=f"its path has a {separator}, which ends an entry of {list_name}",
                remedy="put it into another folder; earshot's own follow XDG_CACHE_HOME",
            )
    return separator.join(paths)


def fetch(
    name: str, coordinates: Sequence[str], excludes: Sequence[str] = (), *, fetching: bool = True
) -> tuple[Path, ...]:
    """The jars of ``coordinates`` and their dependencies, sorted; fetched if not cached.

    The folder in the cache is ``name`` with a digest of the arguments. Several processes may call
    this at the same time. Raises EarshotError if the repository has no such module, after
    ``ATTEMPTS`` other failures, if the jars are not cached and ``fetching`` is false, or if the
    cache cannot be written.
    """
    parsed_coordinates = [Coordinate.parse(text) for text in coordinates]
    excluded = [Coordinate.parse(text) for text in excludes]
    digest = hashlib.sha256(repr((parsed_coordinates, excluded)).encode()).hexdigest()[:8]
    folder = cache.root() / "jars" / f"{name}-{digest}"
    if fetching:
        try:
            cache.ensure(
                folder, lambda fresh: _fetch(parsed_coordinates, excluded, fresh), _is_intact
            )
        except OSError as reason:
            raise EarshotError(
                f"jars of {name}",
                observed=f"cannot be kept in {folder.parent} ({reason.strerror or reason})",
                remedy=(remedy_of(reason) if reason.errno in FULL else "")
                or "let XDG_CACHE_HOME name a folder, absolute, that this user can write",
            ) from None
    elif not _is_intact(folder):
        raise EarshotError(f"jars of {name}", observed="not cached", remedy=FETCH)
    return tuple(sorted(folder.glob("*.jar")))


def _fetch(coordinates: list[Coordinate], excluded: list[Coordinate], folder: Path) -> None:
    work = folder / "ivy"
    work.mkdir()
    settings, module = work / "settings.xml", work / "ivy.xml"
    settings.write_text(_settings_file(work / "cache"))
    module.write_text(_module_file(coordinates, excluded))
    subject = "jars of " + ", ".join(
        f"{coordinate.group}:{coordinate.artifact}:{coordinate.version}"
        for coordinate in coordinates
    )
    command: list[str | Path] = [
        find_java().executable, "-jar", _ivy_jar(subject), "-settings", settings, "-ivy", module,
        "-confs", "default", "-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]",
    ]  # fmt: skip
    mirror, problem = "a mirror of Maven's central repository", ""
    for attempt in range(1, ATTEMPTS + 1):
        output = _run_ivy(command)
        if missing_jars := _missing_jars(output or ()):
            observed = f"the repository has no {', '.join(missing_jars)}"
            remedy = f"check the version; {mirror} may be named in {REPOSITORY_VARIABLE}"
            raise EarshotError(subject, observed=observed, remedy=remedy)
        if any(os.strerror(errno.ENOSPC) in line for line in output or ()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
        problem = _first_damaged(folder) if output is None else _failure_text(output)
        if not problem:
            break
        log.warning("attempt %d of %d failed: %s", attempt, ATTEMPTS, problem.splitlines()[-1])
        shutil.rmtree(work / "cache", ignore_errors=True)  # an incomplete one fails again
        for jar in folder.glob("*.jar"):
            jar.unlink()
    else:
        remedy = f"check the network, or name {mirror} in {REPOSITORY_VARIABLE}"
        raise EarshotError(subject, observed=problem, remedy=remedy)
    shutil.rmtree(work)
    (folder / MANIFEST).write_text(json.dumps(_describe(folder), indent=2) + "\n")


def _run_ivy(command: Sequence[str | Path]) -> list[str] | None:
    """Runs Ivy and logs its output. Returns the output if Ivy failed, else None."""
    lines = []
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=jvm_environment(),
        text=True,
    ) as ivy:
        assert ivy.stdout is not None
        deadline = threading.Timer(ATTEMPT_SECONDS, ivy.kill)
        deadline.start()
        try:
            for line in ivy.stdout:
                if line.strip(" .\n"):  # dots show progress
                    log.info("%s", line.strip())
                    lines.append(line.strip())
        finally:
            deadline.cancel()
    return None if ivy.returncode == 0 else lines or [f"status {ivy.returncode}"]


def _missing_jars(lines: Iterable[str]) -> list[str]:
    """The modules that the repository does not have, for which a retry is useless.

    Ivy reports "not found" for every jar that it did not get. A failure of a server or the network
    is reported in addition, and then the result is empty.
    """
    if any(_NO_ANSWER.search(line) for line in lines):
        return []
    matches = (_NOT_FOUND.fullmatch(line) for line in lines)
    return list(dict.fromkeys(f"{m[1]}:{m[2]}:{m[3]}" for m in matches if m))


def _failure_text(lines: Sequence[str]) -> str:
    """The lines of Ivy's output with the failures."""
    words = ("not found", "FAILED", "download failed", "Exception", "SERVER ERROR")
    failures = [line for line in lines if any(word in line for word in words)]
    return "\n    ".join(dict.fromkeys(failures or lines[-5:]))


def _first_damaged(folder: Path) -> str:
    """The first damaged jar with the reason; empty if all are intact."""
    jars = list(folder.glob("*.jar"))
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                damaged = archive.testzip()
        except (OSError, zipfile.BadZipFile) as error:
            return f"{jar.name}: {error}"
        if damaged is not None:
            return f"{jar.name}: {damaged} in it is damaged"
    return "" if jars else "nothing was retrieved"


def _is_intact(folder: Path) -> bool:
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        return bool(manifest) and manifest == _describe(folder)
    except (OSError, ValueError):
        return False


def _describe(folder: Path) -> dict[str, dict[str, str | int]]:
    description: dict[str, dict[str, str | int]] = {}
    for jar in sorted(folder.glob("*.jar")):
        with jar.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        description[jar.name] = {"size": jar.stat().st_size, "sha256": digest}
    return description


def _ivy_jar(subject: str) -> Path:
    jars = folder_of("pyspark", subject) / "jars"
    for jar in sorted(jars.glob("ivy-*.jar")):
        return jar
    raise EarshotError(
        subject,
        observed=f"{jars} has no ivy-*.jar, which fetches them",
        remedy="pip install --force-reinstall --no-deps pyspark",
    )


def _settings_file(folder: Path) -> str:
    mirror = os.environ.get(REPOSITORY_VARIABLE, "")
    root = f" root={quoteattr(mirror.rstrip('/') + '/')}" if mirror else ""
    return f"""<ivysettings>
  <settings defaultResolver="repository"/>
  <caches defaultCacheDir={quoteattr(str(folder))}/>
  <resolvers><ibiblio name="repository" m2compatible="true"{root}/></resolvers>
</ivysettings>
"""


def _module_file(coordinates: Iterable[Coordinate], excluded: Iterable[Coordinate]) -> str:
    dependencies = "".join(
        f"    <dependency org={quoteattr(c.group)} name={quoteattr(c.artifact)}"
        f' rev={quoteattr(c.version)} conf="default-&gt;default"/>\n'
        for c in coordinates
    )
    exclusions = "".join(
        f"    <exclude org={quoteattr(c.group)} module={quoteattr(c.artifact)}/>\n"
        for c in excluded
    )
    return f"""<ivy-module version="2.0">
  <info organisation="earshot" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}{exclusions}  </dependencies>
</ivy-module>
"""
