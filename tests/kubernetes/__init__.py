"""Random Kubernetes manifests on real parts of a cluster, and the model beside what happens."""
