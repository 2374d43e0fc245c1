// A Kafka broker in a container of your own; earshot computes, checks and proves its listeners.
//
// Cost: none beyond this machine. Removal: `pulumi destroy`.
package main

import (
	"example.com/pulumi-earshot/sdk/go/earshot"
	"github.com/pulumi/pulumi-docker/sdk/v4/go/docker"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

func main() {
	pulumi.Run(deploy)
}

func deploy(ctx *pulumi.Context) error {
	settings := config.New(ctx, "")
	host := valueOr(settings.Get("host"), "localhost")
	port := 9092
	if given, err := settings.TryInt("port"); err == nil {
		port = given
	}
	image, err := docker.NewRemoteImage(ctx, "kafka", &docker.RemoteImageArgs{
		Name:        pulumi.String(valueOr(settings.Get("image"), "apache/kafka:4.1.1")),
		KeepLocally: pulumi.Bool(true),
	})
	if err != nil {
		return err
	}
	network, err := docker.NewNetwork(ctx, "kafka", nil)
	if err != nil {
		return err
	}
	kafka, err := earshot.NewListeners(ctx, "kafka", &earshot.ListenersArgs{
		Vantage: pulumi.StringRef("network"),
		Listeners: []earshot.ListenerArgs{
			{Name: "INTERNAL", Port: 19092, Scopes: []string{"internal"}},
			{Name: "HOST", Port: 9092, Scopes: []string{"host"}},
		},
		Nodes: earshot.BrokerNamesMap{
			"1": earshot.BrokerNamesArgs{
				Internal: pulumi.String("kafka-1"),
				Host:     pulumi.String(host),
				Ports:    map[string]int{"HOST": port},
			},
		},
		Declared: map[string]pulumi.StringInput{
			"internal":   pulumi.String("alias of the container on its network"),
			"controller": pulumi.String("alias of the container on its network"),
		},
		Extra: pulumi.StringMap{"log.cleaner.dedupe.buffer.size": pulumi.String("2097152")},
	})
	if err != nil {
		return err
	}
	broker, err := docker.NewContainer(ctx, "broker-1", &docker.ContainerArgs{
		Image: image.ImageId,
		Envs:  kafka.Envs.MapIndex(pulumi.String("1")),
		Ports: docker.ContainerPortArray{
			docker.ContainerPortArgs{Internal: pulumi.Int(9092), External: pulumi.Int(port)},
		},
		NetworksAdvanced: docker.ContainerNetworksAdvancedArray{
			docker.ContainerNetworksAdvancedArgs{
				Name:    network.Name,
				Aliases: pulumi.StringArray{pulumi.String("kafka-1")},
			},
		},
	})
	if err != nil {
		return err
	}
	proof, err := earshot.NewProof(ctx, "proof", &earshot.ProofArgs{
		Contract: kafka.Contract,
		After:    pulumi.StringArray{broker.ID().ToStringOutput()},
		Scopes:   []string{"host"},
		Client:   pulumi.StringMap{"client.id": pulumi.String("proof-of-kafka")},
	}, pulumi.DependsOn([]pulumi.Resource{broker}))
	if err != nil {
		return err
	}
	ctx.Export("bootstrap", kafka.Bootstrap)
	ctx.Export("verdict", proof.Verdict)
	ctx.Export("report", proof.Report)
	ctx.Export("unproved", proof.Unproved)
	ctx.Export("broker", broker.ID())
	return nil
}

func valueOr(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}
