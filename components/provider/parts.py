"""Everything that the provider offers: components, and custom resources with their kinds."""

from components.given.listeners import Listeners
from components.given.proof import Proof, ProofKind
from components.package.cluster import AwsCluster
from components.package.network import AwsNetwork
from components.provider.kind import Kind
from components.provider.resource import EarshotResource

COMPONENTS = (Listeners, AwsCluster, AwsNetwork)
KINDS: dict[type[EarshotResource], Kind] = {Proof: ProofKind()}
