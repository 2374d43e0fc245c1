"""Kafka's own reader of `sasl.jaas.config` as the check of ours."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from earshot.errors import EarshotError
from earshot.validation.jaas import LoginModule, read_jaas
from tests.listeners.oracle import Oracle, kafkas_own_exceptions, started
from tests.validation.jaas_texts import modules, written

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
__all__ = ["kafkas_own_exceptions"]  # a fixture that every test here uses

TOKENS = (
    *("M", "required", "a", "b=", "=", "x", ";", "true", "-1", "2.5", '"q"', "'q'", '"', "'", "\\"),
    *("//", "/*", "*/", "/", "\n", " ", '\\"', "\\7", "\\477", "é", "\x85", "€"),
    *('="v"', ";M required"),
)
texts = st.lists(st.sampled_from(TOKENS), max_size=14).map("".join)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Oracle]:
    with started("4.1.1") as running:
        yield running


def kafkas(oracle: Oracle, text: str) -> Any:
    """The one module that Kafka reads in ``text``, or None where it refuses the text."""
    jvm = oracle.jvm
    configs = jvm.java.util.HashMap()
    secret = jvm.org.apache.kafka.common.config.types.Password(text)
    configs.put("sasl.jaas.config", secret)
    with contextlib.suppress(Py4JJavaError):
        context = jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(configs)
        (entry,) = list(context.configurationEntries())
        options = {key: value for key, value in entry.getOptions().items() if key is not None}
        return LoginModule(entry.getLoginModuleName(), options)
    return None


def ours(text: str) -> Any:
    """The same by our reader."""
    with contextlib.suppress(EarshotError):
        found = read_jaas(text)
        return found[0] if len(found) == 1 else None
    return None


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_was_written_is_read_alike(kafka: Oracle, data: st.DataObject) -> None:
    name, options = data.draw(modules)[0]
    text = data.draw(written(name, options))
    assert ours(text) == kafkas(kafka, text) == LoginModule(name, options)


@settings(max_examples=700, deadline=None)
@given(texts)
def test_any_text_is_read_or_refused_alike(kafka: Oracle, text: str) -> None:
    for whole in (text, f"M required {text}", f"M required {text};"):
        assert ours(whole) == kafkas(kafka, whole), whole
