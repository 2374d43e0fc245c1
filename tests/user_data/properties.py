"""The files in earshot's user data."""

from typing import Any

from earshot.user_data.cloud_config import HEADER
from earshot.user_data.render import PROPERTIES
from earshot.yaml_reading.document import read_cloud_config


def files_in(text: str) -> dict[str, Any]:
    """The content of each file, by path."""
    assert text.startswith(HEADER)
    document: Any = read_cloud_config(text, "user data")
    return {file["path"]: file["content"] for file in document["write_files"]}


def properties_in(text: str) -> str:
    """The content of `server.properties`; empty for another file, or no cloud config."""
    return str(files_in(text).get(PROPERTIES, "")) if text.startswith(HEADER) else ""
