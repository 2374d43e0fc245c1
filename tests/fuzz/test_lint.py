"""A share of `make fuzz`, and texts of no kind at all: lint ends with 0, 1, 2 or 3."""

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.inputs import Input, inputs
from tests.fuzz.lint import EXIT_CODES, exit_code

SEED, SHARE = 20_261, 200
NAMES = st.sampled_from(
    ["compose.yml", "server.properties", "values.yaml", "kafka.conf", "s.properties.j2", "kafka"]
)
WORDS = st.sampled_from(
    ["services", "kafka", "image", "environment", "ports", "networks", "kind", "spec", "metadata",
     "containers", "env", "name", "value", "listeners", "apache/kafka:4.1.1", "KAFKA_LISTENERS",
     "A://h:1", "9092:9092", "Kafka", "StatefulSet", "template", "apiVersion"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | WORDS
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=5),
    max_leaves=20,
)
in_one_folder = settings(
    max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_damaged_examples(tmp_path: Path) -> None:
    codes = [exit_code(input, tmp_path) for input in inputs(SEED, SHARE)]
    assert set(codes) == set(EXIT_CODES)


@in_one_folder
@given(name=NAMES, content=st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_any_text(tmp_path: Path, name: str, content: bytes) -> None:
    assert exit_code(Input(name, content), tmp_path) in EXIT_CODES


@in_one_folder
@given(name=NAMES, documents=st.lists(DOCUMENTS, min_size=1, max_size=2))
def test_any_yaml(tmp_path: Path, name: str, documents: list[object]) -> None:
    content = yaml.safe_dump_all(documents).encode(errors="surrogatepass")
    assert exit_code(Input(name, content), tmp_path) in EXIT_CODES


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_stands_for_its_files(seed: int) -> None:
    assert list(inputs(seed, 20)) == list(inputs(seed, 20)) != list(inputs(seed + 1, 20))
