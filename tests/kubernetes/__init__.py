"""Random Kubernetes manifests on real parts of a cluster, compared with the model."""
