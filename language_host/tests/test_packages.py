"""SDKs of other packages: a double of the generator, a scratch program."""

from pathlib import Path

import grpc
import pytest
from pulumi.runtime.proto.language_pb2 import GeneratePackageRequest, LinkRequest, ProgramInfo
from pulumi.runtime.proto.plugin_pb2 import PackageDependency
from pulumi_python_host import packages


class Context:
    def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise RuntimeError(details)


def generator(folder: Path, script: str) -> Path:
    path = folder / "codegen"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def linked(program: Path, *sdks: str) -> str:
    request = LinkRequest(info=ProgramInfo(program_directory=str(program), entry_point="."))
    for sdk in sdks:
        (program / sdk / "pulumi_thing").mkdir(parents=True, exist_ok=True)
        (program / sdk / "pulumi_thing" / "__init__.py").touch()
        request.packages.add(path=sdk, package=PackageDependency(name="thing"))
    return packages.link(request).import_instructions


def test_an_sdk_is_generated_from_the_schema(tmp_path: Path) -> None:
    codegen = generator(tmp_path, 'cat > "$2/schema"; echo "$1 $3" > "$2/said"')
    request = GeneratePackageRequest(
        directory=str(tmp_path), schema="{}", loader_target="127.0.0.1:9", extra_files={"a/b": b"c"}
    )
    packages.generate(request, Context(), codegen=codegen)
    assert (tmp_path / "schema").read_text() == "{}"
    assert (tmp_path / "said").read_text() == "python 127.0.0.1:9\n"
    assert (tmp_path / "a" / "b").read_bytes() == b"c"


def test_a_failed_generation_says_why(tmp_path: Path) -> None:
    codegen = generator(tmp_path, "echo no such type >&2; exit 1")
    request = GeneratePackageRequest(directory=str(tmp_path), schema="{}")
    with pytest.raises(RuntimeError, match=r"^no such type$"):
        packages.generate(request, Context(), codegen=codegen)


def test_a_missing_generator_names_the_remedy(tmp_path: Path) -> None:
    request = GeneratePackageRequest(directory=str(tmp_path), schema="{}")
    with pytest.raises(RuntimeError, match=r"codegen does not exist; run: make setup"):
        packages.generate(request, Context(), codegen=tmp_path / "codegen")


def test_an_sdk_becomes_a_requirement_once(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("pulumi>=3")
    assert "import pulumi_thing as thing" in linked(tmp_path, "sdks/thing")
    linked(tmp_path, "sdks/thing")
    assert requirements.read_text() == "pulumi>=3\n./sdks/thing\n"


def test_a_program_without_requirements_gets_some(tmp_path: Path) -> None:
    linked(tmp_path, "sdks/thing")
    assert (tmp_path / "requirements.txt").read_text() == "./sdks/thing\n"


def test_the_user_edits_a_pyproject(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    assert "sdks/thing" in linked(tmp_path, "sdks/thing")
    assert not (tmp_path / "requirements.txt").exists()
