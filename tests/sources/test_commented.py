from __future__ import annotations

import pytest

from earshot.sources.commented import commented_values

NAME = "KAFKA_ADVERTISED_LISTENERS"


@pytest.mark.parametrize(
    "line",
    [
        f"# {NAME}: PLAINTEXT://localhost:9092",
        f"#{NAME}: 'PLAINTEXT://localhost:9092' # for the machine",
        f'## - "{NAME}=PLAINTEXT://localhost:9092"',
        f"#- {NAME}=PLAINTEXT://localhost:9092",
    ],
)
@pytest.mark.parametrize("heading", ["services:\n", ""])
def test_an_entry_belongs_to_the_service_that_it_stands_in(line: str, heading: str) -> None:
    text = f"{heading}  a:\n    image: x\n    {line}\n  b: {{image: y}}\n"
    assert commented_values(text, "c.yml") == {"a": {NAME: ["PLAINTEXT://localhost:9092"]}}


@pytest.mark.parametrize(
    "text",
    [
        f"# {NAME}: PLAINTEXT://a:1\nservices: {{a: {{image: x}}}}\n",
        f"services: {{a: {{image: x}}}}\nvolumes:\n  # {NAME}: PLAINTEXT://a:1\n  v:\n",
        "services:\n  a:\n    image: x\n    # KAFKA_LISTENERS: PLAINTEXT://a:1\n",
        f"services:\n  a:\n    image: x\n    # see {NAME}: it is for others\n",
        f"services:\n  a:\n    image: x\n  # b:\n  #   image: x\n  #   {NAME}: PLAINTEXT://b:1\n",
        f"- a\n# {NAME}: PLAINTEXT://a:1\n",
    ],
)
def test_other_comments_tell_nothing(text: str) -> None:
    assert not commented_values(text, "c.yml")
