"""What the shell in a pod's command assigns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot.sources.pod_scripts import assignments, without_assignments

KNOWN = {"HOSTNAME": "kafka-2", "POD": "broker-5", "DOMAIN": "kafka.data"}


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("export A=${HOSTNAME##*-} && exec /etc/confluent/docker/run", "2"),
        ('A="${POD##*-}" exec run', "5"),
        ("export A=$((${HOSTNAME##*-} + 1))", "3"),
        ("B=${HOSTNAME##*-}\nexport A=$((B + 100))", "102"),
        ("B=${HOSTNAME##*-}; export A=$(($B * 10))", "20"),
        ("B=${HOSTNAME##*-}; export A=$((${B}-1))", "1"),
        ("export A=$(hostname | awk -F'-' '{print $NF}')", "2"),
        ("export A=$(echo $POD | rev | cut -d- -f1 | rev)", "5"),
        ("export A=$(hostname | sed 's/.*-//')", "2"),
        ("export A=$(echo ${HOSTNAME##*-})", "2"),
        ("[[ `hostname` =~ -([0-9]+)$ ]] || exit 1\nexport A=${BASH_REMATCH[1]}", "2"),
        ("export A=PLAINTEXT://$(hostname).$DOMAIN:9092", "PLAINTEXT://kafka-2.kafka.data:9092"),
        ("export A=$(hostname | grep -Eo '[0-9]+$' | tail -1)", "2"),
        ("# for each pod if it has one\nexport A=${HOSTNAME##*-} # its ordinal", "2"),
        ("export A='$HOSTNAME'", "$HOSTNAME"),
        ("export A=$POD", "broker-5"),
        ("export A=", ""),
        # unknown: another command, a missing variable, a branch, another file
        ("export A=$(cat id)", None),
        ("export A=$OTHER", None),
        ("export A=${OTHER##*-}", None),
        ("export A=$((1 + OTHER))", None),
        ("if [ -f x ]; then export A=1; else export A=2; fi", None),
        ("test -f x || export A=1", None),
        ("export A=1\n. /other/script", None),
        ("export A=`id`", None),
        ("export A=$$", None),
    ],
)
def test_a_value(script: str, value: str | None) -> None:
    assert assignments(script, KNOWN)["A"] == value


def test_nothing_else_is_an_assignment() -> None:
    script = "kafka-storage format --config=/x -t ID; run --override=a=b; echo A =b"
    assert not assignments(script, KNOWN)


def test_what_is_known_is_taken_out_of_the_command() -> None:
    script = "export A=1 && export B=$(cat id) && run"
    assert without_assignments(script, {"A"}) == " && export B=$(cat id) && run"


@given(st.text(alphabet="A=$({})|'\"&; \n#*-+1`[]", max_size=60))
def test_no_text_ends_in_a_trace(script: str) -> None:
    assignments(script, KNOWN)
