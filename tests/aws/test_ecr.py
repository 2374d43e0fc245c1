"""Names of images in ECR."""

import pytest

from earshot.aws.ecr import EXAMPLE, ecr_image

ACCOUNT = "123456789012"


@pytest.mark.parametrize(("name", "region", "repository"), [
    (EXAMPLE, "eu-central-1", "apache/kafka"),
    (f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com/kafka", "us-east-1", "kafka"),
    (f"{ACCOUNT}.dkr.ecr-fips.us-gov-west-1.amazonaws.com/a.b/c_d:1", "us-gov-west-1", "a.b/c_d"),
    (f"{ACCOUNT}.dkr.ecr.cn-north-1.amazonaws.com.cn/kafka:4", "cn-north-1", "kafka"),
    (f"{ACCOUNT}.dkr.ecr.eu-west-1.amazonaws.com/kafka:4@sha256:{'0' * 64}", "eu-west-1", "kafka"),
    (f"{ACCOUNT}.dkr.ecr-fips.us-east-1.amazonaws.com/kafka", "us-east-1", "kafka"),
    (f"{ACCOUNT}.dkr-ecr.eu-central-1.on.aws/kafka:4", "eu-central-1", "kafka"),
    (f"{ACCOUNT}.dkr-ecr-fips.us-east-2.on.aws/kafka", "us-east-2", "kafka"),
    (f"{ACCOUNT}.dkr-ecr-fips.us-gov-east-1.on.aws/kafka", "us-gov-east-1", "kafka"),
    (f"{ACCOUNT}.dkr-ecr.cn-northwest-1.on.amazonwebservices.com.cn/a/kafka", "cn-northwest-1",
     "a/kafka"),
    (f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/docker-hub/apache/kafka:4.1.1", "eu-central-1",
     "docker-hub/apache/kafka"),
])  # fmt: skip
def test_an_image_in_ecr(name: str, region: str, repository: str) -> None:
    image = ecr_image(name)
    assert image is not None
    assert (image.account, image.region, image.repository) == (ACCOUNT, region, repository)
    assert name.startswith(f"{image.registry}/")
    assert image.repository_arn("aws") == f"arn:aws:ecr:{region}:{ACCOUNT}:repository/{repository}"


@pytest.mark.parametrize(
    "name",
    [
        "apache/kafka:4.1.1",
        "public.ecr.aws/docker/library/debian",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/Kafka",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com.example.com/kafka",
        "12345.dkr.ecr.eu-central-1.amazonaws.com/kafka",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com/kafka:4 more",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.amazonaws.com:443/kafka",
        f"{ACCOUNT}.dkr-ecr.eu-central-1.amazonaws.com/kafka",
        f"{ACCOUNT}.dkr.ecr.eu-central-1.on.aws/kafka",
        f"{ACCOUNT}.dkr.ecr.cn-north-1.amazonaws.com/kafka",
        f"{ACCOUNT}.dkr-ecr.cn-north-1.on.aws/kafka",
        f"{ACCOUNT}.dkr.ecr.us-east-1.amazonaws.com.cn/kafka",
        f"{ACCOUNT}.dkr-ecr.us-east-1.on.amazonwebservices.com.cn/kafka",
        f"{ACCOUNT}.dkr-ecr.eu-central-1.on.aws",
        "ecr-public.aws.com/docker/library/debian",
    ],
)
def test_another_image(name: str) -> None:
    assert ecr_image(name) is None
