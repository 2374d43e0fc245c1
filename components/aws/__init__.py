"""The `aws` placement: network, groups, names, and the instances behind their gate."""
