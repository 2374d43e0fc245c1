"""What the job does with Spark is tested on real brokers (tests/e2e/test_spark_validation.py)."""

from earshot.listeners.terms import Protocol
from earshot.spark.job import FAIL_FAST, ListenerAccess


def test_options_fail_fast_unless_the_user_says_otherwise() -> None:
    default_options = ListenerAccess("a:1,b:2", Protocol.SASL_SSL).options
    assert default_options["kafka.bootstrap.servers"] == "a:1,b:2"
    assert default_options["kafka.security.protocol"] == "SASL_SSL"
    assert default_options["kafka.request.timeout.ms"] == FAIL_FAST["kafka.request.timeout.ms"]
    client_settings = {"request.timeout.ms": "60000", "security.protocol": "PLAINTEXT"}
    options = ListenerAccess("a:1", Protocol.SSL, client_settings).options
    assert options["kafka.request.timeout.ms"] == "60000"
    assert options["kafka.security.protocol"] == "SSL"


def test_what_an_application_sets_for_its_own_records_is_left_out() -> None:
    """Spark refuses a serializer, and a producer with transactions sends nothing."""
    default_options = ListenerAccess("a:1", Protocol.SSL).options
    client_settings = {"key.serializer": "x", "transactional.id": "t", "interceptor.classes": "a.B"}
    assert ListenerAccess("a:1", Protocol.SSL, client_settings).options == default_options
