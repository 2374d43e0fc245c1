"""A file of client properties: what Java reads in it, and what is refused."""

from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.validation.client_file import read_client_file
from tests.raised import raised


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "c.properties"


@pytest.mark.parametrize(
    ("data", "password"),
    [
        (b"sasl.password=a\\\\b", "a\\b"),
        (b"sasl.password=a\\\n  b", "ab"),
        (b"sasl.password = a = b \t\n", "a = b"),
        (b"sasl.password=!a! ", "!a!"),
        (b"sasl.password=first\nsasl.password=last", "last"),
        (b"sasl.password=\\u00fc\\ud83d\\ude00", "ü😀"),
        (b"sasl.password=\xfc", "ü"),  # ISO 8859-1, as Java takes it
        ("# für alle\nsasl.password=x".encode(), "x"),
    ],
)
def test_it_is_read_as_java_reads_it(data: bytes, password: str, file: Path) -> None:
    file.write_bytes(data)
    assert read_client_file(file, "c") == {"sasl.password": password}


@pytest.mark.parametrize(("data", "observed"), [
    (b"# nothing\n", "c: contains no property\n"),
    ("a=1\nsasl.password=hüQQ".encode(),
     "has characters beyond ASCII in sasl.password, which Java reads as ISO 8859-1"),
    (b"a=1\nsasl.jaas.config=\\\\ M required\\\n password='hu\\QQ\\user';",
     r"has a \u without four hexadecimal digits in sasl.jaas.config"),
    ("hüQQ=1".encode(), "has characters beyond ASCII in a key, which"),
    (b"sasl.password=\0QQ", "c: is not text: it contains the character U+0000\n"),
    (None, "c: cannot be read (No such file or directory)"),
])  # fmt: skip
def test_ambiguous_files_are_refused(data: bytes | None, observed: str, file: Path) -> None:
    if data is not None:
        file.write_bytes(data)
    error = raised(EarshotError, read_client_file, file, "c")
    assert observed in str(error)
    assert "QQ" not in str(error)
