"""Everything that the provider offers: components, and custom resources with their kinds."""

from components.given.listeners import Listeners
from components.given.proof import Proof, ProofKind
from components.package.cluster import AwsCluster
from components.package.network import AwsNetwork

COMPONENTS = (Listeners, AwsCluster, AwsNetwork)
KINDS = {Proof: ProofKind()}
