"""What the job does with Spark is tested on real brokers (tests/e2e/test_spark_validation.py)."""

from earshot.listeners.terms import Protocol
from earshot.spark.job import FAIL_FAST, ListenerAccess


def test_options_fail_fast_unless_the_user_says_otherwise() -> None:
    plain = ListenerAccess("a:1,b:2", Protocol.SASL_SSL).options
    assert plain["kafka.bootstrap.servers"] == "a:1,b:2"
    assert plain["kafka.security.protocol"] == "SASL_SSL"
    assert plain["kafka.request.timeout.ms"] == FAIL_FAST["kafka.request.timeout.ms"]
    given = {"request.timeout.ms": "60000", "security.protocol": "PLAINTEXT"}
    chosen = ListenerAccess("a:1", Protocol.SSL, given).options
    assert chosen["kafka.request.timeout.ms"] == "60000"
    assert chosen["kafka.security.protocol"] == "SSL"


def test_what_an_application_sets_for_its_own_records_is_left_out() -> None:
    """Spark refuses a serializer, and a producer with transactions sends nothing."""
    plain = ListenerAccess("a:1", Protocol.SSL).options
    given = {"key.serializer": "x", "transactional.id": "t", "interceptor.classes": "a.B"}
    assert ListenerAccess("a:1", Protocol.SSL, given).options == plain
