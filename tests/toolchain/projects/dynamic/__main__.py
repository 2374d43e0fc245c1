"""One dynamic resource."""

import pulumi
from counter import Counter

pulumi.export("next", Counter("one", 41).next)
