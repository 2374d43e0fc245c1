import pytest

from earshot.config.clear_text import clear_text_problems
from earshot.config.document import read_spec
from earshot.config.listener import ListenerSpec
from earshot.errors import SpecError
from earshot.listeners.terms import Protocol, Scope
from tests.config.aws_documents import TWO_LISTENERS, document


def listener(name: str, protocol: Protocol, *scopes: Scope) -> ListenerSpec:
    return ListenerSpec(name=name, port=9092, protocol=protocol, scopes=scopes)


def problems(*listeners: ListenerSpec, **waived: str) -> list[str]:
    return list(clear_text_problems(listeners, waived))


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("scopes", [(Scope.EXTERNAL,), (Scope.INTERNAL, Scope.EXTERNAL)])
def test_an_external_listener_has_tls_or_a_reason(
    protocol: Protocol, scopes: tuple[Scope, ...]
) -> None:
    external = listener("EXTERNAL", protocol, *scopes)
    assert bool(problems(external)) == (not protocol.tls)
    assert bool(problems(external, EXTERNAL="a lab behind a VPN")) == protocol.tls


@pytest.mark.parametrize("scope", [Scope.INTERNAL, Scope.HOST])
def test_other_scopes_may_be_in_the_clear(scope: Scope) -> None:
    assert problems(listener("PLAIN", Protocol.PLAINTEXT, scope)) == []


def test_every_listener_is_named_with_key_protocol_and_allowed_ones() -> None:
    texts = problems(
        listener("ONE", Protocol.SASL_PLAINTEXT, Scope.EXTERNAL),
        listener("TWO", Protocol.SSL, Scope.EXTERNAL),
        listener("THREE", Protocol.PLAINTEXT, Scope.EXTERNAL),
    )
    assert texts == [
        (
            f"listeners.{name}.protocol: found {protocol} for scope external, so that anyone on "
            "the network path can read and change what is sent; allowed: SSL, SASL_SSL, or a "
            f"reason under clear_text.{name}"
        )
        for name, protocol in (("ONE", "SASL_PLAINTEXT"), ("THREE", "PLAINTEXT"))
    ]


NO_REASON = "clear_text.OUT: found no reason; allowed: a sentence that says why"
UNUSED = "clear_text.OTHER: found a waiver that nothing needs; allowed: OUT"


@pytest.mark.parametrize(
    ("waived", "problem"),
    [
        ({"OUT": ""}, NO_REASON),
        ({"OUT": "  "}, NO_REASON),
        ({"OUT": "lab", "OTHER": "lab"}, UNUSED),
    ],
)
def test_a_waiver_has_a_reason_and_a_listener(waived: dict[str, str], problem: str) -> None:
    out = listener("OUT", Protocol.PLAINTEXT, Scope.EXTERNAL)
    assert problems(out, **waived) == [problem]
    assert problems(OUT="lab")[0].endswith("allowed: no listener needs one")


def test_a_key_that_utf_8_does_not_have_is_one_message() -> None:
    cluster = document(**TWO_LISTENERS, clear_text={"\ud800": "a lab"})
    with pytest.raises(SpecError, match=r"found the character '\\ud800'\n  allowed: text that"):
        read_spec(cluster, "test")
