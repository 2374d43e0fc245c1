"""What earshot plans and renders for a version, Kafka of that version takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError

from earshot.listeners import render
from earshot.listeners.model import ClusterPlan
from earshot.listeners.properties import NodeSettings, read_properties, write_properties
from tests.listeners.clusters import any_properties, documents, plans
from tests.listeners.oracle import Oracle

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

# the voters contain a controller's host, which Kafka looks up
quick_hosts = st.sampled_from(["localhost", "127.0.0.1", "::1", "10.0.0.7", "192.0.2.1"])


def plans_for(version: str) -> st.SearchStrategy[ClusterPlan]:
    return plans(documents(versions=st.just(version), hosts=quick_hosts), quick_hosts)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_kafka_takes_what_earshot_renders(oracle: Oracle, data: st.DataObject) -> None:
    cluster = data.draw(plans_for(oracle.version))
    for node in cluster.nodes:
        text = render.server_properties(cluster, node)
        assert oracle.refusal_of_file(text) == "", text


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_kafka_hands_out_what_was_planned(oracle: Oracle, data: st.DataObject) -> None:
    cluster = data.draw(plans_for(oracle.version))
    for node in cluster.nodes:
        planned = [(item.name, item.host, item.port) for item in node.listeners]
        values = render.settings(cluster, node)
        found = oracle.handed_out(values, "Broker") if node.is_broker else []
        if node.is_controller:
            found += oracle.handed_out(values, "Controller")
        assert found == planned


@settings(max_examples=300, deadline=None)
@given(values=any_properties)
def test_java_reads_what_was_written(oracle: Oracle, values: dict[str, str]) -> None:
    loaded = oracle.load(write_properties(NodeSettings(values)))
    java = {key: loaded.getProperty(key) for key in loaded.stringPropertyNames()}
    assert java == values


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.sampled_from("ab=: \\\n\r\t\f#!u0041é"), max_size=40))
def test_reads_a_properties_file_as_java_does(oracle: Oracle, text: str) -> None:
    try:
        loaded = oracle.load(text)
    except Py4JJavaError as error:
        assert "Malformed" in str(error.java_exception)
        return
    java = {key: loaded.getProperty(key) for key in loaded.stringPropertyNames()}
    read = dict(read_properties(text).values)
    # a lone backslash at the very end is a nameless property to Java, sometimes
    assert {key: read[key] for key in read if key} == {key: java[key] for key in java if key}
