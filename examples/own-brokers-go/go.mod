module own-brokers

go 1.25.11

require (
	github.com/pulumi/pulumi-docker/sdk/v4 v4.10.0
	github.com/pulumi/pulumi/sdk/v3 v3.259.0
)
