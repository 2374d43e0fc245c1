"""Places of certificates: what is one, and what is refused without showing what may be a secret."""

import pytest

from earshot.certificates.places import is_in_aws, of_node, problem

ARN = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:kafka/{node}-AbCdEf"


@pytest.mark.parametrize(
    "place",
    ["", "certs/{node}.pem", "/etc/ssl/ca.pem", "./a:b.pem", "~x", "certs/a:b.pem", "ä ö.pem"],
)
def test_a_path_stays_a_path(place: str) -> None:
    assert not problem(place) and not is_in_aws(place)


@pytest.mark.parametrize(
    "place",
    [
        "ssm:/kafka/{node}.pem",
        "ssm:name-{node}:3",
        "ssm:arn:aws:ssm:eu-central-1:111122223333:parameter/kafka/ca",
        "secretsmanager:kafka-{node}",
        f"secretsmanager:{ARN}",
    ],
)
def test_a_name_in_aws_is_told_by_its_scheme(place: str) -> None:
    assert not problem(place) and is_in_aws(place)
    assert of_node(place, 12) == place.replace("{node}", "12")


TEXT = "found a text; allowed: its place, as a path or a name in AWS"
SCHEME = (
    "found {}:…; allowed: a path (with ./ before it where it has a colon), ssm:NAME or "
    "secretsmanager:NAME"
)
PARAMETER = (
    "found '{}'; allowed after ssm: letters, digits and . - _ / as the name of a parameter, or "
    "its ARN"
)
SECRET = (
    "found '{}'; allowed after secretsmanager: letters, digits and / _ + = . @ - as the name of a "
    "secret, or its ARN"
)
SCHEMES = ("vault", "SSM", "secretmanager", "arn", "https", "C")
PARAMETERS = ("ssm:", "ssm: /kafka", "ssm:/kafka/{Node}", "ssm:/kafka/ä")


@pytest.mark.parametrize(
    ("place", "reported"),
    [
        ("-----BEGIN PRIVATE KEY-----", TEXT),
        ("certs/{node}.pem\n", TEXT),
        ("ssm:/a\nb", TEXT),
        (f"ssm:/{'ä' * 90}", PARAMETER.format(f"ssm:/{'ä' * 55}")),
        *((f"{scheme}:geheim", SCHEME.format(scheme)) for scheme in SCHEMES),
        *((place, PARAMETER.format(place)) for place in PARAMETERS),
        ("secretsmanager:{id}", SECRET.format("secretsmanager:{id}")),
    ],
)
def test_what_is_no_place_is_refused(place: str, reported: str) -> None:
    assert problem(place) == reported
