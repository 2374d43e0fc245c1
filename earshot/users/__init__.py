"""Users of a secured cluster and what they may do, as the cluster itself keeps them."""
