"""Files of a source, and the order in which variables count."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from earshot.errors import EarshotError
from earshot.sources.files import beside, text_of, variables_for


def test_a_file_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(EarshotError) as no_text:
        text_of(tmp_path / "bytes")
    assert no_text.value.line == f"file {tmp_path / 'bytes'}: is no UTF-8 text"
    with pytest.raises(EarshotError) as missing:
        text_of(tmp_path / "none")
    assert missing.value.observed == "cannot be read (No such file or directory)"


def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    os.mkfifo(tmp_path / "pipe")
    read = beside(tmp_path / "compose.yml")
    assert read("a") == "x"
    with pytest.raises(OSError, match="no regular file"):
        read("pipe")
    for name in ("a\0", "a\ud800"):
        with pytest.raises(OSError, match="no file has such a name"):
            read(name)


def test_the_environment_counts_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    assert variables_for(file, {"A": "1"}) == {"A": "1"}
    (tmp_path / ".env").write_text("A=2\nB=2\n")
    (tmp_path / "other").write_text("C=3\n")
    assert variables_for(file, {"A": "1"}) == {"A": "1", "B": "2"}
    assert variables_for(file, {"A": "1"}, tmp_path / "other") == {"A": "1", "C": "3"}


def test_what_a_dotenv_leaves_open_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=x$B\n")
    assert variables_for(tmp_path / "compose.yml", {}) == {"A": "x"}
    assert variables_for(tmp_path / "compose.yml", {}, keep=True) == {"A": "x${B}"}


def test_properties_may_be_in_the_encoding_that_java_reads(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_bytes("# Brücke\nbroker.id=1\n".encode("latin-1"))
    assert text_of(file) == "# Brücke\nbroker.id=1\n"
    file.write_bytes("# Brücke\n".encode())
    assert text_of(file) == "# Brücke\n"
