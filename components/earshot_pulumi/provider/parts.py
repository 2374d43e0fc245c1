"""Everything that the provider offers: components, and custom resources with their kinds."""

from earshot_pulumi.given.listeners import Listeners
from earshot_pulumi.given.proof import Proof, ProofKind
from earshot_pulumi.package.cluster import AwsCluster
from earshot_pulumi.package.network import AwsNetwork
from earshot_pulumi.provider.kind import Kind
from earshot_pulumi.provider.resource import EarshotResource

COMPONENTS = (Listeners, AwsCluster, AwsNetwork)
KINDS: dict[type[EarshotResource], Kind] = {Proof: ProofKind()}
