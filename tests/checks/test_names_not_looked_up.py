import pytest

from earshot.checks.names_not_looked_up import names_not_looked_up

KNOWN = ("kafka", "broker")


@pytest.mark.parametrize(
    ("advertised", "names"),
    [
        ("A://kafka.example.com:9092", "kafka.example.com"),
        ("A://a.example.com:1,B://b.example.com:2,C://a.example.com:3", "two"),
        ("A://kafka:9092", ""),
        ("A://kafka.default:9092", ""),
        ("A://broker-0.kafka:9092", ""),
        ("A://broker-0.kafka.default:9092", ""),
        ("A://broker-0.kafka.default.svc.cluster.local:9092", ""),
        ("A://198.51.100.7:9092", ""),
        ("A://[2001:db8::7]:9092", ""),
        ("A://ip-10-0-0-1.ec2.internal:9092", ""),
        ("A://${HOST}.example.com:9092", ""),
        ("A://localhost:9092", ""),
        ("", ""),
    ],
)
def test_full_names_that_no_known_dns_server_answers_are_named(advertised: str, names: str) -> None:
    names = "a.example.com, b.example.com" if names == "two" else names
    remark = f"KL011: whether {names} resolves is not checked" if names else ""
    assert names_not_looked_up({"advertised.listeners": advertised}, KNOWN) == remark
