"""The names that EC2 gives to addresses, in each region's own form; moto knows only some of them.

A copy on purpose: the double must not depend on the code that is tested with it. Source: the EC2
user guide, instance hostname types and public IPv4 names.
"""

FIRST_REGION = "us-east-1"


def private_name(address: str, region: str) -> str:
    zone = "ec2.internal" if region == FIRST_REGION else f"{region}.compute.internal"
    return f"ip-{address.replace('.', '-')}.{zone}"


def public_name(address: str, region: str) -> str:
    zone = "compute-1" if region == FIRST_REGION else f"{region}.compute"
    return f"ec2-{address.replace('.', '-')}.{zone}.{domain(region)}"


def domain(region: str) -> str:
    """The domain of the services of a region's partition."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def partition(region: str) -> str:
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"
