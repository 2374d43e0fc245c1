"""What user data of ours writes, for tests to look at."""

from typing import Any

from earshot.user_data.cloud_config import HEADER
from earshot.user_data.render import PROPERTIES
from earshot.yaml_document import read_cloud_config


def properties_in(text: str) -> str:
    """The `server.properties` that ``text`` writes, or an empty text where it writes none."""
    if not text.startswith(HEADER):
        return ""
    document: Any = read_cloud_config(text, "user data")
    found = [it["content"] for it in document["write_files"] if it["path"] == PROPERTIES]
    return "".join(found)
